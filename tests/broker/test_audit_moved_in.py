"""Audits of links that took over from another tool: its records are compared, too, and known as moved in."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strait.config.links import parse
from strait.control.plane import Control
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.topics import create
from support.links.auditing import planned_between
from support.links.copying import copying
from support.links.moving import CommandLine, copied_by_hand, settings, write

pytestmark = pytest.mark.broker


@pytest.fixture
def moved(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[str]:
    """The name of a link. Another tool had replicated 800 records, and 5 of them twice. Links in both
    directions have copied since, under the same topic name; the cluster of the destination has producers of its own."""
    source, destination = clusters.source, clusters.destination
    link = "m" + topic_name[-8:]
    topic, back = f"{link}-orders", f"{link}-back"
    for cluster in (source, destination):
        create(cluster, topic)
    write(source, topic, range(1000))
    copied_by_hand(source, destination, topic, range(800))
    copied_by_hand(source, destination, topic, range(795, 800))
    rules = {"include": [topic], "rules": [{"match": topic, "on_foreign": "expect"}]}
    links = settings(source, destination, link, topics=rules)
    links["links"][back] = {"source": "destination", "destination": "source", "topics": rules}
    (tmp_path / "stored.csv").write_text(f"{topic},0,795\n")
    assert CommandLine(tmp_path, links).moves(link, "stored.csv")[0]["start"] == 800
    file = parse(links, where="links file")
    with (
        Control(file, link) as there,
        Control(file, back) as again,
        copying(there, tmp_path / "there"),
        copying(again, tmp_path / "back"),
    ):
        eventually(lambda: ends(destination, topic, 1) == [1005], what="the rest")
        write(destination, topic, range(5000, 5050))
        eventually(lambda: ends(source, topic, 1) == [1050], what="those of the destination's own producers")
        yield link


def test_records_that_another_tool_had_replicated_are_compared_and_counted_as_moved_in(
    clusters: Any, moved: str
) -> None:
    found = planned_between(clusters.source, clusters.destination, moved)()
    (partition,) = found.body["partitions"]
    assert (partition["moved_in"], found.total("records")) == (800, 1000)
    assert found.unexplained == {}, found.differences
    counts = {(one["kind"], one["explained"]): one["records"] for one in found.body["differences_by_kind"]}
    assert counts[("duplicate", "moved in")] == 5
    assert counts[("foreign", "on_foreign: expect")] == 50, "no moved-in record is one of somebody else"
    assert found.body["verdict"] == "explained"

    found = planned_between(clusters.destination, clusters.source, f"{moved}-back")()
    assert found.unexplained == {}, found.differences
    (partition,) = found.body["partitions"]
    assert {"kind": "skipped", "explained": "moved in", "records": 805} in partition["differences_by_kind"]
    assert found.total("records") == 50


def test_a_moved_in_record_that_the_other_tool_lost_is_missing(clusters: Any, topic_name: str, tmp_path: Path) -> None:
    source, destination = clusters.source, clusters.destination
    link = "m" + topic_name[-8:]
    topic = f"{link}-orders"
    for cluster in (source, destination):
        create(cluster, topic)
    write(source, topic, range(1000))
    copied_by_hand(source, destination, topic, range(300))
    copied_by_hand(source, destination, topic, range(302, 800))
    links = settings(source, destination, link)
    (tmp_path / "stored.csv").write_text(f"{topic},0,800\n")
    strait = CommandLine(tmp_path, links)
    (move,) = strait.moves("stored.csv", "--force", "--reason", "to be audited")
    assert move["start"] == 800
    with Control(parse(links, where="links file"), link) as control, copying(control, tmp_path):
        eventually(lambda: ends(destination, topic, 1) == [998], what="the rest")
    found = planned_between(source, destination, link)()
    assert found.unexplained == {"missing": 2}
    assert [(one["kind"], one["source"], one["records"]) for one in found.differences] == [("missing", 300, 2)]
