"""Names and selection on real brokers: what is created and copied under which name, what is refused, what is
imported."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from strait.cli.main import app
from strait.config import naming
from strait.config.links import LinksFile, load, parse
from strait.control.outcome import Outcome
from strait.control.plane import Control
from strait.errors import ConfigError
from strait.reasons import Reason
from strait.state.reader import StateReader
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_equal, read_all
from support.kafka.topics import create, exists, produce
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeFile = Callable[..., LinksFile]


@pytest.fixture
def link(topic_name: str) -> str:
    return "n" + topic_name[-8:]


@pytest.fixture
def make_file(clusters: Any, link: str) -> MakeFile:
    """A links file with one link; every topic of a test has the link's name in its own."""

    def make(**settings: Any) -> LinksFile:
        sides = {"a": clusters.source, "b": clusters.destination}
        base = {"source": "a", "destination": "b", "topics": {"regex": [f".*{link}.*"]}}
        raw = {name: dict(cluster.client_properties) for name, cluster in sides.items()}
        return parse({"clusters": raw, "links": {link: base | settings}}, where="links file")

    return make


def skipped(outcome: Outcome, link: str) -> dict[str, Reason]:
    found = outcome.proposal.survey.selection.skipped
    return {skip.topic: skip.reason for skip in found if link in skip.topic}


@pytest.mark.core
def test_copies_are_created_and_filled_under_their_names(
    clusters: Any, make_file: MakeFile, link: str, tmp_path: Path
) -> None:
    names = {
        f"{link}-orders": f"a.{link}-orders",
        f"{link}-payments": f"{link}-payments.copy",
        f"raw.{link}.v2": f"v2_{link}",
    }
    for topic in [*names, f"b.{link}-came-from-b", f"{link}-bad"]:
        create(clusters.source, topic)
        produce(clusters.source, topic, 20)
    rules = [
        {"match": ".*-payments", "naming": {"policy": "suffix", "suffix": ".copy"}},
        {
            "match": r"raw\..*",
            "naming": {"policy": "rules", "rules": [{"match": r"raw\.(.*)\.(v\d)", "replace": r"\2_\1"}]},
        },
        {"match": ".*-bad", "naming": {"policy": "rules", "rules": [{"match": "(.*)", "replace": r"\1/x"}]}},
    ]
    topics = {"regex": [f".*{link}.*"], "rules": rules}
    with Control(make_file(topics=topics, naming={"policy": "alias"}), link) as control:
        outcome = control.apply()
        assert sorted(outcome.created) == sorted(names.values())
        assert {topic.source: topic.destination for topic in outcome.plan.topics} == names
        assert skipped(outcome, link) == {
            f"b.{link}-came-from-b": Reason.CAME_FROM_DESTINATION,
            f"{link}-bad": Reason.NO_NAME,
        }
        assert not control.apply().published
    slots = EngineLink(link, clusters.source, clusters.destination, tmp_path, dict.fromkeys(names, 1))
    try:
        slots.start_slot()
        eventually(
            lambda: all(ends(clusters.destination, name, 1) == [20] for name in names.values()),
            what=lambda: f"20 records in each copy: {slots.log()}",
            within_seconds=180,
        )
        for topic, name in names.items():
            assert_equal(read_all(clusters.source, topic, 1), read_all(clusters.destination, name, 1))
    finally:
        slots.stop()


def test_a_name_that_brokers_take_for_another_waits_alone(clusters: Any, make_file: MakeFile, link: str) -> None:
    for topic in (f"{link}-one", f"{link}-two"):
        create(clusters.source, topic)
    rules = [{"match": ".*-one", "replace": f"{link}.x"}, {"match": ".*-two", "replace": f"{link}_x"}]
    naming = {"policy": "rules", "rules": rules}
    with Control(make_file(topics={"include": [f"{link}-one"]}, naming=naming), link) as control:
        assert control.apply().created == (f"{link}.x",)
    with Control(make_file(naming=naming), link) as control:
        risks = control.forecast(control.propose()).risks
        assert (f"{link}-two", "similar_names") in [(risk.topic, risk.code) for risk in risks]
        outcome = control.apply()
    assert [topic.source for topic in outcome.plan.topics] == [f"{link}-one"]
    (waits,) = outcome.plan.waiting
    assert (waits.topic, waits.reason) == (f"{link}-two", Reason.DESTINATION_MISSING)
    assert "collides with existing topic" in waits.detail


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (
            {"topics": {"regex": ["x", "LINK-(a|aa)+b"]}},
            r"topics\.regex\.1: the regular expression '.*-\(a\|aa\)\+b' takes",
        ),
        (
            {"naming": {"policy": "rules", "rules": [{"match": "(LINK)-.*", "replace": r"\1"}]}},
            r"naming: topics .*-a{80} and .*-orders would both become n",
        ),
    ],
)
def test_an_edit_that_cannot_be_leaves_the_last_good_plan_in_force(
    clusters: Any, make_file: MakeFile, link: str, settings: dict[str, Any], error: str
) -> None:
    for topic in (f"{link}-orders", f"{link}-{'a' * 80}"):
        create(clusters.source, topic)
    with Control(make_file(), link) as control:
        good = control.apply().plan
    wrong = json.loads(json.dumps(settings).replace("LINK", link))
    with Control(make_file(**wrong), link) as control, pytest.raises(ConfigError, match=error):
        control.apply()
    with StateReader(clusters.destination.client_properties, "b", link) as state:
        state.catch_up()
        assert state.plans["default"] == good


