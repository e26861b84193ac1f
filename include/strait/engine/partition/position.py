"""The position on the destination: which records it has acknowledged, and their source offsets by the map. Belongs to
recovery; acknowledgements advance it."""

import math
from bisect import insort
from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from strait.engine.partition.change_signal import ChangeSignal
from strait.engine.partition.send_queue import OutBatch
from strait.state.offset_map import covering, destination_offset, newest_checkpoint
from strait.state.schema import OffsetMapping


class Phase(Enum):
    AWAIT_POSITION = "position unknown; will be looked up when nothing is in flight"
    RESOLVING = "position is being looked up on the destination"
    REPLICATING = "position known; copying"


class Watched(NamedTuple):
    """The log ended after record ``sequence`` - 1 from ``since`` on, as last seen at ``seen_at``. ``quiet_seconds``:
    how much of that time is included as quiet. ``sequence`` -1: it was not checked. ``late_until``: until then the
    requests of other instances were put off."""

    sequence: int = -1
    since: float = 0.0
    quiet_seconds: float = 0.0
    seen_at: float = float("-inf")
    late_until: float = float("-inf")


_NO_LOOK = Watched()


class Repetition(NamedTuple):
    """A batch of ours that the broker treated as a duplicate of one at this destination offset. The broker compares
    sequence numbers only: if the source is being compacted, another instance may have read other records there.
    ``first`` is the source offset of our first one. Otherwise both have read the same log, so comparing the last record
    there suffices (`verification`), and the same records may well have other bytes."""

    offset: int
    crc: int
    first: int


