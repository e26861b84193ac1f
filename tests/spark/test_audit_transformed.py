"""`strait audit` of a link with a transformed topic and one that is not, on real brokers and real Spark: what the rule leaves
out is counted, each fault on the destination's disk is named with both offsets, and none is invented."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.kafka.admin import Admin, NewTopic
from strait.launch.base import State
from strait.state.schema import TopicPolicy
from strait.wire.records import Record
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import read_all
from support.kafka.rewriting import rewrite
from support.links.audit_command import Command
from support.links.handmade import publish
from support.links.links import Link
from support.links.transforms import Writer, assert_transformed, rule, transform, transformed

pytestmark = [pytest.mark.spark, pytest.mark.broker]

RECORDS = 4000
PLAIN = 500
FAULTS = {7: "missing", 50: "different", 51: "different", 90: "plain"}
"""Destination offset -> what is put in there."""


class Audited:
    """A link that has copied a transformed topic and another one, and has ended."""

    def __init__(self, link: Link, folder: Path) -> None:
        self.link = link
        self.folder = folder
        self.plain = f"{link.name}.plain"
        self.transform = transform(folder)
        for cluster, name in ((link.source, "source"), (link.destination, "destination")):
            Admin(cluster.client_properties, name).create([NewTopic(self.plain, 1, 1)])
        Writer(link.source, link.name, link.partitions, 1).produce(RECORDS)
        producer = Producer(link.source.client_properties)
        for number in range(PLAIN):
            producer.produce(self.plain, b"plain %d" % number, b"%d" % number)
        assert producer.flush(60) == 0
        self._publish(stopped=False)
        link.submit(ledger_seconds=3600, transforms=True)
        self.written = read_all(link.source, link.name, link.partitions)
        self.kept = [[one for one in part if transformed(one) is not None] for part in self.written]
        wanted = [len(part) for part in self.kept]
        link.until(lambda: ends(link.destination, link.name, link.partitions) == wanted, "all is copied")
        link.until(lambda: ends(link.destination, self.plain, 1) == [PLAIN], "the other topic is copied")
        assert_transformed(link.source, link.destination, link.name, link.name, link.partitions)
        self._publish(stopped=True)
        assert link.until_ended().state is State.FINISHED

    def _publish(self, *, stopped: bool) -> None:
        topics = {self.link.name: self.link.partitions, self.plain: 1}
        policies = {self.link.name: TopicPolicy(transform=self.transform)}
        publish(
            self.link.name,
            self.link.source,
            self.link.destination,
            topics,
            slots=1,
            policies=policies,
            stopped=stopped,
        )

    def command(self, *, transforms: bool = True) -> Command:
        rules = [rule(self.link.name, self.transform)] if transforms else []
        settings = {
            "clusters": {"a": self.link.source.client_properties, "b": self.link.destination.client_properties},
            "links": {
                self.link.name: {
                    "source": "a",
                    "destination": "b",
                    "pool": False,
                    "topics": {"include": [self.link.name, self.plain], "rules": rules},
                }
            },
        }
        folder = self.folder / f"audit-{transforms}"
        folder.mkdir(exist_ok=True)
        return Command(folder, settings)

    def body(self, *words: str, code: int = 0, transforms: bool = True) -> Mapping[str, Any]:
        strait = self.command(transforms=transforms)
        body = json.loads(strait(self.link.name, *words, "-o", "json", code=code))["body"]
        assert isinstance(body, dict)
        (plain,) = [one for one in body["partitions"] if one["topic"] == self.plain]
        assert (plain["verdict"], plain["records"], plain["by_batch"] > 0) == ("equal", PLAIN, True), plain
        return body


def counted(body: Mapping[str, Any], topic: str) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for one in (part for part in body["partitions"] if part["topic"] == topic):
        for it in one["differences_by_kind"]:
            found[it["kind"], it["explained"]] = found.get((it["kind"], it["explained"]), 0) + it["records"]
    return found


@pytest.mark.core
def test_a_filtered_and_masked_topic_is_audited_beside_another_one(link: Link, tmp_path: Path) -> None:
    audited = Audited(link, tmp_path)
    kept = sum(map(len, audited.kept))
    body = audited.body("--strong")
    assert body["verdict"] == "explained" and not body["unexplained"], body["differences"][:5]
    counts = counted(body, link.name)
    assert set(counts) == {("skipped", "left out by the rule"), ("missing", "quarantine: unresolved")}
    parts = [one for one in body["partitions"] if one["topic"] == link.name]
    assert sum(counts.values()) + kept + sum(one["before"] for one in parts) == RECORDS
    first = [
        next(offset for offset, one in enumerate(part) if transformed(one) is not None) for part in audited.written
    ]
    assert all(0 <= one["before"] <= first[one["partition"]] for one in parts)
    assert sum(one["by_record"] for one in parts) == sum(one["records"] for one in parts) == kept
    assert all(one["source_digest"] == one["copy_digest"] and one["tail"] == 0 for one in parts)
    digests = {one["topic"]: one["transform"] for one in body["topics"]}
    assert digests == {link.name: audited.transform.digest, audited.plain: ""}

    expected = _damaged(audited)
    body = audited.body(code=3)
    named = {
        (one["partition"], one["kind"], *(at if at < 0 else at + step for at in (one["source"], one["copy"])))
        for one in body["differences"]
        if not one["explained"]
        for step in range(one["records"])
    }
    assert named == expected


def test_a_rule_that_nobody_vouches_for_and_one_without_its_secrets_are_not_compared(
    link: Link, tmp_path: Path
) -> None:
    audited = Audited(link, tmp_path)
    body = audited.body(code=4, transforms=False)
    (why,) = {one["problem"] for one in body["partitions"] if one["topic"] == link.name}
    assert why == f"its plan, not signed, has transformation {audited.transform.digest}, and the link's rules do not"
    (tmp_path / "salt").unlink()
    body = audited.body(code=4)
    parts = [one for one in body["partitions"] if one["topic"] == link.name]
    assert {one["verdict"] for one in parts} == {"incomplete"}
    wanted = f"needs the secrets of transformation {audited.transform.digest}: `salt`: "
    assert all(one["problem"].startswith(wanted) for one in parts)
    assert any(wanted in line for line in body["not_covered"])


def _damaged(audited: Audited) -> set[tuple[int, str, int, int]]:
    """Change the destination's segments, and write a record of somebody else. Returns what is to be found."""
    link, expected = audited.link, set()
    link.destination.stop_broker(1)
    for partition in range(link.partitions):
        sources = [one.offset for one in audited.kept[partition]]

        def change(
            records: Sequence[Record], partition: int = partition, sources: Sequence[int] = sources
        ) -> list[Record]:
            found = []
            for one in records:
                fault = FAULTS.get(one.offset)
                if fault is None:
                    found.append(one)
                    continue
                kind = "missing" if fault == "missing" else "different"
                place = -1 if fault == "missing" else one.offset
                expected.add((partition, kind, sources[one.offset], place))
                if fault == "different":
                    found.append(one._replace(value=b'{"id":1}'))
                elif fault == "plain":
                    original = audited.kept[partition][one.offset]
                    found.append(one._replace(value=original.value, key=original.key))
            return found

        rewrite(link.destination.directory, link.name, partition, change)
    link.destination.start_broker(1)
    eventually(lambda: len(ends(link.destination, link.name, link.partitions)), what="the broker is back")
    producer = Producer(link.destination.client_properties)
    producer.produce(link.name, b"of somebody else", b"x", 1)
    assert producer.flush(60) == 0
    expected.add((1, "foreign", -1, len(audited.kept[1])))
    assert len(expected) == 4 * link.partitions + 1
    return expected
