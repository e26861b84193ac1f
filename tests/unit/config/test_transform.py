"""The `transform:` block of a rule: its form, and what it becomes in the plan."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from strait.config.links import Rule, Topics, parse
from strait.errors import ConfigError
from strait.state.schema import TopicPolicy
from strait.state.transform import TopicTransform

SCHEMA = {"value": "json", "schema": "id BIGINT, email STRING"}


def avro(*kinds: Any, **more: Any) -> str:
    fields = [{"name": f"f{number}", "type": kind} | more for number, kind in enumerate(kinds)]
    return json.dumps({"type": "record", "name": "A", "doc": "of it", "fields": fields})


AVRO = {"value": "avro", "schema": avro("int", "int")}


SECRET = {"key": "secret.salt", "secrets": {"salt": "${directory:/a:salt}"}}
WITH_SECRET = (
    "secret.salt = 'x'",
    "length(`secret` . salt) > 1 -- it's",
    "to_json(secret) <> ''",
    "v.a = 'it''s' AND (secret.salt) > 'b'",
    "/* ' */ secret.salt > 'b' /* ' */",
)
WITHOUT_SECRET = (
    "v.secret = 'x'",
    "v.`secret`.a > 1",
    "v . secret > 1",
    "v.a = 'secret.salt'",
    "mysecret > 1 -- secret.salt",
)


def rule(**transform: Any) -> Rule:
    return Rule.model_validate_json(json.dumps({"match": ".*", "transform": transform}))


def test_the_whole_block_reaches_the_plan() -> None:
    given = rule(
        format=SCHEMA,
        where="v.id > 0",
        key="sha2(secret.salt, 256)",
        fields={"set": {"email": "mask(v.email)"}, "drop": ["note"], "rename": {"id": "number"}},
        headers="drop",
        malformed="quarantine",
        secrets={"salt": "${directory:/run/secrets:salt}"},
    ).transform
    assert given is not None
    planned = TopicTransform.of(given)
    assert planned is not None
    assert planned.model_dump() == {
        "json_schema": "id BIGINT, email STRING",
        "where": "v.id > 0",
        "key": "sha2(secret.salt, 256)",
        "value": "",
        "set_fields": {"email": "mask(v.email)"},
        "drop_fields": ("note",),
        "rename_fields": {"id": "number"},
        "headers": "drop",
        "malformed": "quarantine",
        "secrets": {"salt": "${directory:/run/secrets:salt}"},
    }
    assert TopicPolicy.model_validate_json(TopicPolicy(transform=planned).model_dump_json()).transform == planned


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ({}, "it changes nothing"),
        ({"format": SCHEMA}, "it changes nothing"),
        ({"where": " "}, "where"),
        ({"fields": {"drop": ["a"]}}, "needs `format`"),
        ({"format": SCHEMA, "fields": {}}, "set `set`, `drop` or `rename`"),
        ({"format": SCHEMA, "fields": {"drop": ["a"], "set": {"a": "1"}}}, "'a' is in `set`, too"),
        ({"format": SCHEMA, "fields": {"rename": {"a": "c", "b": "c"}}}, "two fields become 'c'"),
        ({"format": SCHEMA, "fields": {"set": {"b": "1"}, "rename": {"a": "b"}}}, "'a' becomes 'b', which `set` makes"),
        ({"key": "sha2(concat(secret.salt, key), 256)"}, "key: uses `secret`, and `secrets` names none"),
        ({"format": SCHEMA, "fields": {"set": {"email": "secret.salt"}}}, "fields.set.email: uses `secret`"),
        ({"format": SCHEMA, "fields": {"drop": ["a"]}, "value": "key"}, "set one of them"),
        ({"where": "true", "malformed": "quarantine"}, "needs `format`"),
        ({"where": "true", "secrets": {"salt": "plain"}}, "never the secret itself"),
        ({"route": [{"to": "x"}]}, "it changes nothing"),
        ({"route": [{"to": "x"}, {"to": "y"}]}, "route.1: never gets a record, since route.0 has no `when`"),
        ({"route": [{"when": "true", "to": "x"}, {"to": "x"}]}, "two routes go to 'x'"),
        ({"route": [{"when": " ", "to": "x"}, {"to": "y"}]}, "route.0.when"),
        ({"route": [{"when": "secret.s = key", "to": "x"}, {"to": "y"}]}, "route.0.when: may not use `secret`"),
        ({"where": "true", "format": {"value": "xml", "schema": "x"}}, "json"),
        ({"where": "true", "format": SCHEMA | {"schema_id": 1}}, "are for `value: avro`"),
        ({"where": "true", "format": AVRO | {"schema": "x"}}, "schema: is not JSON"),
        ({"where": "true", "format": AVRO | {"schema": '"string"'}}, "must be a record"),
        ({"where": "true", "format": AVRO | {"older": {"1": AVRO["schema"]}}}, "needs `schema_id`"),
        (
            {"where": "true", "format": AVRO | {"schema_id": 1, "older": {"1": AVRO["schema"]}}},
            "1 is the ID of `schema`",
        ),
        ({"where": "true", "format": AVRO | {"schema_id": -1}}, "greater than or equal to 0"),
        (
            {"where": "true", "format": AVRO | {"schema_id": 1, "older": {"2": avro("string")}}},
            r"older\.2: cannot be read",
        ),
        ({"format": AVRO, "fields": {"drop": ["f0"]}}, "fields.drop: the copy of values in Avro has their schema"),
        ({"format": AVRO, "fields": {"rename": {"f0": "a"}}}, "fields.rename: the copy"),
        ({"format": AVRO, "fields": {"set": {"a": "1"}}}, "fields.set.a: the schema has no field a"),
        ({"where": "true", "malformed": "null"}, "quarantine"),
        *(({"where": where} | SECRET, "where: may not use `secret`: two hosts") for where in WITH_SECRET),
    ],
)
def test_what_has_no_meaning_is_refused(block: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        rule(**block)


def test_routes_name_the_destination_topics_instead_of_naming() -> None:
    routes = {"route": [{"when": "key IS NULL", "to": "x"}, {"to": "y"}]}
    with pytest.raises(ValidationError, match="naming: does not apply"):
        Rule.model_validate_json(
            json.dumps({"match": ".*", "transform": routes, "naming": {"policy": "prefix", "prefix": "p."}})
        )


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("a b", "' '"),
        (" ", "' '"),
        ("..", "not an allowed name"),
        ("a→b", "'→'"),
        ("x" * 250, "250 characters"),
        (r"\1.ä", "'ä'"),
        (r"\1\n", r"'\\\\'"),
        ("strait.a-to-b.map", "state topics"),
        (r"strait.\1.map", "state topics"),
        ("__consumer_offsets", "Kafka's own"),
        (r"\2", "invalid group reference"),
        (r"\g<name>", "unknown group"),
    ],
)
def test_a_route_goes_to_a_topic_that_there_can_be(to: str, why: str) -> None:
    transform = {"route": [{"when": "true", "to": to}, {"to": "rest"}]}
    with pytest.raises(ValidationError, match=why):
        Rule.model_validate_json(json.dumps({"match": "(a.*)", "transform": transform}))


def test_a_transformation_without_routes_is_written_and_identified_as_before() -> None:
    """Its digest is in offset maps, and versions without routes read its plans."""
    planned = TopicTransform(
        json_schema="id BIGINT",
        where="v.id > 0",
        key="sha2(key, 256)",
        malformed="quarantine",
        secrets={"salt": "${directory:/run/secrets:salt}"},
    )
    assert planned.digest == "0ed9e47c8e49ae40" and planned.number("people") == 2973015793575140103
    assert planned.model_dump().keys() >= {"secrets"} and not planned.model_dump().keys() & {"when", "unless"}
    divided = planned.model_copy(update={"when": "v.id > 5"})
    assert divided.digest not in (planned.digest, planned.model_copy(update={"unless": ("v.id > 5",)}).digest)
    assert TopicPolicy.model_validate_json(TopicPolicy(transform=divided).model_dump_json()).transform == divided


@pytest.mark.parametrize("where", WITHOUT_SECRET)
def test_a_condition_may_use_all_else(where: str) -> None:
    assert rule(where=where, **SECRET).transform is not None


@pytest.mark.parametrize("on_foreign", ["expect", "continue"])
def test_transformed_records_are_alone_in_their_topic(on_foreign: str) -> None:
    with pytest.raises(ValidationError, match="on_foreign: halt"):
        Rule.model_validate({"match": ".*", "on_foreign": on_foreign, "transform": {"where": "true"}})


def test_a_pool_transforms_nothing() -> None:
    clusters = {"a": {"bootstrap.servers": "a:1"}, "b": {"bootstrap.servers": "b:1"}}
    link = {
        "source": "a",
        "destination": "b",
        "topics": {"regex": [".*"], "rules": [{"match": "x", "transform": {"where": "true"}}]},
    }
    pools = {"small": {"default": True}}
    with pytest.raises(ConfigError, match="set `pool: false`"):
        parse({"clusters": clusters, "links": {"one": link}, "pools": pools}, where="here")
    alone = {"clusters": clusters, "links": {"one": link | {"pool": False}}, "pools": pools}
    assert parse(alone, where="here").links["one"].topics.rules[0].transform is not None


def test_the_digest_is_of_what_is_copied_and_not_of_what_stops_it() -> None:
    one = TopicTransform.of(rule(format=SCHEMA, where="v.id > 0").transform)
    assert one is not None
    assert one.digest == one.model_copy(update={"malformed": "quarantine"}).digest
    others = [
        one.model_copy(update=change)
        for change in (
            {"where": "v.id > 1"},
            {"key": "key"},
            {"headers": "drop"},
            {"json_schema": "id INT"},
            {"secrets": {"a": "${directory:/a:b}"}},
        )
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 6
    assert one.number("a") != one.number("b")
    assert all(0 <= other.number("t") < 1 << 63 for other in others)


def planned(expression: str, **form: Any) -> TopicTransform:
    made = TopicTransform.of(rule(format={"value": "avro"} | form, where=expression).transform)
    assert made is not None
    return made


def test_digests_are_those_of_older_versions() -> None:
    """Another one would stop topics for ever."""
    one = TopicTransform(
        json_schema="id BIGINT", where="v.id > 0", set_fields={"id": "1"}, secrets={"a": "${directory:/a:b}"}
    )
    assert (one.digest, TopicTransform(where="true").digest) == ("692b0948f3e1323d", "311459d5016e8751")
    assert "avro" not in one.model_dump_json()


def test_a_schema_of_avro_may_be_added_unless_it_changes_what_expressions_see() -> None:
    first = planned("v.f0 > 0", schema=avro("int"), schema_id=1)
    assert first.avro is not None and "doc" not in first.avro.schema_text
    more = json.loads(avro("int"))
    more["fields"].append({"name": "more", "type": ["null", "string"], "default": None})
    wider: dict[str, Any] = {"schema": json.dumps(more), "schema_id": 2, "older": {"1": avro("int")}}
    assert planned("v.f0 > 0", **wider).digest == first.digest
    assert planned("v.f0 > 0", **(wider | {"schema_id": 7})).digest == first.digest
    assert planned("v.f0 > 0", **wider).number("t") != first.number("t"), "the query has other columns"
    assert planned("v.f0 > 0", schema=avro("long"), schema_id=1).digest != first.digest
    assert planned("v.f0 > 0", schema=avro("int", default=0), schema_id=1).digest != first.digest
    assert planned("v.f0 > 0", schema=avro("int")).digest != first.digest, (
        "without an ID, each value is decoded with it"
    )
    for whole in ("to_json(v) <> 'f0'", "v['f0'] > 0", "struct(v).v.f0 > 0", "v.f0 > 0 AND v IS NOT NULL"):
        assert planned(whole, schema=avro("int"), schema_id=1).digest != planned(whole, **wider).digest
    assert TopicPolicy.model_validate_json(TopicPolicy(transform=first).model_dump_json()).transform == first


def test_plans_without_a_transformation_are_as_older_versions_wrote_them() -> None:
    assert "transform" not in TopicPolicy().model_dump_json()


def routes_in_avro(schema: str, **more: Any) -> list[TopicTransform]:
    """The transformation of each of two routes, the first of which is about a field."""
    routes = [{"when": "v.f0 > 1", "to": "x"}, {"to": "y"}]
    transform = {"format": AVRO | {"schema": schema, "schema_id": 1}, "route": routes, "malformed": "quarantine"} | more
    topics = Topics.model_validate_json(json.dumps({"rules": [{"match": "t", "transform": transform}]}))
    made = [TopicTransform.of_topic(topics, name) for name in ("t→x", "t→y")]
    return [one for one in made if one is not None]


def test_the_first_route_notes_values_that_cannot_be_parsed() -> None:
    fields = {"fields": {"set": {"f1": "v.f1 + 1"}}}
    for made in (routes_in_avro(avro("int", "int")), routes_in_avro(avro("int", "int"), **fields)):
        assert [one.malformed for one in made] == ["quarantine", "omit"]
    made = routes_in_avro(avro("int", "int"), malformed="stop")
    assert [one.malformed for one in made] == ["stop", "stop"]


def test_a_condition_of_a_route_reads_what_it_names_and_that_of_the_routes_before_it() -> None:
    routes = [{"when": "CAST(key AS STRING) = 'x'", "to": "x"}, {"when": "length(value) > 1", "to": "y"}, {"to": "z"}]
    topics = Topics.model_validate_json(json.dumps({"rules": [{"match": "t", "transform": {"route": routes}}]}))
    made = [TopicTransform.of_topic(topics, f"t→{name}") for name in "xyz"]
    assert [one and sorted(one.reads) for one in made] == [["key"], ["key", "value"], ["key", "value"]]


def test_another_type_of_a_field_that_only_a_condition_of_a_route_names_is_another_transformation() -> None:
    digests = [[one.digest for one in routes_in_avro(avro(*kinds))] for kinds in (("int", "int"), ("long", "int"))]
    assert digests[0][0] != digests[1][0] and digests[0][1] != digests[1][1]
    same = [[one.digest for one in routes_in_avro(avro(*kinds))] for kinds in (("int", "int"), ("int", "long"))]
    assert same[0] == same[1], "no condition names the other field"
