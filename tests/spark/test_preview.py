"""`strait plan --preview` on real Spark and real brokers: what the slots would make of a topic's records, read in a bounded way."""

import json
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config.links import LinksFile, Spark, parse
from strait.control.plane import Control
from strait.errors import ConfigError
from strait.launch.preview import Sample, evaluate
from strait.planning.review.preview import Preview
from support.kafka.topics import create

pytestmark = [pytest.mark.spark, pytest.mark.broker]

MASK = {
    "format": {"value": "json", "schema": "id BIGINT, email STRING, country STRING"},
    "where": "v.country <> 'US'",
    "key": "concat(secret.salt, CAST(key AS STRING))",
    "fields": {"set": {"email": "regexp_replace(v.email, '^[^@]+', 'x')"}, "drop": ["country"]},
    "malformed": "quarantine",
    "secrets": {"salt": "${directory:/nowhere/at/all:salt}"},
}


def file(clusters: Any, topic: str, transform: dict[str, Any] | None) -> LinksFile:
    rules = [] if transform is None else [{"match": topic, "transform": transform}]
    ends = {"a": dict(clusters.source.client_properties), "b": dict(clusters.destination.client_properties)}
    link = {"source": "a", "destination": "b", "topics": {"include": [topic], "rules": rules}}
    return parse({"clusters": ends, "links": {f"p{topic[-8:]}": link}}, where="links file")


def preview(clusters: Any, topic: str, transform: dict[str, Any] | None) -> Preview:
    with Control(file(clusters, topic, transform), f"p{topic[-8:]}") as control:
        return control.preview(control.propose(), topic)


def fill(clusters: Any, topic: str, records: int) -> None:
    create(clusters.source, topic, 2)
    producer = Producer(clusters.source.client_properties)
    for number in range(records):
        made = {"id": number, "email": f"p{number}@example.com", "country": "US" if number % 4 == 0 else "DE"}
        value = b"{" if number == records - 5 else json.dumps(made).encode()
        producer.produce(topic, value, f"k{number}".encode(), number % 2, headers=[("h", b"1")])
    assert producer.flush(60) == 0


@pytest.mark.core
def test_recent_records_are_shown_before_and_after(clusters: Any, topic_name: str) -> None:
    fill(clusters, topic_name, 3_000)
    found = preview(clusters, topic_name, MASK)
    assert not found.refusal and not found.waiting
    assert len(found.records) <= 1_000 and found.count("left_out") == 250 and found.count("malformed") == 1
    shown = {2 * one.offset + one.partition: one for one in found.chosen}
    assert len(shown) == 10 and min(shown) > 2_900
    number, one = next((number, one) for number, one in shown.items() if one.result == "copied")
    assert one.after is not None and one.before.key == f"k{number}".encode()
    assert one.after.key == f"<secret.salt>k{number}".encode(), "a secret is not even read"
    assert one.after.value == f'{{"id":{number},"email":"x@example.com"}}'.encode()
    assert one.after.headers == (("h", b"1"),)
    (bad,) = [one for one in shown.values() if one.result == "malformed"]
    assert bad.before.value == b"{" and bad.after is None


def test_records_of_a_divided_topic_are_shown_with_the_route_that_takes_them(clusters: Any, topic_name: str) -> None:
    fill(clusters, topic_name, 3_000)
    third, rare, rest = (f"{topic_name}.{name}" for name in ("third", "rare", "rest"))
    routes = [{"when": "v.id % 3 = 0", "to": third}, {"when": "v.id IN (2001, 2002)", "to": rare}, {"to": rest}]
    found = preview(clusters, topic_name, MASK | {"route": routes})
    assert not found.refusal
    kept = [number for number in range(2_000, 3_000) if number % 4 and number != 2_995]
    wanted = {
        2 * one.offset + one.partition: third if number % 3 == 0 else rare if number == 2_002 else rest
        for one in found.records
        if (number := 2 * one.offset + one.partition) in kept
    }
    assert {2 * one.offset + one.partition: one.to for one in found.records if one.result == "copied"} == wanted
    assert {one.to for one in found.records if one.result != "copied"} == {""}
    assert found.taken == {name: list(wanted.values()).count(name) for name in (third, rare, rest)}
    assert found.taken[rare] == 1, "2001 is of the route before"
    assert rare in {one.to for one in found.chosen}, "an old record, and the only one of its route"
    assert all(one.after is not None and b"@example.com" in (one.after.value or b"") for one in found.chosen if one.to)
    assert f"to {rare}: 1" in list(found.lines(hidden=False))
    refused = preview(clusters, topic_name, MASK | {"route": [{"when": "rand() < 0.5", "to": third}, {"to": rest}]})
    assert refused.refusal.startswith("route.when: Rand is not among")


def test_what_cannot_be_shown_is_said(clusters: Any, topic_name: str) -> None:
    create(clusters.source, topic_name, 1)
    empty = preview(clusters, topic_name, MASK)
    assert not empty.refusal and "no record" in "".join(empty.lines(hidden=False))
    refused = preview(clusters, topic_name, {"where": "rand() < 0.5"})
    assert refused.refusal.startswith("where: Rand is not among"), "said without a record, too"
    with pytest.raises(ConfigError, match="do not transform"):
        preview(clusters, topic_name, None)


def test_values_in_avro_are_shown_as_json(clusters: Any, topic_name: str) -> None:
    create(clusters.source, topic_name, 1)
    producer = Producer(clusters.source.client_properties)
    for value in (b"\0\0\0\0\x07\x02\x04ab", b"\0\0\0\0\x07\x01\x04ab", b"\0\0\0\0\x07\x02\x04a"):
        producer.produce(topic_name, value)
    assert producer.flush(60) == 0
    schema = '{"type":"record","name":"A","fields":[{"name":"id","type":"int"},{"name":"mail","type":"string"}]}'
    found = preview(
        clusters,
        topic_name,
        {
            "format": {"value": "avro", "schema": schema, "schema_id": 7},
            "where": "v.id > 0",
            "fields": {"set": {"mail": "upper(v.mail)"}},
        },
    )
    assert not found.refusal
    assert [(one.result, one.before.value, one.after and one.after.value) for one in found.chosen] == [
        ("copied", b'{"id":1,"mail":"ab"}', b'{"id":1,"mail":"AB"}'),
        ("left_out", b'{"id":-1,"mail":"ab"}', None),
        ("malformed", b"\0\0\0\0\x07\x02\x04a", None),
    ]


def test_results_are_those_of_each_record() -> None:
    """Null is not the same as empty, and bytes that are no text stay as they are."""
    samples = [Sample(0, 1, 5, None, b""), Sample(0, 2, 5, b"", None), Sample(3, 1, 5, b"\xff", b"\xfe")]
    found = evaluate({"t": {"where": "coalesce(key, X'61') <> X'62'"}}, samples, Spark())
    assert [(one.kind, one.key, one.value) for one in found.results] == [
        ("copied", None, b""),
        ("copied", b"", None),
        ("copied", b"\xff", b"\xfe"),
    ]
    assert not found.refused
