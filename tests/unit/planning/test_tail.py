"""What a tail is, and which transactions it cuts."""

from typing import NamedTuple

import pytest

from strait.model import TopicPartition
from strait.planning.tail import (
    CutTransaction,
    Ended,
    Extent,
    MissingPart,
    Remainder,
    as_data,
    cut,
    described,
    extents,
    is_complete,
    of_transformed,
    remainders,
    tail_part,
)

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))
ELSEWHERE = TopicPartition("not-replicated", 0)


class Batch(NamedTuple):
    base: int
    next: int
    producer_id: int = 7
    transactional: bool = True
    control: bool = False
    aborts: bool = False
    time_ms: int = -1


def marker(at: int, producer_id: int = 7, *, aborts: bool = False) -> Batch:
    return Batch(at, at + 1, producer_id, control=True, aborts=aborts, time_ms=at)


def ended(*places: TopicPartition, at_ms: int = 0, committed: bool = True, producer: int = 7) -> Ended:
    return Ended(f"id-{producer}", producer, committed, frozenset(places), at_ms)


@pytest.mark.parametrize(
    ("offset", "log", "expected", "detail"),
    [
        (5, (0, 9, 9), (5, 9), ""),
        (9, (0, 9, 9), (9, 9), ""),
        (5, (7, 9, 9), (7, 9), "offsets 5 to 6 were deleted on the source"),
        (5, (0, 7, 9), (5, 7), "offsets 7 to 8 are of open transactions, or between them"),
        (9, (0, 5, 5), (9, 5), "the source ends at offset 5, before what was copied"),
        (None, (0, 9, 9), (9, 9), ""),
    ],
)
def test_a_tail_is_what_the_source_holds_from_the_next_offset_on(
    offset: int | None, log: tuple[int, int, int], expected: tuple[int, int], detail: str
) -> None:
    part = tail_part(P0, "t", (offset, True, "", 3), log)
    assert (part.range, part.detail, part.has_offsets) == (expected, detail, expected[0] < expected[1])


class Sized(NamedTuple):
    topic: str
    partition: int
    timestamp_ms: int
    bytes: int


def test_extents_do_not_count_records_without_a_time_as_the_first() -> None:
    parts = [tail_part(place, "t", (0, True, "", 0), (0, 9, 9)) for place in (P0, P1, P2)]
    records = [Sized("t", 0, 50, 1), Sized("t", 1, -1, 2), Sized("t", 0, -1, 4), Sized("t", 0, 40, 8)]
    assert extents(parts, records) == {P0: Extent(3, 13, 40, 50), P1: Extent(1, 2, None, None), P2: Extent()}


def test_a_partitions_tail_is_split_at_the_markers_of_each_producer() -> None:
    batches = [
        Batch(0, 6),  # the tail begins within it
        Batch(6, 7, producer_id=8),
        Batch(7, 8, producer_id=-1, transactional=False),
        marker(8),
        marker(9, 8, aborts=True),
        Batch(10, 12),
        Batch(12, 14),
        marker(14),
        marker(15, 9),  # of a transaction whose records are before the tail
        Batch(16, 17),  # not ended
    ]
    assert remainders(batches, 4) == {
        7: [Remainder(4, 8, True, 8), Remainder(10, 14, True, 14)],
        8: [Remainder(6, 9, False, 9)],
        9: [Remainder(-1, 15, True, 15)],
    }


def test_a_producers_last_markers_are_those_of_its_last_transactions() -> None:
    """Of four transactions the tail of one partition holds the last two, that of the other the last one."""
    found = {P0: {7: [Remainder(40, 49, True, 3), Remainder(50, 59, True, 4)]}, P1: {7: [Remainder(10, 19, True, 4)]}}
    entries = [
        ended(P0, P1, at_ms=1),
        ended(P1, at_ms=2),
        ended(P0, P1, ELSEWHERE, at_ms=3),
        ended(P0, P1, at_ms=4),
    ]
    transactions, unknown = cut(found, {7: entries}, {})
    assert transactions == [CutTransaction("id-7", 7, 3, (P1,), (MissingPart(*P0, 40, 49, False),))]
    assert not unknown


