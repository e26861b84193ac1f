"""The links file: what is right is read, what is wrong is said in one line each, with where and what to do."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from strait.config.links import load, load_link, parse, parse_topics
from strait.config.validation import parsed
from strait.errors import ConfigError

RIGHT: dict[str, Any] = {
    "clusters": {"a": {"bootstrap.servers": "h:1"}, "b": {"bootstrap.servers": "h:2", "sasl.password": "hunter2"}},
    "links": {"a-to-b": {"source": "a", "destination": "b", "topics": {"include": ["orders"]}}},
}


def with_link(**settings: Any) -> dict[str, Any]:
    return RIGHT | {"links": {"a-to-b": RIGHT["links"]["a-to-b"] | settings}}


def problems(raw: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(raw, where="links file")
    return caught.value.problems


def test_a_links_file_may_be_yaml_or_json(tmp_path: Path) -> None:
    yaml_file, json_file = tmp_path / "links.yaml", tmp_path / "links.json"
    yaml_file.write_text(yaml.safe_dump(RIGHT))
    json_file.write_text(parse(RIGHT, where="x").model_dump_json())
    assert load(yaml_file) == load(json_file)


def test_two_links_do_not_copy_the_same_heartbeats() -> None:
    beating = RIGHT["links"]["a-to-b"] | {"heartbeats": {"enabled": True}}
    back = beating | {"source": "b", "destination": "a"}
    named = beating | {"naming": {"policy": "alias", "alias": "north"}}
    assert parse(RIGHT | {"links": {"one": beating, "back": back, "named": named}}, where="x")
    (problem,) = problems(RIGHT | {"links": {"one": beating, "two": beating, "quiet": RIGHT["links"]["a-to-b"]}})
    assert problem.startswith("links.two.heartbeats: link one already copies the heartbeats of a to b")


def test_what_is_left_out_has_the_documented_defaults() -> None:
    link = parse(RIGHT, where="x").links["a-to-b"]
    assert link.create_topics
    assert link.start == "earliest"
    assert link.replication_factor is None
    assert link.groups["default"].slots == 1
    assert link.naming.policy == "identity"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"on_loss": "continue"}, "links.a-to-b.on_loss: unknown key; it belongs into `topics.rules`"),
        ({"slots": 2}, "links.a-to-b.slots: unknown key; it belongs into `groups`"),
        ({"topics": {"include": 5}}, "links.a-to-b.topics.include: must be a list"),
        ({"topics": {"rules": {}}}, "links.a-to-b.topics.rules: must be a list"),
        ({"topics": []}, "links.a-to-b.topics: must be a block of keys and values"),
        ({"source": None}, "links.a-to-b.source: must be a text"),
        ({"slot_memory_mib": 1.5}, "links.a-to-b.slot_memory_mib: must be a whole number"),
        ({"slot_memory_mib": 100_000}, "links.a-to-b.slot_memory_mib: must be at most 65536"),
        (
            {"topics": {"include": ["orders.*"]}},
            "links.a-to-b.topics.include.0: 'orders.*' has other characters than 1 to 249 letters, digits, ., - and _; if it "
            "is an expression, list it in `regex`",
        ),
        ({"topic": {}}, "links.a-to-b.topic: unknown key; did you mean 'topics'?"),
        ({"topics": {"includ": ["x"]}}, "links.a-to-b.topics.includ: unknown key; did you mean 'include'?"),
        ({"naming": {"polici": "prefix"}}, "links.a-to-b.naming.polici: unknown key; did you mean 'policy'?"),
        ({"groups": {"default": {"slot": 2}}}, "links.a-to-b.groups.default.slot: unknown key; did you mean 'slots'?"),
        ({"create_topics": "yes"}, "links.a-to-b.create_topics: must be true or false"),
        ({"groups": {"default": {"slots": "2"}}}, "links.a-to-b.groups.default.slots: must be a whole number"),
        ({"topics": {"include": "orders"}}, "links.a-to-b.topics.include: must be a list"),
        (
            {"replication_factor": "sorce"},
            "links.a-to-b.replication_factor: must be a number from 1 to 32767 or 'source', not 'sorce'",
        ),
        (
            {"replication_factor": 0},
            "links.a-to-b.replication_factor: must be a number from 1 to 32767 or 'source', not 0",
        ),
        ({"configs": {"sinc": True}}, "links.a-to-b.configs.sinc: unknown key; did you mean 'sync'?"),
        (
            {"topics": {"rules": [{"match": "x", "overrides": {"message.timestamp.type": "LogAppendTime"}}]}},
            "links.a-to-b.topics.rules.0: overrides.message.timestamp.type: not allowed, since destination topics keep "
            "the timestamps of the source",
        ),
        ({"ledger_seconds": 9}, "links.a-to-b.ledger_seconds: must be at least 10"),
        ({"epoch_seconds": 9}, "links.a-to-b.epoch_seconds: must be at least 10"),
        ({"epoch_seconds": 60, "ledger_seconds": 60}, "links.a-to-b.epoch_seconds: unknown key"),
        ({"destination": "c"}, "links.a-to-b.destination: `clusters` has no cluster 'c'"),
        ({"naming": {"policy": "prefix"}}, "links.a-to-b.naming: policy 'prefix' needs `prefix`"),
        ({"naming": {"prefix": "x."}}, "links.a-to-b.naming: policy 'identity' does not use `prefix`"),
        ({"groups": {"gold": {}}}, "links.a-to-b: groups: `default` is required"),
        ({"topics": {"rules": [{}]}}, "links.a-to-b.topics.rules.0.match: is required"),
        (
            {"topics": {"rules": [{"match": "x"}, {"match": "y", "on_los": "halt"}]}},
            "links.a-to-b.topics.rules.1.on_los: unknown key; did you mean 'on_loss'?",
        ),
        (
            {"topics": {"rules": [{"match": "x", "clas": "gold"}]}},
            "links.a-to-b.topics.rules.0.clas: unknown key; did you mean 'class'?",
        ),
        (
            {"topics": {"rules": [{"match": "x", "class": "gold"}], "budget": {"classes": {"golf": 1}}}},
            "links.a-to-b.topics: rules.0.class: budget.classes has no class 'gold'; did you mean 'golf'?",
        ),
        (
            {"topics": {"budget": {"classes": {"gold": 0}}}},
            "links.a-to-b.topics.budget.classes.gold: must be at least 1",
        ),
        (
            {"topics": {"budget": {"backfill": {"bytes_per_second": 9}}}},
            "links.a-to-b: topics.budget.backfill: the link has no `backfill`, so no task group that it limits",
        ),
        (
            {"topics": {"budget": {"backfill": {"hours": ["22:00-06:00"]}}}},
            "links.a-to-b.topics.budget.backfill: `hours` and `timezone` belong together: set both or neither",
        ),
        (
            {"topics": {"budget": {"backfill": {"timezone": "UTC", "bytes_per_second": 9}}}},
            "links.a-to-b.topics.budget.backfill: `hours` and `timezone` belong together: set both or neither",
        ),
        (
            {"topics": {"budget": {"backfill": {}}}},
            "links.a-to-b.topics.budget.backfill: set `bytes_per_second`, `hours` or both",
        ),
        (
            {"topics": {"budget": {"backfill": {"hours": ["22:00"], "timezone": "Europe/Berlni"}}}},
            "links.a-to-b.topics.budget.backfill.hours.0: '22:00' is not a span of hours such as '22:00-06:00'",
        ),
        (
            {"topics": {"budget": {"backfill": {"hours": ["22:00-06:00"], "timezone": "Europe/Berlni"}}}},
            "links.a-to-b.topics.budget.backfill.timezone: 'Europe/Berlni' is not an IANA time zone; "
            "did you mean 'Europe/Berlin'?",
        ),
        (
            {"naming": {"policy": "sufix"}},
            "links.a-to-b.naming.policy: must be 'identity', 'prefix', 'suffix', 'alias' or 'rules'; "
            "did you mean 'suffix'?",
        ),
        (
            {"topics": {"rules": [{"match": "x", "naming": {"rule": []}}]}},
            "links.a-to-b.topics.rules.0.naming.rule: unknown key; did you mean 'rules'?",
        ),
        (
            {"topics": {"rules": [{"match": "x", "naming": {"policy": "alias", "prefix": "x"}}]}},
            "links.a-to-b.topics.rules.0.naming: policy 'alias' does not use `prefix`",
        ),
        (
            {"naming": {"policy": "rules", "rules": [{"match": "(x)", "replac": "y"}]}},
            "links.a-to-b.naming.rules.0.replac: unknown key; did you mean 'replace'?",
        ),
        (
            {"naming": {"policy": "rules", "rules": [{"match": "(x)", "replace": r"\2"}]}},
            r"links.a-to-b.naming.rules.0: '\\2' does not fit '(x)': invalid group reference",
        ),
        ({"naming": {"policy": "rules"}}, "links.a-to-b.naming: policy 'rules' needs `rules`"),
        (
            {"naming": {"policy": "alias", "separator": ""}},
            "links.a-to-b.naming.separator: must have at least 1 characters",
        ),
        (
            {"topics": {"exclude": ["a{9999999999999999999}"]}},
            "links.a-to-b.topics.exclude.0: 'a{9999999999999999999}'",
        ),
        ({"topics": {"exclude": ["(" * 3000]}}, "links.a-to-b.topics.exclude.0: '((((("),
        ({"start": "2026-01-31"}, "links.a-to-b.start: the time '2026-01-31' needs a time zone"),
        ({"start": "1931-01-01T00:00:00Z"}, "links.a-to-b.start: the time '1931-01-01T00:00:00Z' is before 1970"),
        ({"start": -1}, "links.a-to-b.start: -1 is none of `earliest`, `latest`"),
        ({"start": True}, "links.a-to-b.start: True is none of `earliest`, `latest`"),
        ({"start": {}}, "links.a-to-b.start: {} is none of `earliest`, `latest`"),
        ({"start": {"x": 1}}, "links.a-to-b.start: 'x' is not a partition"),
        ({"start": {"0": "1"}}, "links.a-to-b.start: '1' is not an offset"),
    ],
)
def test_a_wrong_setting_is_one_line_with_its_place(settings: dict[str, Any], problem: str) -> None:
    assert [line for line in problems(with_link(**settings)) if line.startswith(problem)]


def test_the_deprecated_name_of_the_ledger_s_interval_is_understood() -> None:
    assert parse(with_link(epoch_seconds=60), where="test").links["a-to-b"].ledger_seconds == 60


def test_a_wrong_regular_expression_is_named() -> None:
    (problem,) = problems(with_link(topics={"regex": ["ok", "("]}))
    assert problem.startswith("links.a-to-b.topics.regex.1: '(' is not a regular expression")


def test_every_problem_is_reported_at_once() -> None:
    assert len(problems(with_link(start="never", ledger_seconds=0, topcs={}))) == 3


def test_a_name_that_leads_nowhere_is_reported_beside_wrong_values() -> None:
    assert problems(with_link(start="never", source="A", destination="bb"))[1:] == (
        "links.a-to-b.source: `clusters` has no cluster 'A'",
        "links.a-to-b.destination: `clusters` has no cluster 'bb'; did you mean 'b'?",
    )


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("latest", "latest"),
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1700000000000", 1_700_000_000_000),
        ("{0: 5, 3: 0}", {0: 5, 3: 0}),
    ],
)
def test_a_start_is_a_word_a_time_or_offsets(tmp_path: Path, said: str, meant: Any) -> None:
    file = tmp_path / "links.yaml"
    file.write_text(yaml.safe_dump(with_link(start="HERE")).replace("HERE", said))
    found = load(file)
    assert found.links["a-to-b"].start == meant
    assert parse(json.loads(found.model_dump_json()), where="x") == found


def test_source_equal_to_destination_is_refused_where_names_stay_the_same() -> None:
    (problem,) = problems(with_link(destination="a"))
    assert "each topic would be copied onto itself" in problem
    parse(with_link(destination="a", naming={"policy": "suffix", "suffix": ".copy"}), where="x")
    rules = [{"match": ".*", "naming": {"policy": "suffix", "suffix": ".copy"}}]
    parse(with_link(destination="a", topics={"rules": rules}), where="x")


def test_a_cluster_without_address_is_refused() -> None:
    assert "clusters.b: `bootstrap.servers` is required" in problems(RIGHT | {"clusters": {"a": {}, "b": {}}})


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "links.yaml"
    file.write_text("clusters: {}\nclusters: {}\nlinks: {}\n")
    with pytest.raises(ConfigError, match="duplicate key 'clusters'"):
        load(file)


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read: No such file.*set the path of an existing, readable file"):
        load(tmp_path / "nothing.yaml")


def test_one_link_is_read_without_the_mistakes_of_another(tmp_path: Path) -> None:
    file = tmp_path / "links.yaml"
    file.write_text(yaml.safe_dump(RIGHT | {"links": RIGHT["links"] | {"other": {"sorce": "a"}}}))
    assert set(load_link(file, "a-to-b").links) == {"a-to-b"}
    with pytest.raises(ConfigError, match=r"`links` has no link 'a-to-c'; did you mean 'a-to-b'\?"):
        load_link(file, "a-to-c")


def test_the_live_whitelist_is_checked_like_the_file() -> None:
    assert parse_topics('{"include": ["x"]}', where="Variable").include == ("x",)
    (rule,) = parse_topics(
        '{"rules": [{"match": "x", "start": {"0": 5}, "on_loss": "restart"}]}', where="Variable"
    ).rules
    assert (rule.start, rule.on_loss, rule.on_foreign) == ({0: 5}, "restart", "halt")
    with pytest.raises(ConfigError, match=r"Variable: exclud: unknown key; did you mean 'exclude'\?"):
        parse_topics('{"exclud": []}', where="Variable")
    with pytest.raises(ConfigError, match="Variable: is not JSON"):
        parse_topics("{", where="Variable")


def test_no_value_of_a_cluster_is_ever_in_an_error() -> None:
    raw = with_link(topcs={}) | {"clusters": {"a": {"bootstrap.servers": 1}, "b": RIGHT["clusters"]["b"]}}
    with pytest.raises(ConfigError) as caught:
        parse(raw, where="x")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty (keys: clusters, links, pools)"),
        ("- a\n", "must be an object with the keys clusters, links, pools"),
        ("clusters: {}\n", "links: is required"),
        (
            "clusters: {}\nlinks: {l: [}\n",
            "is neither YAML nor JSON: line 2, column 13: expected the node content, but found '}'",
        ),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line_with_the_place(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "links.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert str(refused.value) == f"links file {file}: {problem}"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "a: {bootstrap.servers: {{ .Values.a }}}",
            "column 27: a key must be a text; if this is a template such as {{ x }}",
        ),
        ("? [b]\n  : {}", "column 5: a key must be a text"),
        ("a: !!int 'x'", "column 6: the value cannot be read as int; quote it if it is a text"),
        ("a: !!int ''", "column 6: the value cannot be read as int"),
        ("a: 0x_", "column 6: the value cannot be read as int"),
        ("a: 0b_", "column 6: the value cannot be read as int"),
        ("a: !!float ''", "column 6: the value cannot be read as float"),
        ("a: !!bool x", "column 6: the value cannot be read as bool"),
        ("a: !!timestamp x", "column 6: the value cannot be read as timestamp"),
        ("a: {b: !!timestamp 2026-13-01}", "column 10: the value cannot be read as timestamp"),
        (r'a: "\UFFFFFFFF"', "column 9: cannot be read: "),
    ],
)
def test_a_text_that_yaml_cannot_convert_is_refused_with_its_place(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parsed(f"clusters:\n  {line}\nlinks: {{}}\n", "links file")
    assert str(refused.value).startswith(f"links file: is neither YAML nor JSON: line 2, {problem}")
    assert "\n" not in str(refused.value)


def test_a_value_that_cannot_be_converted_is_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        parsed("sasl.password: !!int hunter2", "x")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0100", "0100"), ("-017", "-017"), ("1:30", "1:30"), ("1:30.5", "1:30.5"), ("-190:20:30", "-190:20:30"),
        ("0", 0), ("-7", -7), ("1_000", 1000), ("0x1F", 31), ("0b11", 3), ("1.5", 1.5), ("-0.5", -0.5), ("1.0e+3", 1000.0),
        (".5", 0.5), ("true", True), ("2026-11-28", "2026-11-28"),
    ],
)  # fmt: skip
def test_a_number_is_read_as_it_is_written_or_as_a_text(written: str, read: object) -> None:
    (found,) = parsed(f"- {written}", "x")
    assert found == read and type(found) is type(read)


def test_a_setting_with_a_leading_zero_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "links.yaml"
    file.write_text(yaml.safe_dump(with_link(ledger_seconds="HERE")).replace("HERE", "0100"))
    with pytest.raises(ConfigError, match="ledger_seconds: must be a whole number"):
        load(file)


def test_merged_keys_give_way_to_those_of_the_block() -> None:
    text = """
    base: &base {client.id: base, log_level: "3"}
    more: &more {<<: *base, log_level: "4", client.rack: r}
    own: {client.id: own, <<: *more}
    several: {<<: [{client.id: first}, *base]}
    """
    found = parsed(text, "x")
    assert found["base"] == {"client.id": "base", "log_level": "3"}
    assert found["more"] == {"client.id": "base", "log_level": "4", "client.rack": "r"}
    assert found["own"] == {"client.id": "own", "log_level": "4", "client.rack": "r"}
    assert found["several"] == {"client.id": "first", "log_level": "3"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &a {x: 1}\nb: {<<: *a, y: 1, y: 2}", "line 2, column 19: duplicate key 'y'"),
        ("a: &a {x: 1}\nb: {<<: *a, <<: *a}", "line 2, column 13: duplicate key '<<'"),
        ("b: {<<: {y: 1, y: 2}}", "line 1, column 16: duplicate key 'y'"),
        ("a: &a {<<: *a}", "line 1, column 4: found unconstructable recursive node"),
        ("a: {<<: 1}", "line 1, column 9: expected a mapping or list of mappings for merging, but found scalar"),
    ],
)
def test_keys_that_stand_twice_beside_or_in_merged_ones_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parsed(text, "x")
    assert str(refused.value) == f"x: is neither YAML nor JSON: {problem}"
