"""Marks in the map how far a destination log holds only other producers' records after the link's last one, so that the
next lookup need not read them."""

from collections.abc import Sequence

from strait.engine.partition.partition import Partition
from strait.engine.recovery import decision
from strait.engine.recovery.known_runs import KnownRuns
from strait.state.offset_map import covering, destination_offset, locate
from strait.state.schema import OffsetMapping
from strait.state.sink import StateSink


class PassedMarks:
    """For all partitions of a slot. Marks are written only if other writers are expected: otherwise the marked offset
    would be taken for one of the link's."""

    def __init__(self, runs: KnownRuns, state_sink: StateSink) -> None:
        self._runs = runs
        self._state_sink = state_sink

    def mark(self, partition: Partition, sequence: int, offset: int, least_offsets: int = 1) -> None:
        """Record in the map that record number ``sequence`` is next and not in the log before this destination offset.

        Args:
            least_offsets: no mark is written if it saves reading fewer offsets than this.
        """
        runs = self._runs.of(partition)
        if partition.policy.on_foreign != "expect" or not runs or decision.checkpoint_of(runs) != sequence:
            return
        run = covering(runs, sequence)
        if run.source_id != partition.ids[0] or offset - destination_offset(run, sequence) < least_offsets:
            return
        position = locate(runs, sequence)
        base = {"sequence_base": sequence, "source_base": position, "destination_base": offset, "gaps": ""}
        passed = run.model_copy(update=base | {"sequence_end": sequence, "after_unknown": False})
        earlier = [one for one in runs[1:] if one != passed and _is_mark(one, sequence, position, offset)]
        partition.position.pass_others(offset)
        self._state_sink.write_run(passed, lambda error: None if error else self._forget(earlier))

    def _forget(self, runs: Sequence[OffsetMapping]) -> None:
        for one in runs:
            self._state_sink.forget_run(one)


def _is_mark(run: OffsetMapping, sequence: int, position: int, offset: int) -> bool:
    """Return whether the entry states only that no record of the link is before a destination offset, at most
    ``offset``."""
    where = run.sequence_base, run.sequence_end, run.source_base, run.gaps
    return where == (sequence, sequence, position, "") and run.destination_base <= offset