def test_aborted_transactions_count_but_are_not_cut() -> None:
    """Without counting them, the marker at 49 would be taken for that of the committed one."""
    found = {P0: {7: [Remainder(40, 49, False, 1), Remainder(50, 59, True, 2)]}, P1: {}}
    entries = [ended(P0, P1, at_ms=1, committed=False), ended(P0, P1, at_ms=2)]
    transactions, _ = cut(found, {7: entries}, {})
    assert [(one.committed_at_ms, one.missing[0].from_offset) for one in transactions] == [(2, 50)]


def test_what_is_whole_on_one_side_is_not_cut() -> None:
    found = {P0: {7: [Remainder(40, 49, True, 1)]}, P1: {7: [Remainder(40, 49, True, 1)]}, P2: {}}
    assert cut(found, {7: [ended(P2, at_ms=0), ended(P0, P1, at_ms=1)]}, {}) == ([], set())


def test_only_a_producers_first_transaction_in_a_tail_can_be_there_in_part() -> None:
    found = {P0: {7: [Remainder(40, 49, True, 1), Remainder(50, 59, True, 2)]}}
    transactions, _ = cut(found, {7: [ended(P0, at_ms=1), ended(P0, at_ms=2)]}, {(P0, 7): True})
    assert transactions == [CutTransaction("id-7", 7, 1, (), (MissingPart(*P0, 40, 49, True),))]


def test_a_partition_of_which_the_marker_alone_is_left_is_whole_on_the_destination() -> None:
    found = {P0: {7: [Remainder(-1, 49, True, 1)]}, P1: {7: [Remainder(10, 19, True, 1)]}}
    transactions, _ = cut(found, {7: [ended(P0, P1, at_ms=1)]}, {(P0, 7): True})
    assert transactions == [CutTransaction("id-7", 7, 1, (P0,), (MissingPart(*P1, 10, 19, False),))]
    transactions, _ = cut(found, {7: [ended(P0, P1, at_ms=1)]}, {(P0, 7): False})
    assert transactions == []  # it had no record in the first one


def test_what_the_transaction_log_does_not_tell_any_more_is_unknown() -> None:
    found = {
        P0: {7: [Remainder(40, 49, True, 1), Remainder(50, 59, True, 2)], 8: [Remainder(60, 69, True, 3)]},
        P1: {},
    }
    transactions, unknown = cut(found, {7: [ended(P0, P1, at_ms=2)], 8: [ended(P0, P1, producer=8)]}, {})
    assert ({one.producer_id for one in transactions}, unknown) == ({7, 8}, {7})
    _, unknown = cut(found, {8: [ended(P0, P1, producer=8)]}, {(P0, 8): None})
    assert unknown == {7, 8}


def test_a_cut_transaction_in_words_and_for_programs() -> None:
    one = CutTransaction("orders", 7, 1, (P1,), (MissingPart(*P0, 1_000, 1_010, True),))
    assert described(one) == (
        "transaction orders (producer ID 7): replicated t-1; missing t-0 from 1,000 to 1,009, "
        "where it is replicated up to there"
    )
    assert as_data(one)["copied"] == [{"topic": "t", "partition": 1}]


def test_the_name_of_a_transaction_does_not_move_the_cursor() -> None:
    one = CutTransaction("\x1b[2J\n", 7, 1, (P1,), (MissingPart(*P0, 1, 2, False),))
    assert described(one).startswith("transaction \\x1b[2J\\n (producer ID 7)")


@pytest.mark.parametrize(
    ("batches", "complete"),
    [
        ([Batch(0, 5), Batch(5, 9)], True),
        ([Batch(0, 5), Batch(5, 12)], True),
        ([Batch(0, 5), Batch(6, 9)], False),
        ([Batch(4, 9)], False),
        ([Batch(0, 5)], False),
        ([], False),
    ],
)
def test_a_log_with_a_hole_does_not_count_every_marker(batches: list[Batch], complete: bool) -> None:
    assert is_complete(batches, 3, 9) is complete


def test_a_tail_of_records_that_a_rule_transforms_says_that_it_may_leave_some_out() -> None:
    part = of_transformed(tail_part(P0, "t", (5, True, "", 3), (0, 7, 9)))
    assert part.transformed and part.exact
    assert part.detail == (
        "offsets 7 to 8 are of open transactions, or between them; before its rule's `transform`, which may leave some out"
    )
    nothing = of_transformed(tail_part(P0, "t", (9, True, "", 3), (0, 9, 9)))
    assert (nothing.transformed, nothing.detail) == (True, "")
