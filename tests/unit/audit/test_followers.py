"""A follower's batches are held against their checksums and against the leader's."""

import random

import pytest

from strait.audit.feed import END, Hole, Item
from strait.audit.followers import Fault, LeaderRead, faults_of
from strait.model import TopicPartition
from strait.wire.batch import Batch
from support.audited import log_of, record

CHANCE = random.Random(5)
BATCHES = log_of([record(number, CHANCE) for number in range(300)], CHANCE)


def leader(*, damaged: tuple[int, ...] = (), compacted: bool = False) -> LeaderRead:
    read = LeaderRead(TopicPartition("t", 0), 0, BATCHES[-1].next_offset, compacted)
    assert list(read.noting(BATCHES)) == list(BATCHES)
    read.damaged = damaged
    return read


def with_other(at: int, *others: Item) -> list[Item]:
    return [*BATCHES[:at], *others, *BATCHES[at + 1 :]]


def test_the_same_batches_have_no_fault() -> None:
    assert not list(faults_of(BATCHES, leader()))


def test_damage_is_named_unless_the_leader_has_it_too() -> None:
    one = BATCHES[3]
    items = with_other(3, Hole(one.base_offset, one.next_offset, "damaged"))
    assert list(faults_of(items, leader())) == [Fault(one.base_offset, one.records)]
    assert not list(faults_of(items, leader(damaged=(one.base_offset,))))


@pytest.mark.parametrize("at", [0, 4, len(BATCHES) - 1])
def test_another_batch_or_none_is_named_unless_replicas_may_differ(at: int) -> None:
    one = BATCHES[at]
    other: Batch = one._replace(crc=one.crc ^ 1)
    assert [fault.why for fault in faults_of(with_other(at, other), leader())] == ["other bytes than the leader's"]
    assert [(fault.offset, fault.why) for fault in faults_of(with_other(at), leader())] == [
        (one.base_offset, "no batch starts here")
    ]
    assert not list(faults_of(with_other(at, other), leader(compacted=True)))
    assert not list(faults_of(with_other(at), leader(compacted=True)))


def test_what_the_leader_has_damaged_or_the_follower_deleted_or_not_yet_got_is_no_fault() -> None:
    one = BATCHES[2]
    other = one._replace(crc=one.crc ^ 1)
    assert not list(faults_of(with_other(2, other), leader(damaged=(one.base_offset,))))
    deleted = Hole(0, BATCHES[2].base_offset, "deleted")
    assert not list(faults_of([deleted, *BATCHES[2:]], leader()))
    behind = Hole(BATCHES[-2].base_offset, END, "deleted")
    assert not list(faults_of([*BATCHES[:-2], behind], leader()))
