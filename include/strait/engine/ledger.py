"""Writes a slot's part of the replication ledger: for each interval, the records copied of each partition."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from strait.config.app_spec import AppSpec
from strait.engine.partition.partition import Partition
from strait.engine.partition.report import reason_of, state_of
from strait.errors import StraitError
from strait.state.ledger_records import LedgerEntry, LedgerPart
from strait.state.sink import OnAck

PARTITIONS_PER_TURN = 200  # creating this many rows takes 3 ms
AGAIN_SECONDS = 5.0
_DAY_MS = 86_400_000


class LedgerSink(Protocol):
    """Accepts the ledger parts; `strait.state.writer` implements it."""

    def write_ledger(self, record: LedgerPart, on_ack: OnAck | None = None) -> None: ...


class IntervalLedger:
    """Creates the slot's rows and has them written. A row starts at the end of the one before.

    A driver finds the records of a killed slot that no row has by the end of the row before, so a partition needs a row
    before its first record is sent, and one at least each day: the topic keeps rows for three days.

    A part is sent again until it is written, and no new interval ends before that: so no row is lost, and the backlog
    does not grow while the topic accepts no writes.

    Args:
        partitions: returns the slot's partitions.
    """

    def __init__(
        self,
        spec: AppSpec,
        slot: int,
        application: str,
        sink: LedgerSink,
        partitions: Callable[[], Sequence[Partition]],
        now: float,
        now_ms: int,
    ) -> None:
        self._partitions = partitions
        self._spec = spec
        self._slot = slot
        self._application = application
        self._sink = sink
        self._ends_at = now + spec.ledger_seconds
        self._began_ms = self._next_began_ms = now_ms
        self._retired: list[Partition] = []
        self._left: deque[Partition] = deque()  # their rows of the ended interval are still to be created
        self._refused: deque[LedgerPart] = deque()
        self._again_at = 0.0
        self._unwritten = 0  # number of parts that are not acknowledged yet

    def open(self, placed: Sequence[Partition], now_ms: int) -> None:
        """Write a first row of each of these partitions, whose position has become known."""
        for start in range(0, len(placed), PARTITIONS_PER_TURN):
            self._make_rows(placed[start : start + PARTITIONS_PER_TURN], self._next_began_ms, now_ms)

    def retire(self, partitions: Iterable[Partition]) -> None:
        """Add partitions that the plan has taken away: each gets one more row."""
        self._retired += partitions

    def step(self, now: float, now_ms: int) -> None:
        """Do the work that is due, a little at a time."""
        if self._refused and now >= self._again_at:
            self._again_at = now + AGAIN_SECONDS
            self._write_again()
        if self._left:
            self._end_some(now_ms)
        elif now >= self._ends_at and not self._unwritten:
            self._ends_at = now + self._spec.ledger_seconds
            self._end_interval(now_ms)

    def finish(self, now_ms: int) -> None:
        """Write the last rows immediately."""
        self._write_again()
        while self._left:
            self._end_some(now_ms)
        self._end_interval(now_ms)
        while self._left:
            self._end_some(now_ms)

    def _end_interval(self, now_ms: int) -> None:
        self._left.extend(self._partitions())
        self._left.extend(self._retired)
        self._retired.clear()
        self._began_ms, self._next_began_ms = self._next_began_ms, now_ms

    def _end_some(self, now_ms: int) -> None:
        self._make_rows(_some_of(self._left), self._began_ms, now_ms)

    def _make_rows(self, partitions: Sequence[Partition], began_ms: int, now_ms: int) -> None:
        entries = [entry for partition in partitions if (entry := _entry(partition, now_ms)) is not None]
        if entries:
            self._write(
                LedgerPart(
                    link=self._spec.link,
                    group=self._spec.group,
                    slot=self._slot,
                    application=self._application,
                    started_at_ms=began_ms,
                    ended_at_ms=now_ms,
                    entries=tuple(entries),
                )
            )

    def _write(self, part: LedgerPart) -> None:
        def done(error: StraitError | None) -> None:
            if error is None:
                self._unwritten -= 1
            else:
                self._refused.append(part)

        self._unwritten += 1
        self._sink.write_ledger(part, done)

    def _write_again(self) -> None:
        refused, self._refused = self._refused, deque()
        self._unwritten -= len(refused)
        for part in refused:
            self._write(part)


def _some_of(waiting: deque[Partition]) -> list[Partition]:
    """Take as many partitions as are processed in one turn."""
    return [waiting.popleft() for _ in range(min(PARTITIONS_PER_TURN, len(waiting)))]


def _entry(partition: Partition, now_ms: int) -> LedgerEntry | None:
    """Return the partition's row, and set the start of its next one; None if nothing is new on this day (UTC)."""
    position, totals = partition.position, partition.totals
    reason, _ = reason_of(partition)
    shown = state_of(partition), reason.value if reason else ""
    ended = totals.end_interval(position.acked_sequence, (*shown, now_ms // _DAY_MS))
    if ended is None:
        return None
    known = position.run is not None
    source_id, destination_id = partition.ids
    entry = LedgerEntry.model_construct(
        topic=partition.topic,
        partition=partition.number,
        destination=partition.destination,
        source_id=source_id,
        destination_id=destination_id,
        source_from=ended.start.source,
        source_to=position.copied_to,
        destination_from=ended.start.offset,
        destination_to=position.expected_offset if known else -1,
        sequence_from=ended.start.sequence,
        sequence_to=position.acked_sequence,
        records=ended.records,
        batches=ended.batches,
        bytes=ended.bytes,
        digest=ended.digest,
        copy_digest=ended.copy_digest,
        copy_digest_from=ended.copy_digest_from,
        state=shown[0],
        reason=shown[1],
    )
    if known:
        totals.start(position.copied_to, position.expected_offset, position.acked_sequence)
    return entry
