"""Audits of what real links and other tools have copied, on real brokers: equal where nothing is wrong; and each fault that
is put in is named, with both offsets."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from strait.audit.publishing import results_of
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin
from strait.state.schema import TopicPolicy, Waiting
from strait.wire.records import Record
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.mirror_maker import mirror_maker
from support.kafka.records import read_all
from support.kafka.rewriting import rewrite
from support.kafka.rot import CHECKSUMMED, UNCHECKED, rot_in
from support.kafka.segments import BatchHeader
from support.kafka.topics import create
from support.kafka.transactions import small_transactions
from support.links.auditing import Audited, audit_copies, audit_link, planned
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
ROTTEN = 6000


def fill(cluster: Cluster, topic: str, partitions: int, records: int, *, seed: int = 1, **settings: Any) -> None:
    """Records of every awkward shape; no two are equal."""
    chance = random.Random(seed)
    producer = Producer(cluster.client_properties | {"linger.ms": 20} | settings)
    now_ms = int(time.time() * 1000)
    for number in range(records):
        producer.produce(
            topic,
            value=chance.choice([b"", chance.randbytes(chance.randrange(300)), b"x" * chance.randrange(900)]),
            key=chance.choice([b"%d %d" % (seed, number), None]),
            headers=[("n", b"%d" % number), *chance.choice([[], [("a", None)]])],
            timestamp=now_ms + number,
            partition=number % partitions,
        )
        producer.poll(0)
    assert producer.flush(60) == 0


def assert_equal(found: Audited, records: int) -> None:
    assert found.unexplained == {}, found.differences[:5]
    assert found.body["verdict"] in ("equal", "explained"), found.body
    assert found.total("records") == found.total("by_batch") + found.total("by_record") == records
    assert all(one["source_digest"] == one["copy_digest"] for one in found.body["partitions"])


@pytest.mark.core
def test_a_link_s_copy_of_batches_transactions_and_tiny_batches_is_equal_and_again_gives_the_same_certificate(
    make_link: MakeLink, topic_name: str
) -> None:
    plain, lively, tiny = (f"{topic_name}.{name}" for name in ("plain", "transactions", "tiny"))
    link = make_link(topics={plain: 2, lively: 2, tiny: 2})
    link.make_topics()
    fill(link.source, plain, 2, 4000, **{"compression.type": "lz4"})
    fill(link.source, tiny, 2, 400, seed=2, **{"batch.num.messages": 1, "linger.ms": 0})
    link.publish()
    link.start_slot()
    with small_transactions(link, lively, 20, seed=1):
        pass
    link.until_seen()

    found = audit_link(link)
    assert_equal(found, link.copied())
    of = {topic: [one for one in found.body["partitions"] if one["topic"] == topic] for topic in link.topics}
    assert sum(one["by_batch"] for one in of[plain]) == 4000
    assert sum(one["by_record"] for one in of[tiny]) > 0, "they were merged"
    assert len(found.results) > 6
    assert audit_link(link).whole["sha256"] == found.whole["sha256"]
    assert_equal(audit_link(link, strong=True), link.copied())

    sample = audit_link(link, sample=0.2, seed="x", topics=(plain,), chunk_bytes=1)
    assert sample.unexplained == {}
    assert 0 < sample.total("records") < 4000
    later = audit_link(link, since_ms=int(time.time() * 1000) + 3_600_000)
    assert later.total("records") == 0


@pytest.fixture(scope="module")
def copied(clusters: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineLink]:
    """A link that has copied one topic, and has stopped."""
    link = EngineLink("rotten", clusters.source, clusters.destination, tmp_path_factory.mktemp("rotten"), {"rotten": 1})
    link.make_topics()
    fill(link.source, "rotten", 1, ROTTEN, **{"compression.type": "lz4", "batch.num.messages": 200})
    link.publish()
    slot = link.start_slot()
    link.until_copied()
    link.publish(stopped=True)
    slot.wait(60)
    yield link
    link.stop()


def checksummed(chance: random.Random, *, in_header: bool) -> Callable[[BatchHeader], int]:
    return lambda batch: chance.choice(CHECKSUMMED) if in_header else chance.randrange(CHECKSUMMED.stop, batch.size)


@pytest.mark.parametrize("side", ["source", "destination"])
def test_each_flipped_bit_on_a_disk_is_named_with_its_batch(copied: EngineLink, side: str) -> None:
    """In records, and in checksummed parts of headers."""
    cluster = copied.source if side == "source" else copied.destination
    chance = random.Random(side)
    audit = planned(copied)
    assert_equal(audit(), ROTTEN)
    for number in range(24):
        in_header = bool(number % 2)
        with rot_in(cluster.directory, "rotten", 0, chance, checksummed(chance, in_header=in_header)) as rot:
            assert not rot.problem(audit().differences)
    assert_equal(audit(), ROTTEN)


@pytest.mark.parametrize("side", ["source", "destination"])
def test_each_flipped_bit_of_an_offset_a_length_or_a_format_is_named_with_its_batch(
    copied: EngineLink, side: str
) -> None:
    """No checksum covers these: a broker may hide the rest of what it would have sent, and a batch may seem to be elsewhere."""
    cluster = copied.source if side == "source" else copied.destination
    chance = random.Random(side)
    audit = planned(copied)
    for place in UNCHECKED:
        with rot_in(cluster.directory, "rotten", 0, chance, lambda _, place=place: place) as rot:
            assert not rot.problem(audit().differences)
    assert_equal(audit(), ROTTEN)


def test_what_retention_has_deleted_is_counted_as_deleted(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    fill(link.source, topic_name, 1, 2000, **{"batch.num.messages": 50})
    link.publish()
    link.start_slot()
    link.until_copied()
    client = AdminClient(link.destination.client_properties)
    for future in client.delete_records([TopicPartition(topic_name, 0, 700)]).values():
        future.result(30)
    found = audit_link(link)
    (partition,) = found.body["partitions"]
    assert partition["deleted"] == 700
    assert found.total("records") == 1300
    assert found.unexplained == {}
    assert "700 records were deleted on one side before the audit" in found.body["not_covered"]


def test_records_that_another_producer_writes_are_foreign(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(on_foreign="expect"))
    link.make_topics()
    link.publish()
    link.start_slot()
    for seed in range(3):
        fill(link.source, topic_name, 1, 200, seed=seed)
        link.until_copied(200 * (seed + 1) + 7 * seed)
        fill(link.destination, topic_name, 1, 7, seed=100 + seed)
    link.until_seen()
    found = audit_link(link)
    assert found.total("records") == 600
    assert found.body["verdict"] == "explained"
    assert sum(one["records"] for one in found.differences if one["kind"] == "foreign") == 21
    assert all(one["kind"] == "foreign" for one in found.differences)


def test_records_in_quarantine_and_in_the_loss_log_are_explained(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(on_refused="quarantine", on_loss="continue"))
    link.make_topics(destination_configs={"max.message.bytes": "20000"})
    link.policy = link.policy.model_copy(update={"max_message_bytes": 20000})
    fill(link.source, topic_name, 1, 300, **{"batch.num.messages": 20})
    large = Producer(link.source.client_properties)
    large.produce(topic_name, random.Random(1).randbytes(50_000), b"large", 0)
    assert large.flush(30) == 0
    fill(link.source, topic_name, 1, 300, seed=2, **{"batch.num.messages": 20})
    link.publish()
    link.start_slot()
    link.until_copied(600)
    found = audit_link(link)
    assert found.body["verdict"] == "explained", found.differences
    (one,) = found.differences
    assert (one["kind"], one["source"], one["explained"]) == ("missing", 300, "quarantine: unresolved")


def test_what_the_link_does_not_replicate_is_not_said_to_be_equal(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    fill(link.source, topic_name, 1, 100)
    waits = Waiting(topic=f"{topic_name}-b", partitions=(0,), reason="destination_missing", detail="not created")
    link.publish(besides={"waiting": (waits,)})
    link.start_slot()
    link.until_copied(100)
    assert audit_link(link, topics=(topic_name,)).body["verdict"] == "equal"
    admin = AdminClient(link.source.client_properties)
    admin.create_partitions([NewPartitions(topic_name, 2)])[topic_name].result(30)
    eventually(lambda: len(audit_link(link).body["partitions"]) == 3, what="the source shows both partitions")
    found = audit_link(link)
    assert (found.body["verdict"], found.unexplained) == ("incomplete", {})
    for name in (f"{topic_name}-1: topic {topic_name} of", f"{topic_name}-b-0: not replicated: destination_missing"):
        assert any(name in line for line in found.body["not_covered"]), found.body["not_covered"]
    assert [one.topic for one in results_of(found.whole)] == [topic_name]


def test_records_behind_an_open_transaction_were_not_compared(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    fill(link.source, topic_name, 1, 100)
    link.publish()
    link.start_slot()
    link.until_copied(100)
    writer = Producer(link.source.client_properties | {"transactional.id": topic_name})
    writer.init_transactions(30)
    writer.begin_transaction()
    writer.produce(topic_name, b"open")
    assert writer.flush(30) == 0
    fill(link.source, topic_name, 1, 20, seed=2)
    found = audit_link(link)
    (one,) = found.body["partitions"]
    assert (one["verdict"], one["records"], one["tail"]) == ("equal", 100, 21)
    (result,) = results_of(found.whole)
    assert result.verified_until_ms == min(one["newest_ms"], found.plan.planned_at_ms)
    writer.abort_transaction(30)


def faulty_copy(source: Cluster, destination: Cluster, topic: str, copy: str) -> Mapping[str, int]:
    """Write a topic's records into another one as MirrorMaker 2 does, but for some faults. Returns how many of each."""
    chance, put = random.Random(7), {"missing": 0, "duplicate": 0, "different": 0, "reordered": 0}
    producer = Producer(destination.client_properties | {"linger.ms": 50, "compression.type": "gzip"})
    for partition, records in enumerate(read_all(source, topic, 2)):
        rows = [(one.value, one.key, list(one.headers), one.timestamp[1]) for one in records]
        for at in sorted(chance.sample(range(50, len(rows) - 50, 23), 10), reverse=True):
            kind = chance.choice(list(put))
            put[kind] += 1 if kind != "reordered" else 2
            match kind:
                case "missing":
                    del rows[at]
                case "duplicate":
                    rows.insert(at, rows[at])
                case "different":
                    rows[at] = (b"changed", *rows[at][1:])
                case "reordered":
                    rows[at : at + 2] = [rows[at + 1], rows[at]]
        for value, key, headers, timestamp in rows:
            producer.produce(copy, value, key, partition, headers=headers, timestamp=timestamp)
            producer.poll(0)
    assert producer.flush(60) == 0
    return put


