"""Keeps the map fresh and small: checkpoints, many runs packed into one, runs of what is gone removed."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.errors import StraitError
from strait.state.codec import run_key
from strait.state.offset_map import (
    MOST_GAPS,
    Gap,
    destination_offset,
    gap_count,
    gaps_of,
    pack,
    source_offset,
    source_position,
)
from strait.state.schema import OffsetMapping
from strait.state.sink import StateSink

PASSED_OFFSETS = 100
"""Where that many offsets after the last record hold nothing to copy, the map is told to begin after them, or each
start would read them all again. A source that holds little else than copies is the usual case."""
PACK_RUNS = 16  # that many behind the checkpoint are packed into one
PACKED_CHARACTERS = 32 << 10  # a run that has grown to this is left as it is, and the next one begun


MOST_AT_ONCE = 100  # partitions, which takes the slot's loop some milliseconds


class Rounds:
    """Gives each partition its turn once in ``seconds``, spread over that time: all at one moment would stall a slot of
    many partitions."""

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._began = now
        self._round: Sequence[Partition] = ()
        self._turn = 0  # of this round so many had theirs

    def due(self, now: float, partitions: Callable[[], Sequence[Partition]]) -> list[Partition]:
        """Those whose turn has come since the last call.

        Args:
            partitions: is asked for all of them when a round begins.
        """
        if self._turn == 0:
            self._round = partitions()
        passed = min(1.0, (now - self._began) / self._seconds)
        first, self._turn = self._turn, min(int(passed * len(self._round)), self._turn + MOST_AT_ONCE)
        found = [partition for partition in self._round[first : self._turn] if not partition.retired]
        if passed == 1.0 and self._turn == len(self._round):
            self._began, self._turn, self._round = now, 0, ()
        return found


class Checkpointer:
    """Looks at one partition at a time, about once a minute."""

    def __init__(self, state_sink: StateSink) -> None:
        self._state_sink = state_sink

    def check(self, partition: Partition, known: Sequence[OffsetMapping], at_ms: int) -> None:
        """Confirm what is acknowledged, never backwards: another copy of this link may be ahead of us. Then tidy up."""
        self._pass_over(partition, known, at_ms)
        position, end = partition.position, partition.position.acked_sequence
        run = checkpoint(partition, at_ms) if end > position.checkpoint_sequence else None
        if run is None:
            return
        ours = [one for one in known if (one.source_id, one.destination_id) == partition.ids]
        position.checkpointed(end)
        if end <= max((one.sequence_end for one in ours), default=-1):
            return
        starts = [] if partition.policy.source_compacted else superseded(ours, run)
        shared = partition.policy.on_foreign == "expect"
        packed, replaced = packing([one for one in ours if one not in starts], run, shared=shared)
        position.redraw(packed if replaced and not gaps_of(run, end) else run, position.claims)
        self._state_sink.write_run(packed, partial(self._forget, [*replaced, *starts]))
        self._forget(outlived(ours, position.log_start), None)

    def _pass_over(self, partition: Partition, known: Sequence[OffsetMapping], at_ms: int) -> None:
        """Let the next start begin behind what holds nothing to copy. Earlier words of this kind go, and so does the
        first run of a partition that nothing was ever copied of."""
        begin = passed_over(partition, at_ms)
        if begin is None:
            return
        partition.position.pass_over(begin)
        earlier = [
            run
            for run in known
            if (run.source_id, run.destination_id) == (begin.source_id, begin.destination_id)
            and run.sequence_base == run.sequence_end == begin.sequence_base
            and run.source_base < begin.source_base
            and not run.gaps
        ]
        self._state_sink.write_run(begin, partial(self._forget, earlier))

    def _forget(self, runs: Sequence[OffsetMapping], error: StraitError | None) -> None:
        """What says the same is written: now these may go."""
        for run in runs if error is None else ():
            self._state_sink.forget_run(run)


def checkpoint(partition: Partition, at_ms: int) -> OffsetMapping | None:
    """The run that confirms what is acknowledged; None while there is nothing to confirm.

    That is the run in force, or, where another writer's word would be taken for ours, one that begins with the last
    acknowledged record.
    """
    position, run = partition.position, partition.position.run
    if run is None or run.source_id != partition.ids[0]:
        return None
    end, here = position.acked_sequence, (position.copied_to, position.expected_offset)
    if end == position.found_sequence and partition.policy.on_foreign != "halt" and position.last_seen is None:
        return None  # among others' records the map only guesses where a record is that a look-up did not read
    confirmed = {"sequence_end": end, "checkpoint_at_ms": at_ms, "source_epoch": position.acked_epoch}
    if partition.policy.on_foreign != "halt":
        confirmed["shared"] = True
    if (source_position(run, end), destination_offset(run, end)) == here:
        return run.model_copy(update=confirmed)
    last_source = here[0] - 1
    if end == position.found_sequence:  # nothing was acknowledged since; the cursor may be far behind the last record
        if position.last_seen is None:
            return None
        last_source, confirmed["source_epoch"] = position.last_seen
    last = {"sequence_base": end - 1, "source_base": last_source, "destination_base": here[1] - 1, "gaps": ""}
    return run.model_copy(update=confirmed | last | {"after_unknown": False})


def passed_over(partition: Partition, at_ms: int) -> OffsetMapping | None:
    """The run that lets reading begin at the cursor; None unless that spares much. It is the truth for every writer of
    the link: what is left out is so for all of them."""
    position, cursor, run = partition.position, partition.cursor, partition.position.run
    sent = position.phase is Phase.REPLICATING and cursor.sequence == position.acked_sequence
    before = max(position.copied_to, -1 if position.passed is None else position.passed.source_base)
    if run is None or not sent or partition.queue.awaits_promises or cursor.offset - before < PASSED_OFFSETS:
        return None
    if run.source_id != partition.ids[0]:
        return None
    return run.model_copy(
        update={
            "sequence_base": position.acked_sequence,
            "source_base": cursor.offset,
            "destination_base": max(position.expected_offset, position.passed_offset),
            "gaps": "",
            "sequence_end": position.acked_sequence,
            "checkpoint_at_ms": at_ms,
            "source_epoch": cursor.last_epoch,
            "after_unknown": False,
        }
    )


def superseded(known: Sequence[OffsetMapping], newest: OffsetMapping) -> list[OffsetMapping]:
    """Runs that say only where reading began, where another one says at which higher offset the first record was."""
    return [
        run
        for run in known
        if not run.gaps
        and run_key(run) != run_key(newest)
        and any(
            other.sequence_base == run.sequence_base < newest.sequence_end and other.source_base > run.source_base
            for other in known
        )
    ]


def packing(
    known: Sequence[OffsetMapping], newest: OffsetMapping, *, shared: bool = False
) -> tuple[OffsetMapping, Sequence[OffsetMapping]]:
    """The run to write in order to confirm ``newest``, and those whose words it takes over.

    Args:
        known: the partition's runs for these ids, by sequence_base.
        newest: with its checkpoint: all up to ``sequence_end`` is written, as it says.
        shared: others write there too. The packed run then says of the newest record where it is on the destination; of
            older ones the log itself tells, as each batch there has its sequence.
    """
    older = [
        run
        for run in known
        if run.sequence_base < newest.sequence_end
        and len(run.gaps) < PACKED_CHARACTERS
        and gap_count(run) < MOST_GAPS // 2
        and (shared or destination_offset(run, newest.sequence_base) == newest.destination_base)
        and run.source_base - run.sequence_base <= newest.source_base - newest.sequence_base
    ]
    known_from = max((run.sequence_base for run in (*known, newest) if run.after_unknown), default=0)
    older = [run for run in older if run.sequence_base >= known_from]
    if len(older) < PACK_RUNS:
        return newest, ()
    first = older[0]
    told = {gap for run in (*older, newest) for gap in gaps_of(run, first.sequence_base, newest.sequence_end)}
    gaps = _real(sorted(told))
    if len(gaps) > MOST_GAPS or not _agree(older, gaps):
        return newest, ()  # of a source that is being compacted; the checkpoint says who was right
    packed = newest.model_copy(
        update={
            "sequence_base": first.sequence_base,
            "source_base": first.source_base,
            "destination_base": max(0, newest.destination_base - newest.sequence_base + first.sequence_base),
            "gaps": pack(gaps[1:], sequence_base=first.sequence_base, source_base=first.source_base),
            "after_unknown": any(run.after_unknown for run in older),
        }
    )
    behind = [run for run in older if all(gap.sequence < newest.sequence_end for gap in gaps_of(run))]
    return packed, [run for run in behind if run_key(run) != run_key(packed)]


def _real(said: Sequence[Gap]) -> list[Gap]:
    """The base and the true gaps, without places where a run begins though nothing is missing."""
    kept = [said[0]]
    for gap in said[1:]:
        if gap.source - gap.sequence > kept[-1].source - kept[-1].sequence:
            kept.append(gap)
    return kept


def _agree(runs: Sequence[OffsetMapping], gaps: Sequence[Gap]) -> bool:
    """Each run says of its own reach, up to its last gap, just what all of them together say."""
    for run in runs:
        own = gaps_of(run)
        low, high = bisect_left(gaps, own[0]), bisect_right(gaps, own[-1])
        if any(source_offset(run, gap.sequence) != gap.source for gap in gaps[low:high]):
            return False
        if any(_difference(gaps, gap.sequence) != gap.source - gap.sequence for gap in own):
            return False
    return True


def _difference(gaps: Sequence[Gap], sequence: int) -> int:
    last = gaps[max(0, bisect_right(gaps, Gap(sequence, 1 << 62)) - 1)]
    return last.source - last.sequence


def outlived(known: Sequence[OffsetMapping], log_start: int) -> list[OffsetMapping]:
    """Runs that describe only what the destination no longer holds; the newest always stays."""
    return [
        run
        for run, following in pairwise(known)
        if following.sequence_base > run.sequence_base
        and destination_offset(run, following.sequence_base) <= log_start
        and all(gap.sequence < following.sequence_base for gap in gaps_of(run))
        and run.sequence_end <= following.sequence_end
    ]
