"""Values in Avro that are filtered and masked on real Spark and real brokers, compared by another decoder of Avro."""

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from strait.reasons import Reason
from strait.state.reader import StateReader
from strait.state.schema import TopicPolicy
from strait.state.transform import TopicTransform
from support.fixtures.waiting import eventually
from support.kafka.records import read_all
from support.links.audit_command import Command
from support.links.avro_records import transform, transformed, value
from support.links.links import Link
from support.links.transforms import rule

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def produce(link: Link, rng: random.Random, first: int, records: int, *schemas: int) -> None:
    producer = Producer(link.source.client_properties | {"compression.type": "zstd"})
    for number in range(first, first + records):
        content = value(rng, number, rng.choice(schemas))
        producer.produce(link.name, content, f"key {number}".encode(), number % link.partitions)
        producer.poll(0)
    assert producer.flush(60) == 0


def until_all_is_there(link: Link) -> None:
    written = read_all(link.source, link.name, link.partitions)
    wanted = [[made for record in records if (made := transformed(record)) is not None] for records in written]
    link.until(lambda: link.copied() >= sum(map(len, wanted)), "all records that are kept are copied", 240)
    copied = read_all(link.destination, link.name, link.partitions)
    for ours, theirs in zip(copied, wanted, strict=True):
        assert ours == [one._replace(offset=number) for number, one in enumerate(theirs)]


def stopped(link: Link) -> str:
    with StateReader(link.destination.client_properties, "destination", link.name, follow=("reports",)) as state:
        state.catch_up(30)
        rows = [row for reports in state.reports.values() for report in reports for row in report.partitions]
        return next((row.detail for row in rows if row.reason == Reason.MALFORMED_RECORD), "")


def audited(link: Link, folder: Path, made: TopicTransform) -> dict[str, Any]:
    """The body of the certificate of an audit, with the followers' part of it."""
    topics = {"include": [link.name], "rules": [rule(link.name, made)]}
    settings = {
        "clusters": {"a": link.source.client_properties, "b": link.destination.client_properties},
        "links": {link.name: {"source": "a", "destination": "b", "pool": False, "topics": topics}},
    }
    body: dict[str, Any] = json.loads(Command(folder, settings)(link.name, "--replicas", "-o", "json"))["body"]
    return body


def test_avro_is_filtered_and_masked_and_stays_avro(link: Link, tmp_path: Path) -> None:
    rng = random.Random(5)
    produce(link, rng, 0, 3_000, 7, 9)
    link.publish(slots=1, policy=TopicPolicy(transform=transform(9, 7)))
    link.submit(ledger_seconds=3600)
    link.until(lambda: link.copied() > 0, "it copies")
    produce(link, rng, 3_000, 3_000, 7, 9)
    victim = eventually(link.slot_process, what="a worker runs the slot", within_seconds=120)
    with contextlib.suppress(psutil.NoSuchProcess):
        victim.kill()
    until_all_is_there(link)
    produce(link, rng, 6_000, 1_000, 9, 12)
    link.until(
        lambda: "schema ID 12" in stopped(link),
        "a partition stops at the new schema, which `malformed` does not put aside",
    )
    link.publish(slots=1, policy=TopicPolicy(transform=transform(12, 9, 7)))
    until_all_is_there(link)
    link.publish(slots=1, policy=TopicPolicy(transform=transform(12, 9, 7)), stopped=True)
    link.until_ended()
    body = audited(link, tmp_path, transform(12, 9, 7))
    assert (body["verdict"], body["unexplained"]) == ("explained", {}), body["differences"][:5]
    assert body["records"] == body["by_record"] == link.copied()
    counts = {(one["kind"], one["explained"]) for one in body["differences_by_kind"]}
    assert counts == {("skipped", "left out by the rule"), ("missing", "quarantine: unresolved")}
