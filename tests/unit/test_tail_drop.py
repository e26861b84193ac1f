"""What the offset map says after a tail was dropped."""

from typing import Any

import pytest

from strait.control.tail_drop import passed_over
from strait.state.codec import encode_key, run_key
from strait.state.offset_map import Gap, locate, pack, places
from strait.state.schema import OffsetMapping

WRITTEN, DROPPED_TO = 50, 200
FIRST: dict[str, Any] = {"sequence_base": 0, "source_base": 0, "destination_base": 0, "sequence_end": 40}
GAPS = [Gap(10, 12), Gap(WRITTEN, 60), Gap(70, 90)]


def run(**changes: Any) -> OffsetMapping:
    ids = {"topic": "t", "partition": 0, "destination": "t", "source_id": "s", "destination_id": "d"}
    return OffsetMapping(**(ids | FIRST | {"checkpoint_at_ms": 1} | changes))


def after_drop(*runs: OffsetMapping) -> list[OffsetMapping]:
    """The map as its topic then holds it: written first, removed afterwards, by key."""
    change = passed_over(runs, WRITTEN, DROPPED_TO, 2)
    kept = {encode_key(run_key(one)): one for one in (*runs, *change.written)}
    for one in change.forgotten:
        del kept[encode_key(run_key(one))]
    return sorted(kept.values(), key=lambda one: one.sequence_base)


MAPS = {
    "usual": [run()],
    "nothing copied yet": [run(sequence_base=WRITTEN, source_base=52, destination_base=50, sequence_end=0)],
    "written ahead": [run(), run(sequence_base=WRITTEN, source_base=60, destination_base=50)],
    "written ahead, just behind the tail": [
        run(),
        run(sequence_base=WRITTEN, source_base=DROPPED_TO, destination_base=50),
    ],
    "written ahead within an entry": [run(gaps=pack(GAPS, sequence_base=0, source_base=0))],
    "written far ahead": [run(), run(sequence_base=60, source_base=90, destination_base=60)],
    "confirms what the destination has lost": [run(sequence_end=80)],
}


@pytest.mark.parametrize("runs", MAPS.values(), ids=MAPS)
def test_the_next_records_come_after_the_tail_and_nothing_speaks_against_it(runs: list[OffsetMapping]) -> None:
    found = after_drop(*runs)
    assert [places(found, number) for number in range(WRITTEN, 120)] == [
        [DROPPED_TO + number - WRITTEN] for number in range(WRITTEN, 120)
    ]
    if runs[0].sequence_base == 0:
        assert [locate(found, number) for number in range(WRITTEN)] == [
            locate(runs, number) for number in range(WRITTEN)
        ]


@pytest.mark.parametrize(("base", "unknown"), [(30, [False, True, False]), (WRITTEN, [False, True])])
def test_what_a_rebuilt_map_does_not_know_stays_just_that(base: int, unknown: list[bool]) -> None:
    found = after_drop(
        run(sequence_end=20), run(sequence_base=base, source_base=base, destination_base=base, after_unknown=True)
    )
    assert [one.after_unknown for one in found] == unknown
