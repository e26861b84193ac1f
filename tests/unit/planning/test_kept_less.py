"""Records that a destination deleted by its own settings, although the source still has them."""

import pytest

from strait.model import TopicPartition
from strait.planning.topics.kept_less import RECORDED_EVERY_MS, Remains, deleted_there, to_record
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
    assert deleted_there([one], Remains(source_start, destination_start, "x")) == expected
    assert deleted_there([], Remains(source_start, destination_start, "x")) is None


def test_a_partition_is_recorded_once_a_week() -> None:
    found, runs, now = {PLACE: Remains(0, 40, "retention.ms")}, {("t", 0): [run(0, 0, 100)]}, 10 * RECORDED_EVERY_MS
    (loss,) = to_record("l", found, runs, (), now)
    assert (loss.from_offset, loss.to_offset, loss.detail, loss.at_ms) == (0, 40, "retention.ms", now)
    assert to_record("l", found, runs, [loss], now + RECORDED_EVERY_MS - 1) == ()
    assert to_record("l", found, runs, [loss], now + RECORDED_EVERY_MS)
    assert to_record("l", found, runs, [loss.model_copy(update={"cause": "foreign_writer"})], now + 1)
