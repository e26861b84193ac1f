"""Keeps the offset map current and small: writes checkpoints, packs many segments into one, removes expired segments.

An offset segment (`OffsetMapping`, ``run`` in the code) is one record of the map.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from strait.engine.packing import packing
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.errors import StraitError
from strait.state.codec import run_key
from strait.state.offset_map import destination_offset, gaps_of, source_position
from strait.state.schema import OffsetMapping
from strait.state.sink import StateSink

PASSED_OFFSETS = 100
"""If this many offsets after the last record hold nothing to copy, the map gets a segment that starts after them;
otherwise each start would read all of them again. The usual case is a source that holds little but replicated
records."""
MOST_AT_ONCE = 100  # partitions, which takes the slot's loop some milliseconds


class Rounds:
    """Gives each partition one turn in ``seconds``, spread over that time: all in one moment would stall a slot of many
    partitions."""

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._began = now
        self._round: Sequence[Partition] = ()
        self._turn = 0  # number of partitions of this round that had their turn

    def due(self, now: float, partitions: Callable[[], Sequence[Partition]]) -> list[Partition]:
        """Return the partitions whose turn has come since the last call.

        Args:
            partitions: returns all of them; called at the start of a round.
        """
        if self._turn == 0:
            self._round = partitions()
        passed = min(1.0, (now - self._began) / self._seconds)
        first, self._turn = self._turn, min(int(passed * len(self._round)), self._turn + MOST_AT_ONCE)
        found = [partition for partition in self._round[first : self._turn] if not partition.retired]
        if passed == 1.0 and self._turn == len(self._round):
            self._began, self._turn, self._round = now, 0, ()
        return found


class _Written:
    """Counts acknowledgements, and calls ``then`` once all are there; never if one of them is an error."""

    def __init__(self, count: int, then: Callable[[], None]) -> None:
        self._missing = count
        self._then = then

    def __call__(self, error: StraitError | None) -> None:
        self._missing -= error is None
        if self._missing == 0:
            self._then()


class Checkpointer:
    """Checks one partition at a time, about once a minute."""

    def __init__(self, state_sink: StateSink) -> None:
        self._state_sink = state_sink

    def check(self, partition: Partition, known: Sequence[OffsetMapping], at_ms: int) -> None:
        """Confirm the acknowledged records, never backwards, since another instance of this link may be ahead. Then
        tidy up."""
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
        shared = partition.policy.on_foreign != "halt"
        packed, replaced = packing([one for one in ours if one not in starts], run, shared=shared)
        position.redraw(packed[-1] if replaced and not gaps_of(run, end) else run, position.claims)
        written = _Written(len(packed), partial(self._forget, [*replaced, *starts], None))
        for segment in packed:
            self._state_sink.write_run(segment, written)
        self._forget(outlived(ours, position.log_start), None)

    def _pass_over(self, partition: Partition, known: Sequence[OffsetMapping], at_ms: int) -> None:
        """Let the next start read after offsets that hold nothing to copy. This removes earlier segments of the same
        kind, and the first segment of a partition from which nothing was ever copied."""
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
        """Remove these segments, unless writing their replacement failed."""
        for run in runs if error is None else ():
            self._state_sink.forget_run(run)


def checkpoint(partition: Partition, at_ms: int) -> OffsetMapping | None:
    """Return the segment that confirms the acknowledged records; None if there is nothing to confirm.

    That is the current segment or, if another writer's entry would be taken for ours, one that starts at the last
    acknowledged record.
    """
    position, run = partition.position, partition.position.run
    if run is None or run.source_id != partition.ids[0]:
        return None
    end, here = position.acked_sequence, (position.copied_to, position.expected_offset)
    if end == position.found_sequence and partition.policy.on_foreign != "halt" and position.last_seen is None:
        return None  # among foreign records the map only estimates the offset of a record that recovery did not read
    confirmed = {"sequence_end": end, "checkpoint_at_ms": at_ms, "source_epoch": position.acked_epoch}
    if partition.policy.on_foreign != "halt":
        confirmed["shared"] = True
    if (source_position(run, end), destination_offset(run, end)) == here:
        return run.model_copy(update=confirmed)
    last_source = here[0] - 1
    if end == position.found_sequence:  # nothing was acknowledged since; the cursor may be far past the last record
        if position.last_seen is None:
            return None
        last_source, confirmed["source_epoch"] = position.last_seen
    last = {"sequence_base": end - 1, "source_base": last_source, "destination_base": here[1] - 1, "gaps": ""}
    return run.model_copy(update=confirmed | last | {"after_unknown": False})


def passed_over(partition: Partition, at_ms: int) -> OffsetMapping | None:
    """Return the segment that lets reading start at the cursor; None unless that saves much. It holds for every writer
    of the link: all of them skip the same records."""
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
    """Return the segments that only record a start position, if another segment has the first record at a higher source
    offset."""
    return [
        run
        for run in known
        if not run.gaps
        and any(
            other.sequence_base == run.sequence_base < newest.sequence_end and other.source_base > run.source_base
            for other in known
        )
        and run_key(run) != run_key(newest)  # asked last, since it costs most
    ]


def outlived(known: Sequence[OffsetMapping], log_start: int) -> list[OffsetMapping]:
    """Return the segments that describe only records that the destination no longer holds; the newest is always
    kept."""
    return [
        run
        for run, following in pairwise(known)
        if following.sequence_base > run.sequence_base
        and destination_offset(run, following.sequence_base) <= log_start
        and all(gap.sequence < following.sequence_base for gap in gaps_of(run))
        and run.sequence_end <= following.sequence_end
    ]
