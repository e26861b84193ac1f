"""Records that a destination deleted by its own settings, although the source still has them."""

import pytest

from strait.model import TopicPartition
from strait.planning.topics.kept_less import (
    RECORDED_EVERY_MS,
    Deleted,
    Remains,
    Span,
    deleted_there,
    holes,
    start_to_read,
    to_record,
)
from strait.state.offset_map import Gap, pack
from strait.state.schema import OffsetMapping

PLACE = TopicPartition("t", 0)


def run(source_base: int, destination_base: int, end: int, gaps: str = "") -> OffsetMapping:
    return OffsetMapping(
        topic="t",
        partition=0,
        destination="t",
        source_id="s",
        destination_id="d",
        source_base=source_base,
        destination_base=destination_base,
        sequence_base=0,
        sequence_end=end,
        gaps=gaps,
        checkpoint_at_ms=1,
    )


@pytest.mark.parametrize(
    ("one", "source_start", "destination_start", "expected"),
    [
        (run(0, 0, 100), 0, 100, (0, 100)),
        (run(0, 0, 100), 0, 40, (0, 40)),
        (run(0, 0, 100), 40, 40, None),
        (run(0, 0, 100), 60, 40, None),  # the source has deleted more
        (run(0, 0, 100), 10, 40, (10, 40)),
        (run(50, 7, 100), 0, 17, (50, 60)),  # the link began there, after others' records
        (run(0, 0, 100), 0, 0, None),
        (run(0, 0, 100), 0, 200, None),  # it is unknown what was written since
        (run(0, 0, 100, pack([Gap(10, 15)], sequence_base=0, source_base=0)), 0, 40, (0, 45)),
    ],
)
def test_what_the_source_still_has(
    one: OffsetMapping, source_start: int, destination_start: int, expected: tuple[int, int] | None
) -> None:
    remains = Remains(source_start, destination_start, "x")
    assert deleted_there([one], remains) == ([] if expected is None else [Deleted(*expected, "x")])
    assert deleted_there([], remains) == []


def test_among_records_of_others_an_offset_without_a_record_says_nothing_exact() -> None:
    assert deleted_there([run(0, 0, 100)], Remains(0, 0, "x", [Span(0, 40, 3)], shared=True)) == []


@pytest.mark.parametrize(
    ("spans", "start", "expected"),
    [
        ([], 0, None),
        ([(0, 10, 10), (10, 30, 20)], 0, None),
        ([(0, 10, 10), (10, 30, 15)], 0, (10, 30, 5)),
        ([(0, 10, 10), (20, 30, 10)], 0, (10, 30, 10)),  # a whole batch is gone
        ([(7, 10, 3), (10, 20, 0)], 0, (0, 20, 17)),  # at the beginning, too, and an empty one
        ([(0, 10, 5), (10, 20, 10), (20, 30, 1), (30, 40, 10)], 0, (0, 30, 14)),
        ([(0, 10, 1), (10, 20, 10)], 5, None),  # which of its records are left is unknown
    ],
)
def test_offsets_without_a_record_are_what_compaction_deleted(
    spans: list[tuple[int, int, int]], start: int, expected: tuple[int, int, int] | None
) -> None:
    assert holes([Span(*span) for span in spans], start) == expected


def test_what_compaction_deleted_is_named_in_the_sources_offsets() -> None:
    gaps = pack([Gap(10, 15)], sequence_base=0, source_base=0)
    remains = Remains(0, 0, "compact", [Span(0, 5, 5), Span(5, 40, 2)])
    (found,) = deleted_there([run(0, 0, 100, gaps)], remains)
    assert (found.first, found.end) == (5, 45)
    assert found.detail == "compaction has deleted 33 of the 35 records copied from there: compact"


def test_what_the_source_no_longer_holds_is_no_loss_by_compaction() -> None:
    remains = Remains(20, 0, "compact", [Span(0, 20, 1), Span(20, 40, 20)])
    assert start_to_read([run(0, 0, 100)], remains) == 20
    assert deleted_there([run(0, 0, 100)], remains) == []
    assert start_to_read([run(0, 0, 100)], Remains(20, 30, "compact")) == 30


def test_a_partition_is_recorded_once_a_week() -> None:
    now = 10 * RECORDED_EVERY_MS
    found = {PLACE: [Deleted(0, 40, "retention.ms")]}
    (loss,) = to_record("l", found, (), now)
    assert (loss.from_offset, loss.to_offset, loss.detail, loss.at_ms) == (0, 40, "retention.ms", now)
    assert to_record("l", found, [loss], now + RECORDED_EVERY_MS - 1) == ()
    assert to_record("l", found, [loss], now + RECORDED_EVERY_MS)
    assert to_record("l", found, [loss.model_copy(update={"cause": "foreign_writer"})], now + 1)