def test_a_new_topic_that_would_get_the_name_of_a_copied_one_stops_no_other(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    naming = {"policy": "rules", "rules": [{"match": r"(.*)\.(prod|test)", "replace": r"\1"}]}
    create(clusters.source, f"{link}-pays.prod")
    with Control(make_file(naming=naming), link) as control:
        assert control.apply().created == (f"{link}-pays",)
        for topic in (f"{link}-pays.test", f"{link}-orders"):
            create(clusters.source, topic)
        outcome = control.apply()
        assert outcome.created == (f"{link}-orders",)
        skipped = {skip.topic: skip.detail for skip in outcome.proposal.survey.selection.skipped}
    assert [topic.source for topic in outcome.plan.topics] == [f"{link}-orders", f"{link}-pays.prod"]
    assert skipped[f"{link}-pays.test"] == f"its destination topic {link}-pays is that of topic {link}-pays.prod, too"


def test_what_mirror_maker_2_was_told_is_planned_on_the_same_clusters(clusters: Any, link: str, tmp_path: Path) -> None:
    for topic in (f"{link}-orders", f"{link}-other", f"b.{link}-orders"):
        create(clusters.source, topic)
    addresses = {
        alias: cluster.client_properties["bootstrap.servers"]
        for alias, cluster in (("a", clusters.source), ("b", clusters.destination))
    }
    (tmp_path / "mm2.properties").write_text(
        "clusters = a, b\n"
        + "".join(f"{alias}.bootstrap.servers = {address}\n" for alias, address in addresses.items())
        + f"a->b.enabled = true\na->b.topics = {link}-orders, b\\\\.{link}.*\nreplication.factor = 1\n"
        + "emit.heartbeats.enabled = false\n"
    )
    done = CliRunner().invoke(app, ["import", "mm2", str(tmp_path / "mm2.properties"), "--link", link])
    (tmp_path / "links.yaml").write_text(done.stdout)
    with Control(load(tmp_path / "links.yaml"), link) as control:
        outcome = control.apply()
    assert outcome.created == (f"a.{link}-orders",)
    assert skipped(outcome, link)[f"b.{link}-orders"] == Reason.CAME_FROM_DESTINATION
    assert exists(clusters.destination, f"a.{link}-orders")


@pytest.mark.parametrize("prefix", ["eu.", ""])
def test_two_links_with_prefixes_and_a_regular_expression_do_not_copy_each_others_copies(
    clusters: Any, link: str, prefix: str
) -> None:
    """Every cycle of each once made new topics of the other's: 2 topics became 71 within seconds."""
    ends_of = {"a": clusters.source, "b": clusters.destination}
    create(clusters.source, f"{link}-orders")
    create(clusters.destination, f"{link}-clicks")
    topics = {"regex": [f".*{link}-.*"]}
    blocks = {
        f"{link}-there": {
            "source": "a",
            "destination": "b",
            "topics": topics,
            "naming": {"policy": "prefix", "prefix": prefix} if prefix else {"policy": "identity"},
        },
        f"{link}-back": {
            "source": "b",
            "destination": "a",
            "topics": topics,
            "naming": {"policy": "prefix", "prefix": "us."},
        },
    }
    properties = {name: dict(cluster.client_properties) for name, cluster in ends_of.items()}
    file = parse({"clusters": properties, "links": blocks}, where="links file")
    with Control(file, f"{link}-there") as there, Control(file, f"{link}-back") as back:
        created = [control.apply().created for control in (there, back) * 3]
    assert created == [(f"{prefix}{link}-orders",), (f"us.{link}-clicks",), (), (), (), ()]


def test_while_the_plan_of_the_link_back_cannot_be_read_nothing_of_it_is_taken_for_new(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    """As during an upgrade, in which the other link has a newer version: names would grow to and fro without end."""
    create(clusters.destination, f"{link}-x")
    there = make_file(naming={"policy": "prefix", "prefix": "eu."})
    back = {"source": "b", "destination": "a", "topics": {"include": [f"{link}-x"]}}
    block = {
        "clusters": {name: dict(properties) for name, properties in there.clusters.items()},
        "links": {f"{link}-back": back | {"naming": {"policy": "prefix", "prefix": "us."}}},
    }
    with Control(parse(block, where="links file"), f"{link}-back") as control:
        assert control.apply().created == (f"us.{link}-x",)
    plans = Producer(clusters.source.client_properties)
    plans.produce(naming.plan_topic(f"{link}-back"), key=b'{"group":"default"}', value=b'{"v":2}')
    assert plans.flush(30) == 0
    try:
        with Control(there, link) as control:
            outcome = control.apply()
    finally:  # other tests plan on these clusters, too
        plans.produce(naming.plan_topic(f"{link}-back"), key=b'{"group":"default"}', value=None)
        assert plans.flush(30) == 0
    assert (outcome.created, outcome.plan.topics) == ((), ())
    (skip,) = (skip for skip in outcome.proposal.survey.selection.skipped if skip.topic == f"us.{link}-x")
    assert skip.reason is Reason.CAME_FROM_DESTINATION and "is unknown" in skip.detail