class Position:
    """Phase and position of one destination partition.

    Attributes:
        generation: grows with each reset, which identifies responses to earlier requests.
        retry_at: no lookup before this time; ``failures``: resets since the last success.
        shift: destination offset of a record minus its number; ``located``: that of the last record was seen in the
            log, rather than taken from the map. ``log_was_cut``: an acknowledgement has shown that the log lost
            records.
        last_seen: source offset and leader epoch of the last record that the last lookup found, if it read and compared
            it among records of other producers.
        acked_sequence: all records before it are acknowledged; ``copied_to``: the source offset after the last of them,
            -1 before the first lookup; ``acked_epoch``: its leader epoch.
        found_sequence: number of the next record, as the last lookup found it.
        run: segment that maps the acknowledged records; ``claims``: segments that start later, by ``sequence_base``.
        passed: segment that records that there is nothing to copy before the current position; ``passed_offset``: the
            destination's log holds no record of the link between its last record that was found and this offset.
        log_start: the destination's, as last seen.
        repetition: to be checked before anything else is copied.
        watched: set while checking whether the log still grows (`recovery.contention`). ``quiet_sequence``: number of
            the next record at ``quiet_at``, when the log had not grown for long enough. ``late_looks``: lookups since the
            last acknowledgement after which the turn to send came too late.
    """

    __slots__ = (
        "_old_end", "_signal", "acked_epoch", "acked_sequence", "checkpoint_sequence", "claims",
        "copied_to", "failures", "found_sequence", "generation", "last_seen", "late_looks", "located", "log_start",
        "log_was_cut", "passed", "passed_offset", "phase", "quiet_at", "quiet_sequence",
        "recopied", "recoveries", "repetition", "retry_at", "run", "shift", "watched",
    )  # fmt: skip

    def __init__(self, signal: ChangeSignal) -> None:
        self._signal = signal
        self.phase = Phase.AWAIT_POSITION
        self.generation = 0
        self.retry_at = 0.0
        self.failures = self.late_looks = 0
        self.shift = 0
        self.located = False
        self.last_seen: tuple[int, int] | None = None
        self.log_was_cut = False
        self.acked_sequence = -1
        self.copied_to = -1
        self.acked_epoch = -1
        self.found_sequence = -1
        self.run: OffsetMapping | None = None
        self.claims: deque[OffsetMapping] = deque()
        self.passed: OffsetMapping | None = None
        self.passed_offset = -1
        self.checkpoint_sequence = -1
        self.log_start = -1
        self.repetition: Repetition | None = None
        self.watched = _NO_LOOK
        self.quiet_sequence = -1
        self.quiet_at = float("-inf")
        self._old_end = -1  # number of the record after the newest old one that was queued
        self.recoveries = 0
        self.recopied = 0

    # --- phases -------------------------------------------------------------------------------------------------------

    def reset(self, retry_at: float) -> None:
        """Mark the position as unknown; it is looked up again at ``retry_at`` or later."""
        self.phase = Phase.AWAIT_POSITION
        self.generation += 1
        self.retry_at = retry_at
        self.failures += 1
        self._signal.notify()

    def resolve(self) -> None:
        """Start a lookup."""
        self.phase = Phase.RESOLVING
        self.recoveries += 1
        self._signal.notify()

    def found(self, runs: Sequence[OffsetMapping], sequence: int, copied_to: int, *, mapped: bool) -> None:
        """Set the position: record number ``sequence`` is the next, and all before source offset ``copied_to`` is
        copied. ``mapped``: whether the map has that source offset."""
        self.run = covering(runs, sequence)
        self.claims = deque(run for run in runs if run.sequence_base > sequence)
        self.passed = None
        self.acked_sequence = self.found_sequence = sequence
        self.shift = destination_offset(self.run, sequence) - sequence
        self.passed_offset = self.acked_sequence + self.shift
        self.located = self.log_was_cut = False
        self.last_seen = None
        self.copied_to = copied_to
        self.checkpoint_sequence = max(self.checkpoint_sequence, self.run.sequence_end)
        self.acked_epoch = -1
        if mapped:
            checkpoint = newest_checkpoint(runs)
            if checkpoint.sequence_end <= sequence:
                self.acked_epoch = checkpoint.source_epoch
        self.phase = Phase.REPLICATING
        self._signal.notify()

    def postpone(self, retry_at: float) -> None:
        """Set the time of the next lookup."""
        self.retry_at = retry_at
        self._signal.notify()

    def abandon(self) -> None:
        """Invalidate the requests that are in flight on its behalf."""
        self.generation += 1
        self._signal.notify()

    def succeeded(self) -> None:
        self.failures = 0

    # --- acknowledgements ---------------------------------------------------------------------------------------------

    def acked(self, batch: OutBatch) -> None:
        self.acked_sequence = batch.sequence + batch.records
        self.copied_to = batch.position
        self.acked_epoch = batch.epoch
        self.failures = self.late_looks = 0
        self.located = True
        while self.claims and self.claims[0].sequence_base < self.acked_sequence:
            self.run = self.claims.popleft()

    @property
    def expected_offset(self) -> int:
        """Destination offset of the next record to be acknowledged."""
        return self.acked_sequence + self.shift

    def log_is_cut(self) -> None:
        """Record that the log no longer holds all acknowledged records."""
        self.log_was_cut = True

    def log_begins(self, log_start: int) -> None:
        """Set the log start offset that the destination reports."""
        self.log_start = log_start

    def located_at(self, last_offset: int, last_seen: tuple[int, int] | None = None) -> None:
        """Record that the last record was seen at this destination offset; ``last_seen``: and at the source."""
        self.shift, self.located, self.last_seen = last_offset + 1 - self.acked_sequence, True, last_seen

    def shift_to(self, shift: int) -> None:
        """Set the shift after records of other producers before the next record."""
        self.shift = shift

    def repeated(self, repetition: Repetition) -> None:
        self.repetition = repetition

    def repetition_settled(self) -> None:
        self.repetition = None

    def recopy(self, records: int) -> None:
        """Count records that are copied again, since nothing proves that the destination has them."""
        self.recopied += max(0, records)

    # --- the map ------------------------------------------------------------------------------------------------------

    def claim(self, run: OffsetMapping) -> None:
        """Add one of our segments, written ahead; it is current once its first record is acknowledged."""
        insort(self.claims, run, key=lambda claim: claim.sequence_base)

    def redraw(self, run: OffsetMapping | None, claims: Sequence[OffsetMapping]) -> None:
        """Replace the segments by others that map the same records."""
        self.run, self.claims = run, deque(claims)

    def checkpointed(self, sequence: int) -> None:
        self.checkpoint_sequence = sequence

    def pass_others(self, offset: int) -> None:
        """Record that the destination's log holds no record of the link between its last record and this offset."""
        self.passed_offset = offset

    def pass_over(self, run: OffsetMapping) -> None:
        """Record that by the map there is nothing to copy before the end of this segment."""
        self.passed = run

    # --- requests that may still arrive, see `strait.engine.recovery.contention` --------------------------------------

    def mark_forgettable(self, end: int) -> None:
        """Record that the records before number ``end`` are old: the link's producer state may expire with them."""
        self._old_end = max(self._old_end, end)

    @property
    def forgettable(self) -> bool:
        """Whether the link's producer state may expire at any moment: the last acknowledged record is old, or a later
        one is."""
        return self.acked_sequence <= self._old_end >= 0

    def watch(self, watched: Watched) -> None:
        """Record that the log has not been quiet for long enough yet."""
        self.watched = watched

    def found_quiet(self, sequence: int, at: float) -> None:
        """Record that the log has not grown for long enough, or only by records sent from here."""
        self.watched = _NO_LOOK
        self.quiet_sequence, self.quiet_at = sequence, at

    def look_failed(self) -> None:
        """Discard the quiet time so far: the broker may have stalled, with received requests still to process."""
        self.watched = self.watched._replace(quiet_seconds=0.0, seen_at=math.inf)