def test_a_copy_by_order_is_compared_without_any_link(clusters: Any, topic_name: str) -> None:
    copy = f"a.{topic_name}"
    create(clusters.source, topic_name, 2)
    create(clusters.destination, copy, 2)
    fill(clusters.source, topic_name, 2, 3000)
    put = faulty_copy(clusters.source, clusters.destination, topic_name, copy)
    found = audit_copies(clusters.source, clusters.destination, {topic_name: copy}, "order")
    assert found.unexplained == {kind: count for kind, count in put.items() if count}
    assert found.body["verdict"] == "different"


def test_a_copy_that_a_real_mirror_maker_2_makes_is_equal_by_order_and_each_fault_in_it_is_named(
    own_clusters: Any, topic_name: str, tmp_path: Path
) -> None:
    clusters = own_clusters
    create(clusters.source, topic_name, 2)
    fill(clusters.source, topic_name, 2, 2000, **{"compression.type": "lz4"})
    copy = f"source.{topic_name}"
    with mirror_maker(tmp_path / "mm2", clusters.source, clusters.destination, topic_name) as mirror:
        eventually(
            lambda: mirror.require_alive() and _count(clusters.destination, copy) == 2000,
            what="everything is mirrored",
            within_seconds=240,
        )
        mirror.end()
    found = audit_copies(clusters.source, clusters.destination, {topic_name: copy}, "order")
    assert_equal(found, 2000)
    found = audit_copies(clusters.source, clusters.destination, {topic_name: copy}, "order", strong=True)
    assert_equal(found, 2000)

    clusters.destination.stop_broker(1)
    expected = set()
    for partition in range(2):
        rewrite(clusters.destination.directory, copy, partition, lambda records: at_fault(records, expected))
    clusters.destination.start_broker(1)
    found = audit_copies(clusters.source, clusters.destination, {topic_name: copy}, "order")
    named = {
        (one["kind"], *(place if place < 0 else place + step for place in (one["source"], one["copy"])))
        for one in found.differences
        for step in range(one["records"])
    }
    assert named == expected and len(expected) > 100


