"""Converts the fetched data of a partition to batches that wait to be sent: shaped, numbered and stamped.

If source offsets hold nothing to copy, the offset map must record the gap before any later record is sent. A state
record that must be acknowledged first is a *write barrier* (``promise`` in the code): each batch queued after it is
held until it is acknowledged.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from strait.engine.evaluation import Evaluator
from strait.engine.partition.cursor import Cursor
from strait.engine.partition.partition import Partition, Ticket
from strait.engine.partition.send_queue import OutBatch
from strait.engine.transforming import Transforming, Unfinished
from strait.errors import CorruptBatch, StraitError
from strait.net.buffers import Buffer, BufferPool
from strait.reasons import Reason
from strait.state.offset_map import Gap, pack, wire_sequence
from strait.state.packed_gaps import MOST_GAPS
from strait.state.quarantine_records import QuarantinedRecord
from strait.state.schema import Loss, OffsetMapping, TopicPolicy
from strait.state.sink import OnAck, StateSink
from strait.wire import batch as batches
from strait.wire.bounded import before
from strait.wire.fetch import Fetched
from strait.wire.rebatch import shape
from strait.wire.shapes import (
    Paused,
    Piece,
    Quarantined,
    Rules,
    Shape,
    Skipped,
    Stop,
    Unjudged,
)

UNFINISHED_QUEUE_BYTES = 4 << 20
"""A partition with at least this many bytes queued does not continue rebuilding a batch of very many records."""

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class Judge(Protocol):
    """Distinguishes batches that a link wrote to the source from batches that originated there."""

    def left_out(self, policy: TopicPolicy) -> Mapping[int, bool] | None:
        """Return, for each producer ID, whether its batches are skipped under a policy; None if all are copied."""
        ...

    def judge(self, partition: Partition, producer_ids: frozenset[int]) -> None:
        """Determine whether links own these producer IDs. The partition is fetched again once that is known."""
        ...


class _MapEntry(NamedTuple):
    """The entries of one offset segment. ``corrects``: its first entry corrects the source offset that the map has for
    that record. Such a segment must not count as a start position, since other entries still apply after one."""

    promise: int
    corrects: bool
    gaps: list[Gap]


class BatchStamper:
    """Shapes, numbers and stamps the fetched batches of a slot's partitions.

    ``emit`` receives each batch of a partition, in order; ``stop`` a partition that cannot continue, with the reason;
    ``broken`` a partition whose write barrier failed; ``freed`` a partition that may send again. ``evaluator`` transforms
    records; None: no partition that needs it may be taken.
    """

    def __init__(
        self,
        pool: BufferPool,
        state_sink: StateSink,
        producer_id: int,
        judge: Judge,
        *,
        emit: Callable[[Partition, OutBatch], None],
        stop: Callable[[Partition, Reason, str], None],
        broken: Callable[[Partition, str], None],
        freed: Callable[[Partition], None],
        evaluator: Evaluator | None = None,
    ) -> None:
        self._pool = pool
        self._transforming = None if evaluator is None else Transforming(evaluator, self._take, stop)
        self._state_sink = state_sink
        self._producer_id = producer_id
        self._judge = judge
        self._emit = emit
        self._stop = stop
        self._broken = broken
        self._freed = freed
        self._unfinished: deque[Unfinished] = deque()
        self.unwritten = 0
        """Number of write barriers that are not acknowledged yet."""

    def take(self, partition: Partition, item: Fetched, frame: Buffer, *, tailing: bool) -> bool:
        """Queue the data that a reply holds for a partition. Return False if the partition was stopped partway, or is
        held for a while."""
        rules = self._rules(partition)
        if partition.policy.transform is not None:
            if self._transforming is None:
                raise ValueError(f"{partition} is transformed, and nothing here can do that")
            return self._transforming.take(partition, item, frame, rules, tailing=tailing)
        shapes = shape(item.records, partition.cursor.offset, item.aborted, rules)
        if partition.cursor.until >= 0:
            shapes = before(shapes, partition.cursor.until, rules)
        return self._take(partition, shapes, frame, tailing)

    @property
    def unfinished(self) -> bool:
        """Whether `go_on` has work to do."""
        return any(
            not item.is_current or item.ticket.partition.queue.bytes < UNFINISHED_QUEUE_BYTES
            for item in self._unfinished
        )

    def go_on(self) -> None:
        """Continue rebuilding a batch of very many records: one turn of one partition."""
        for _ in range(len(self._unfinished)):
            item = self._unfinished.popleft()
            partition = item.ticket.partition
            if not item.is_current:
                partition.cursor.finish(finished=True)
                item.frame.release()
            elif partition.queue.bytes >= UNFINISHED_QUEUE_BYTES:
                self._unfinished.append(item)
            else:
                partition.cursor.finish(finished=True)
                self._take(partition, item.shapes, item.frame, item.tailing)
                item.frame.release()
                return

    def _take(self, partition: Partition, shapes: Iterator[Shape], frame: Buffer, tailing: bool) -> bool:
        promises: list[_MapEntry] = []
        try:
            for shaped in shapes:
                if isinstance(shaped, Piece):
                    self._plan_map_writes(partition, shaped, promises)
                    self._pass(partition, shaped, frame, tailing)
                elif isinstance(shaped, Skipped):
                    partition.skip(shaped.position, shaped.epoch, shaped.left_out)
                elif isinstance(shaped, Quarantined):
                    self._quarantine(partition, shaped)
                elif isinstance(shaped, Unjudged):
                    self._judge.judge(partition, shaped.producer_ids)
                    return False
                elif isinstance(shaped, Paused):
                    self._pause(partition, shapes, frame, tailing)
                    return True
                else:
                    self._halt(partition, shaped)
                    return False
        except CorruptBatch as error:
            self._stop(partition, Reason.CORRUPT_BATCH, str(error))
            return False
        finally:
            for words in promises:
                self._promise_run(partition, words)
        return True

    def _pause(self, partition: Partition, shapes: Iterator[Shape], frame: Buffer, tailing: bool) -> None:
        frame.hold()
        partition.cursor.finish(finished=False)
        self._unfinished.append(Unfinished.of(partition, shapes, frame, tailing))

    def note_loss(self, partition: Partition, loss: Loss) -> None:
        """Write an entry of the loss log. Batches that are queued after it are not sent before it is acknowledged."""
        self._state_sink.write_loss(loss, self._on_written(partition, partition.queue.promise()))

    def _plan_map_writes(self, partition: Partition, piece: Piece, promises: list[_MapEntry]) -> None:
        """Determine the map entries that this piece needs: one for each gap, and one for each record for which the map
        has a wrong source offset. An entry that is not a gap can only be the base of a segment."""
        cursor = partition.cursor
        gaps = _gaps(cursor, piece)
        told = cursor.told(cursor.sequence + piece.batch.records)
        if not gaps and not told:
            return
        missing = set(gaps).difference(told)
        wrong = {gap.sequence for gap in set(told).difference(gaps)}
        words = {Gap(sequence, _source_of(cursor, piece, sequence)) for sequence in wrong}.difference(told)
        for word in sorted(words.union(gaps) if words or missing or promises else ()):
            corrects = word.sequence in wrong
            if not promises or corrects or len(promises[-1].gaps) > MOST_GAPS:
                promises.append(_MapEntry(partition.queue.promise(), corrects, []))
            promises[-1].gaps.append(word)

    def _pass(self, partition: Partition, piece: Piece, frame: Buffer, tailing: bool) -> None:
        cursor, sequence = partition.cursor, partition.cursor.sequence
        crc = batches.restamp(piece.batch, self._producer_id, wire_sequence(sequence))
        if piece.memory is None:
            frame.hold()
        last = piece.stretches[-1]
        out = OutBatch(
            partition.position.generation,
            piece.batch.view,
            frame if piece.memory is None else self._pool.adopt(piece.memory, frame),
            sequence,
            piece.batch.records,
            piece.stretches[0].source,
            last.source + last.records,
            partition.queue.last_promise,
            piece.crcs,
            piece.epoch,
            piece.batch.max_timestamp,
            tailing,
            crc if partition.policy.source_compacted else 0,
            piece.built,
            crc.to_bytes(4),
        )
        cursor.stamped(piece.batch.records, out.position, piece.position, piece.epoch)
        self._emit(partition, out)

    def _promise_run(self, partition: Partition, words: _MapEntry) -> None:
        base, *gaps = words.gaps
        source_id, destination_id = partition.ids
        run = OffsetMapping(
            topic=partition.topic,
            partition=partition.number,
            destination=partition.destination,
            source_id=source_id,
            destination_id=destination_id,
            source_base=base.source,
            destination_base=base.sequence + partition.position.shift,
            sequence_base=base.sequence,
            gaps=pack(
                gaps, sequence_base=base.sequence, source_base=base.source, bits=bool(partition.policy.transform)
            ),
            sequence_end=max(0, min(partition.position.acked_sequence, base.sequence - words.corrects)),
            checkpoint_at_ms=0,
            transform=partition.policy.transform_digest,
        )
        partition.position.claim(run)
        self._state_sink.write_run(run, self._on_written(partition, words.promise))

    def _quarantine(self, partition: Partition, quarantined: Quarantined) -> None:
        done = self._on_written(partition, partition.queue.promise())
        partition.step_over(quarantined.record.offset)
        set_aside = QuarantinedRecord(
            partition.topic,
            partition.number,
            partition.destination,
            quarantined.record,
            quarantined.reason,
            quarantined.detail,
        )
        self._state_sink.write_quarantined(set_aside, done)

    def _on_written(self, partition: Partition, promise: int) -> OnAck:
        self.unwritten += 1
        return partial(self._written, partition.ticket(), promise)

    def _written(self, ticket: Ticket, promise: int, error: StraitError | None) -> None:
        self.unwritten -= 1
        if not ticket.is_current:
            return
        if error is not None:
            self._broken(ticket.partition, str(error))
            return
        ticket.partition.queue.keep(promise)
        self._freed(ticket.partition)

    def _halt(self, partition: Partition, stop: Stop) -> None:
        if partition.policy.on_refused == "quarantine":
            partition.cursor.put_aside(stop.offset, stop.reason, stop.detail)
            partition.block(stop.reason, stop.detail, 0.0)  # fetched again immediately, now to be quarantined
        else:
            self._stop(partition, stop.reason, stop.detail)

    def _rules(self, partition: Partition) -> Rules:
        policy, cursor = partition.policy, partition.cursor
        return Rules(
            cursor.max_batch_bytes,
            policy.max_message_bytes,
            CODECS.get(policy.compression),
            cursor.apart,
            cursor.quarantined,
            cursor.checked_to,
            self._judge.left_out(policy),
        )


def _gaps(cursor: Cursor, piece: Piece) -> list[Gap]:
    """Return the gaps before and inside a piece that is the next to be numbered."""
    found = []
    sequence, expected = cursor.sequence, cursor.mapped
    for stretch in piece.stretches:
        if stretch.source != expected:
            found.append(Gap(sequence, stretch.source))
        sequence += stretch.records
        expected = stretch.source + stretch.records
    return found


def _source_of(cursor: Cursor, piece: Piece, sequence: int) -> int:
    """Return the source offset of a record of a piece that is the next to be numbered."""
    behind = cursor.sequence
    for stretch in piece.stretches:
        behind += stretch.records
        if sequence < behind:
            return stretch.source + stretch.records - (behind - sequence)
    raise ValueError(f"the piece ends before record {sequence}")
