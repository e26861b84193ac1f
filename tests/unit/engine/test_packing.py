"""Segments before a checkpoint are packed into few, however many gaps they hold."""

import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import itemgetter

import pytest

from strait.engine import packing as subject
from strait.engine.packing import packing
from strait.state.codec import run_key
from strait.state.offset_map import Gap, gap_count, gaps_of, pack
from strait.state.schema import OffsetMapping
from strait.state.source_log import SourceLog
from support.model.reports import plain_run


def word(gaps: Sequence[Gap]) -> OffsetMapping:
    """A segment that was written ahead, with these gaps."""
    base, *others = gaps
    return plain_run(
        sequence_base=base.sequence,
        source_base=base.source,
        destination_base=base.sequence,
        sequence_end=0,
        gaps=pack(others, sequence_base=base.sequence, source_base=base.source),
    )


def words(kept: Iterable[int], of_gaps: int) -> tuple[list[OffsetMapping], list[Gap], int]:
    """Segments about records at these source offsets, their gaps, and the number of records."""
    sources = list(kept)
    gaps = [Gap(n, source) for n, source in enumerate(sources) if n == 0 or sources[n - 1] + 1 != source]
    return [word(gaps[at : at + of_gaps]) for at in range(0, len(gaps), of_gaps)], gaps, len(sources)


def checked(known: list[OffsetMapping], end: int) -> list[OffsetMapping]:
    """The map after a checkpoint of so many records."""
    (newest,) = [run for run in known if run.sequence_base < end][-1:]
    packed, replaced = packing(known, newest.model_copy(update={"sequence_end": end}))
    assert packed[-1].sequence_end == end
    assert all(one.sequence_end == other.sequence_base for one, other in pairwise(packed))
    left = {run_key(run): run for run in (*known, *packed) if run not in replaced}
    return sorted(left.values(), key=lambda run: (run.sequence_base, run.sequence_end))


def assert_told(runs: Sequence[OffsetMapping], gaps: Sequence[Gap]) -> None:
    assert sorted({gap for run in runs for gap in gaps_of(run)}) == list(gaps)
    for run in runs:
        confirmed = [gap for gap in gaps if run.sequence_base <= gap.sequence < run.sequence_end]
        assert gaps_of(run, behind=run.sequence_end) == confirmed, "a segment says all of what it confirms"


@pytest.mark.parametrize("between_checkpoints", [20, 300])
def test_a_half_of_all_records_left_out_at_random_for_long_takes_few_segments(
    between_checkpoints: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More gaps between two checkpoints than fit into a segment, too."""
    monkeypatch.setattr(subject, "PACKED_GAPS", 1_000)
    rng = random.Random(1)
    every, gaps, records = words((n for n in range(200_000) if rng.random() < 0.5), 50)
    known: list[OffsetMapping] = []
    for at, run in enumerate(every, 1):
        known.append(run)
        if at % between_checkpoints == 0:
            known = checked(known, every[at].sequence_base if at < len(every) else records)
    known = checked(known, records)
    assert_told(known, gaps)
    assert len(known) <= len(gaps) / 1_000 + subject.PACK_RUNS + 2
    assert max(map(gap_count, known)) <= 1_000


def test_records_written_ahead_do_not_keep_those_before_them_apart() -> None:
    """A checkpoint in the middle of a segment, as under load: the segment itself stays."""
    every, gaps, _ = words(range(0, 4_000, 2), 50)
    end = every[-1].sequence_base + 7
    known = checked(every, end)
    assert_told(known, gaps)
    assert known[-1] == every[-1]
    assert len(known) == 2


def test_gaps_of_a_full_segment_between_small_ones_stay_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "PACKED_GAPS", 100)
    every, gaps, records = words(range(0, 10_000, 2), 20)
    full = word([gap for run in every[20:40] for gap in gaps_of(run)])
    for twice in ([], every[20:23]):  # another instance has told of some of them, too
        known = [*every[:20], full, *twice, *every[40:]]
        found = checked(sorted(known, key=lambda run: run.sequence_base), records)
        assert_told(found, gaps)
        assert full in found


@pytest.mark.parametrize("ahead", [1, 30, 200])
def test_gaps_of_a_segment_in_which_a_full_one_ends_stay_known(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments are written ahead of the checkpoints, by so many gaps, and a checkpoint confirms a part of one."""
    monkeypatch.setattr(subject, "PACKED_GAPS", 100)
    rng = random.Random(ahead)
    every, gaps, records = words(range(0, 20_000, 2), 10)
    known: list[OffsetMapping] = [every[0]]
    end, rest = 0, every[1:]
    while end < records:
        end = min(records, end + rng.randrange(100, 700))
        while rest and rest[0].sequence_base <= end + ahead:
            known.append(rest.pop(0))
        known = checked(known, end)
        source = SourceLog(known, end, compacted=False)
        for gap in gaps[: bisect_left(gaps, end, key=itemgetter(0))]:
            assert source.records_before(gap.source) == (gap.sequence, True)
    assert_told(known, gaps)
    assert len(known) <= len(gaps) / 100 + subject.PACK_RUNS + 2, "no segment stays that others have taken over"


def test_of_segments_that_contradict_each_other_none_is_packed() -> None:
    every, _, records = words(range(0, 2_000, 2), 20)
    wrong = word([Gap(200, 396), Gap(205, 410)])
    known = sorted([*every, wrong], key=lambda run: run.sequence_base)
    newest = every[-1].model_copy(update={"sequence_end": records})
    assert packing(known, newest) == ([newest], ())


def test_a_checkpoint_unpacks_no_full_segment_that_an_earlier_one_has_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subject, "PACKED_GAPS", 100)
    known, _, records = words(range(0, 20_200, 2), 101)
    checked(known, records)
    unpacked: list[str] = []
    real = subject.unpack
    monkeypatch.setattr(subject, "unpack", lambda text: unpacked.append(text) or real(text))
    newest = plain_run(sequence_base=records, source_base=20_200, destination_base=records, sequence_end=records + 1)
    assert packing([*known, newest], newest) == ([newest], ())
    assert len(unpacked) <= 1