def at_fault(records: Sequence[Record], expected: set[tuple[str, int, int]]) -> list[Record]:
    """Of each thirty, one is missing, one is changed, and two are exchanged. A mirror without transactions keeps offsets."""
    changed = {one.offset: one for one in records}
    for one in records:
        offset = one.offset
        if offset % 30 == 3:
            del changed[offset]
            expected.add(("missing", offset, -1))
        elif offset % 30 == 13:
            changed[offset] = one._replace(value=b"changed")
            expected.add(("different", offset, offset))
        elif offset % 30 == 23 and offset + 1 in changed:
            changed[offset], changed[offset + 1] = (
                changed[offset + 1]._replace(offset=offset),
                one._replace(offset=offset + 1),
            )
            expected |= {("reordered", offset, offset + 1), ("reordered", offset + 1, offset)}
    return list(changed.values())


def _count(cluster: Cluster, topic: str) -> int:
    if topic not in Admin(cluster.client_properties, "x").observe(topic.__eq__).topics:
        return 0
    return sum(ends(cluster, topic, 2))


def test_copies_with_equal_offsets_are_compared_by_them(make_link: MakeLink, topic_name: str) -> None:
    """A new link into an empty topic without transactions keeps offsets, as Cluster Linking does."""
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    fill(link.source, topic_name, 2, 2000, **{"compression.type": "zstd"})
    link.publish()
    link.start_slot()
    link.until_copied()
    found = audit_copies(link.source, link.destination, {topic_name: topic_name}, "offset")
    assert_equal(found, 2000)
    assert found.total("by_batch") == 2000
