"""Sources with transactions: a copy holds what a reader of committed records sees, and the map knows where it was."""

import random
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from strait.engine import packing
from strait.reasons import Reason
from strait.state.offset_map import gaps_of
from strait.state.report_records import PartitionReport
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import read_all
from support.kafka.transactions import Transactions, assert_map_is_exact, small_transactions
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
SHORT_CHECKPOINTS = {"strait.engine.slot:CHECKPOINT_SECONDS": 0.5}


def plain(link: EngineLink, topic: str, records: int, **settings: object) -> None:
    producer = Producer(link.source.client_properties | {"linger.ms": 5} | settings)
    for number in range(records):
        producer.produce(topic, b"plain %d" % number, partition=number % link.topics[topic])
    assert producer.flush(60) == 0


def test_what_was_committed_arrives_and_what_was_aborted_does_not(make_link: MakeLink, topic_name: str) -> None:
    """Beginning and ending with nothing but aborted records and markers, and with every kind of producer between."""
    link = make_link()
    link.make_topics()
    one, two = (Transactions(link.source, f"{topic_name}-{n}", topic_name, 3) for n in range(2))
    one.begin()
    one.write(30)
    one.abort()
    plain(link, topic_name, 30)
    link.publish()
    slot = link.start_slot()
    for commit_one, commit_two in [(True, True), (True, False), (False, True), (False, False)] * 3:
        one.begin()
        one.write(9)
        two.begin()
        two.write(6)
        one.write(3)
        two.end(commit_two)
        plain(link, topic_name, 5, **{"enable.idempotence": True})
        one.end(commit_one)
    one.begin()
    one.write(3)
    one.abort()
    link.until_seen()
    link.assert_same_records()
    link.kill(slot)  # without a last checkpoint
    link.start_slot()
    plain(link, topic_name, 30)
    link.until_seen()
    link.assert_same_records()
    assert_map_is_exact(link)


def test_a_transaction_larger_than_a_fetch(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1}, slot_memory_bytes=16 << 20)
    link.make_topics()
    payload = random.Random(3).randbytes(100_000)
    producer = Transactions(link.source, topic_name, topic_name, 1)
    for commit in (True, False, True):
        producer.begin()
        producer.write(150, payload)
        producer.end(commit)
    link.publish()
    link.start_slot()
    link.until_seen()
    assert len(read_all(link.destination, topic_name, 1)[0]) == 300
    link.assert_same_records()
    assert_map_is_exact(link)


def test_an_open_transaction_holds_what_is_behind_it_until_it_ends(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    link.publish()
    link.start_slot()
    producer = Transactions(link.source, topic_name, topic_name, 1)
    producer.begin()
    producer.write(10)
    plain(link, topic_name, 20)
    eventually(lambda: ends(link.destination, topic_name, 2) == [0, 10], what="the partition without it is copied")
    producer.commit()
    link.until_seen()
    link.assert_same_records()


@pytest.mark.core
def test_what_an_open_transaction_holds_back_is_counted_and_its_owner_named(
    make_link: MakeLink, topic_name: str
) -> None:
    """The partition has never caught up meanwhile, though nothing that can be read is left to copy."""
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    producer = Transactions(link.source, f"{topic_name}-app", topic_name, 1)
    plain(link, topic_name, 5)
    producer.begin()
    producer.write(1)
    plain(link, topic_name, 20)
    link.start_slot(
        changed={
            "strait.engine.open_transactions:REASON_SECONDS": 0.3,
            "strait.engine.open_transactions:STEP_SECONDS": 0.1,
        }
    )
    with link.reports() as newest:
        states: set[str] = set()

        def row() -> PartitionReport | None:
            found = newest(topic_name, 0)
            states.add(found.state if found else "")
            return found

        def is_named() -> bool:
            found = row()
            return found is not None and f"{topic_name}-app" in found.detail

        eventually(is_named, what=lambda: f"the transaction's owner is named: {row()} {link.log()}")
        held = row()
        assert held is not None
        assert (held.state, held.reason, held.lag_records) == ("waiting", Reason.OPEN_TRANSACTION, 0)
        assert (held.position, held.end, held.held_back_records) == (5, 5, 21)
        assert "from offset 5 by producer ID" in held.detail
        assert 0 < held.held_since_ms <= time.time() * 1000
        assert "caught_up" not in states
        producer.commit()

        def has_caught_up() -> bool:
            found = row()
            return found is not None and found.state == "caught_up"

        eventually(has_caught_up, what=lambda: f"it has caught up: {row()}")
        done = row()
        assert done is not None
        assert (done.reason, done.detail, done.held_back_records, done.held_since_ms) == (None, "", 0, -1)
    link.assert_same_records()


@pytest.mark.parametrize("seed", [12])
def test_two_racing_copies_and_twelve_kills_copy_each_committed_record_once(
    make_link: MakeLink, topic_name: str, seed: int
) -> None:
    """I1 and I3 with many small transactions; afterwards the map says where each record was."""
    rng = random.Random(seed)
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    link.publish()
    racing = [link.start_slot(changed=SHORT_CHECKPOINTS) for _ in range(2)]
    kills = 0
    with small_transactions(link, topic_name, 900, seed) as writer:
        while writer.is_alive() or kills < 12:
            time.sleep(rng.uniform(0.3, 2.0))  # the moment of the kill is the random input of this test
            victim = rng.randrange(2)
            link.kill(racing[victim])
            racing[victim] = link.start_slot(changed=SHORT_CHECKPOINTS)
            kills += 1
    link.until_seen()
    link.assert_same_records()
    assert_map_is_exact(link)


def test_the_map_of_many_transactions_stays_small(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    link.start_slot(changed=SHORT_CHECKPOINTS)
    with small_transactions(link, topic_name, 700, seed=4):
        pass
    link.until_seen()

    def packed() -> bool:
        plain(link, topic_name, 1)
        return len(link.runs(topic_name, 0)) <= packing.PACK_RUNS

    eventually(packed, what=lambda: f"packed: {link.runs(topic_name, 0)}")
    link.until_seen()
    runs = link.runs(topic_name, 0)
    gaps = sum(len(gaps_of(run)) for run in runs)
    assert gaps > 300
    assert sum(len(run.gaps) for run in runs) <= 4 * gaps
    link.assert_same_records()
    assert_map_is_exact(link)
