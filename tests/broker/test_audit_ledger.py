"""The destination is checked by the ledger on real brokers: without the source, and after the source's retention."""

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.audit.publishing import ResultLog, publish, results_of
from strait.config.cluster import Cluster
from strait.config.naming import ledger_topic
from support.fixtures.waiting import eventually
from support.kafka.rot import CHECKSUMMED, rot_in
from support.kafka.topics import alter, delete_before
from support.kafka.transactions import small_transactions
from support.links.auditing import audit_by_ledger, audit_link
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
RECORDS = 4000


def fill(link: EngineLink, topic: str, records: int = RECORDS) -> None:
    properties = {"compression.type": "lz4", "batch.num.messages": 100, "linger.ms": 50}
    producer = Producer(link.source.client_properties | properties)
    for number in range(records):
        producer.produce(topic, os.urandom(200), b"%d" % number, number % link.topics[topic])
        producer.poll(0)
    assert producer.flush(60) == 0


def end(link: EngineLink, slot: Any) -> None:
    """The slot writes its last rows."""
    link.publish(stopped=True)
    slot.wait(60)


@pytest.fixture
def copied(make_link: MakeLink, topic_name: str) -> EngineLink:
    """A link that has copied a topic in several intervals of the ledger, and has stopped."""
    link = make_link(topics={topic_name: 2}, ledger_seconds=1)
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    for _ in range(4):
        fill(link, topic_name, RECORDS // 4)
        link.until_copied()
    end(link, slot)
    return link


@pytest.mark.core
def test_a_copy_is_proved_without_its_source_and_verified_until_its_newest_record(
    copied: EngineLink, topic_name: str
) -> None:
    found = audit_by_ledger(copied)
    assert found.unexplained == {}, found.differences[:5]
    assert found.body["verdict"] == "equal", found.body
    assert found.total("records") == found.total("by_batch") == RECORDS
    assert audit_by_ledger(copied).whole["sha256"] == found.whole["sha256"]
    (result,) = results_of(found.whole)
    assert result.kind == "ledger"
    assert result.verified_until_ms == min(one["newest_ms"] for one in found.body["partitions"]) > 0

    delete_before(copied.source, topic_name, {0: -1, 1: -1})
    assert audit_by_ledger(copied).whole["sha256"] == found.whole["sha256"], "after the source's retention"


def test_each_bit_that_flips_on_the_destination_s_disk_is_named(copied: EngineLink, topic_name: str) -> None:
    chance = random.Random(topic_name)
    for number in range(20):
        place = None if number % 2 else lambda _: chance.choice(CHECKSUMMED)
        anywhere = place or (lambda batch: chance.randrange(CHECKSUMMED.stop, batch.size))
        with rot_in(copied.destination.directory, topic_name, 0, chance, anywhere) as rot:
            found = audit_by_ledger(copied)
            differences = [one for one in found.differences if one["kind"] == "damaged"]
            assert [one["copy"] for one in differences] == [rot.batch.base_offset], found.differences
            assert found.body["verdict"] == "different"
    assert audit_by_ledger(copied).unexplained == {}


def test_records_that_another_producer_wrote_into_the_copy_hide_nothing(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1}, ledger_seconds=1)
    link.policy = link.policy.model_copy(update={"on_foreign": "expect"})
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    for number in range(3):
        fill(link, topic_name, 500)
        foreign = Producer(link.destination.client_properties)
        foreign.produce(topic_name, b"foreign %d" % number, partition=0)
        assert foreign.flush(30) == 0
        link.until_copied(500 * (number + 1) + number + 1)
    end(link, slot)
    found = audit_by_ledger(link)
    assert found.unexplained == {}, found.differences
    assert found.total("records") + sum(one["unknown"] for one in found.body["partitions"]) == 1500
    assert found.total("records") >= 500


def test_transactions_and_merged_batches_are_proved_too(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    with small_transactions(link, topic_name, 20, seed=1):
        pass
    link.until_seen()
    end(link, slot)
    found = audit_by_ledger(link)
    assert (found.body["verdict"], found.total("records")) == ("equal", link.copied())


def test_a_backlog_that_is_larger_than_the_slot_s_memory_is_proved(make_link: MakeLink, topic_name: str) -> None:
    """The memory of a batch is used again as soon as it is sent, before it is acknowledged."""
    link = make_link(topics={topic_name: 4}, slot_memory_bytes=8 << 20)
    link.make_topics()
    properties = {"compression.type": "lz4", "batch.size": 1 << 20, "linger.ms": 50}
    producer = Producer(link.source.client_properties | properties)
    for number in range(40_000):
        producer.produce(topic_name, os.urandom(1000), b"%d" % number, number % 4)
        producer.poll(0)
    assert producer.flush(60) == 0
    link.publish()
    slot = link.start_slot()
    link.until_copied()
    end(link, slot)
    found = audit_by_ledger(link, chunk_bytes=64 << 20)
    assert found.unexplained == {}, found.differences[:5]
    assert (found.body["verdict"], found.total("records")) == ("equal", 40_000)


def test_records_of_a_killed_slot_have_no_row_until_an_audit_has_compared_them(
    make_link: MakeLink, topic_name: str
) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    eventually(link.told_for_the_ledger, what="it has written its first row, and the next one is due in an hour")
    fill(link, topic_name, 1000)
    link.until_copied()
    slot.kill()
    slot.wait(30)
    fill(link, topic_name, 1000)
    slot = link.start_slot()
    link.until_copied()
    end(link, slot)
    found = audit_by_ledger(link)
    assert (found.body["verdict"], found.total("records")) == ("incomplete", 1000)
    assert found.body["partitions"][0]["unknown"] == 1000
    there = Cluster(link.destination.client_properties, "destination")
    publish(there, link.name, found.whole)
    assert [one.kind for one in ResultLog(there, link.name).newest().values()] == ["partial"]

    publish(there, link.name, audit_link(link).whole)
    found = audit_by_ledger(link)
    assert (found.body["verdict"], found.body["partitions"][0]["unknown"]) == ("equal", 0)


def test_a_recompressing_and_a_compacted_destination_cannot_be_checked(copied: EngineLink, topic_name: str) -> None:
    alter(copied.destination, topic_name, cleanup_policy="compact")
    assert "compacted" in audit_by_ledger(copied).body["partitions"][0]["problem"]
    alter(copied.destination, topic_name, cleanup_policy="delete", compression_type="zstd")
    found = audit_by_ledger(copied)
    assert "compression.type=zstd" in found.body["partitions"][0]["problem"]
    assert found.body["verdict"] == "incomplete"


def test_without_rows_nothing_is_claimed(copied: EngineLink, topic_name: str) -> None:
    delete_before(copied.destination, ledger_topic(copied.name), {0: -1})
    found = audit_by_ledger(copied)
    assert (found.body["verdict"], found.total("records")) == ("incomplete", 0)
