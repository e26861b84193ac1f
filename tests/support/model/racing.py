"""Copies of one partition without sockets: the engine's own decisions against a map and a destination made of lists."""

from collections.abc import Callable, Collection, Mapping, Sequence
from io import BytesIO
from typing import Any
from zlib import crc32

import pyarrow as pa

from strait.engine.batch_stamper import BatchStamper
from strait.engine.checkpointer import Checkpointer
from strait.engine.detour.collector import Collector
from strait.engine.detour.frames import Returned, encode, read
from strait.engine.detour.layout import FROM_SPARK, Kind
from strait.engine.detour.merging import made_of, taken
from strait.engine.detour.rows import RETURNED, address_row, filler_rows
from strait.engine.evaluation import Made, Refusal, Work
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.partition.send_queue import OutBatch
from strait.engine.recovery.decision import Found, LogState, Refused, Scan, Unproven, from_leader, from_tail
from strait.engine.recovery.tail import Tail
from strait.errors import StraitError
from strait.model import topic_id_text
from strait.net.buffers import BufferPool
from strait.reasons import Reason
from strait.state.codec import run_key
from strait.state.keys import RunKey
from strait.state.offset_map import candidates, places, wire_sequence
from strait.state.quarantine_records import QuarantinedRecord
from strait.state.schema import Loss, OffsetMapping, TopicPolicy
from strait.state.transform import TopicTransform
from strait.wire.batch import parse
from strait.wire.fetch import Fetched
from strait.wire.records import Record, read_records
from support.model.histories import MAX_BYTES, History

SOURCE_ID, DESTINATION_ID = bytes([1]) * 16, bytes([2]) * 16
OnAck = Callable[[StraitError | None], None]


class World:
    """What all copies share: the source's history, the map, and the destination's log. Batches of the producers
    ``links`` are copies, which are not copied. ``transform``: what is done to each record, by `transformed`."""

    def __init__(
        self,
        history: History,
        start: int = 0,
        links: Collection[int] = (),
        transform: TopicTransform | None = None,
        most_bytes: int = MAX_BYTES,
    ) -> None:
        self.history = history
        self.policy = TopicPolicy(max_message_bytes=most_bytes, transform=transform)
        self.log: list[Record] = []
        self._links = links
        self.expected = [
            record
            for record in history.committed
            if record.offset >= start and history.producers.get(record.offset, -1) not in links
        ]
        if transform is not None:
            self.expected = [made for made in map(transformed, self.expected) if isinstance(made, Record)]
        self.map: dict[RunKey, OffsetMapping] = {}
        self.forgotten = False
        """The destination's leader has forgotten the link's producer ID, until the next batch."""
        first = OffsetMapping(
            topic="t",
            partition=0,
            destination="t",
            source_id=topic_id_text(SOURCE_ID),
            destination_id=topic_id_text(DESTINATION_ID),
            source_base=start,
            destination_base=0,
            sequence_base=0,
            sequence_end=0,
            checkpoint_at_ms=0,
            transform=self.policy.transform_digest,
        )
        self.map[run_key(first)] = first

    def left_out(self, _: TopicPolicy) -> Mapping[int, bool]:
        return {producer_id: producer_id in self._links for producer_id in range(-1, 10)}

    def judge(self, partition: Partition, producer_ids: frozenset[int]) -> None:
        raise AssertionError(f"{partition}: {producer_ids} are judged")

    @property
    def runs(self) -> list[OffsetMapping]:
        return sorted(self.map.values(), key=lambda run: run.sequence_base)


def transformed(record: Record) -> Record | Kind | None:
    """Transform a record as the model's transformation says: about half of them stay, one in twenty is malformed."""
    chance = crc32(record.value or b"-", crc32(b"%d" % record.offset)) % 20
    if chance == 0:
        return Kind.MALFORMED
    if chance % 2:
        return None
    value = None if record.value is None else record.value[::-1]
    return record._replace(key=b"masked " + (record.key or b"none"), value=value)


class Evaluation:
    """Evaluates the model's transformation when the test says so, over the rows and frames that go through Spark."""

    def __init__(self) -> None:
        self._works: list[tuple[Work, Callable[[Made], None]]] = []
        self._collector = Collector({})
        self._chunk = 0

    def submit(self, work: Work, done: Callable[[Made], None]) -> None:
        self._works.append((work, done))

    @property
    def waits(self) -> bool:
        return bool(self._works)

    def settle(self, most: int) -> None:
        """Evaluate so much of the work that was handed in."""
        works, self._works = self._works[:most], self._works[most:]
        for work, done in works:
            self._chunk += 1
            done(self._made(work))

    def _made(self, work: Work) -> Made:
        records = taken(work)
        for batch in (address_row("nowhere"), *records.rows(self._chunk), filler_rows(3)):
            for returned in self._collector.take(as_spark_does(batch)):
                stream = BytesIO(b"".join(encode(returned)))
                found = read(lambda size, stream=stream: bytearray(stream.read(size)))  # type: ignore[misc]
                assert isinstance(found, Returned) and found.chunk == self._chunk
                rows = found.rows
                return rows if isinstance(rows, Refusal) else made_of(records, rows, found.evaluated)
        raise AssertionError("the work has no result")


def as_spark_does(rows: Any) -> Any:
    """Rows as they come back from Spark."""
    found: list[Sequence[Any]] = []
    for row in rows.to_pylist():
        record = Record(row["offset"], row["__ms"], row["key"], row["value"], ())
        made = transformed(record) if row["__kind"] == Kind.RECORD else record
        kind, one = (row["__kind"], made) if isinstance(made, Record) else (made or Kind.LEFT_OUT, record)
        changed = kind in (Kind.RECORD, Kind.ADDRESS)
        found.append((int(kind), one.offset, one.key if changed else None, one.value if changed else None, None))
    columns = [pa.array([row[at] for row in found], field.type) for at, field in enumerate(RETURNED)]
    return pa.RecordBatch.from_arrays(columns, names=FROM_SPARK)


class Notes:
    """The map as one copy writes it: in order, and acknowledged when the test says so."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: list[tuple[RunKey | None, OffsetMapping | None, OnAck | None]] = []
        self.quarantined: list[int] = []

    def write_run(self, run: OffsetMapping, on_ack: OnAck | None = None) -> None:
        self._waiting.append((run_key(run), run, on_ack))

    def forget_run(self, run: OffsetMapping) -> None:
        self._waiting.append((run_key(run), None, None))

    def write_loss(self, loss: Loss, on_ack: OnAck | None = None) -> None:
        raise AssertionError(f"nothing was lost: {loss}")

    def write_quarantined(self, quarantined: QuarantinedRecord, on_ack: OnAck) -> None:
        assert quarantined.reason is Reason.MALFORMED_RECORD
        assert quarantined.record[2:] == (None, None, ())
        self.quarantined.append(quarantined.record.offset)
        self._waiting.append((None, None, on_ack))

    def settle(self, most: int, *, acknowledge: bool = True) -> None:
        """Write so many of those that wait."""
        settled, self._waiting = self._waiting[:most], self._waiting[most:]
        for key, run, on_ack in settled:
            if key is None:
                pass
            elif run is None:
                self._world.map.pop(key, None)
            else:
                self._world.map[key] = run
            if acknowledge and on_ack is not None:
                on_ack(None)


class Copy:
    """One slot's copy of the partition."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._pool = BufferPool(1 << 30)
        self.start()

    def start(self) -> None:
        """Begin anew, as after a crash: all that was not written is forgotten."""
        self.notes = Notes(self._world)
        self.evaluation = Evaluation()
        self._checkpointer = Checkpointer(self.notes)
        self._stamper = BatchStamper(
            self._pool,
            self.notes,
            9,
            self._world,
            emit=self._queue,
            stop=self._stop,
            broken=self._broken,
            freed=lambda _: None,
            evaluator=self.evaluation,
        )
        self.partition = Partition("t", 0, "t", SOURCE_ID, DESTINATION_ID, self._world.policy)

    def find(self) -> None:
        """The one recovery path: its decisions, with the log and the records at hand."""
        world, runs = self._world, self._world.runs
        found = self._found(runs)
        assert isinstance(found, Found), found
        assert found.sequence == len(world.log) and found.lost is None
        begun = [run for run in runs if run.sequence_base < found.sequence]
        position = places(runs, found.sequence)[0]
        if begun:
            named = candidates(begun, found.sequence)
            equal = next(one for one in named if one - 1 == world.log[-1].offset)
            position = position if equal == named[0] else equal
        self.partition.found(runs, found.sequence, position)

    def _found(self, runs: list[OffsetMapping]) -> Found | Refused | Unproven:
        world, end = self._world, len(self._world.log)
        known = wire_sequence(end - 1) if end and not world.forgotten else None
        outcome = from_leader(runs, LogState(end, known, end, end))
        if not isinstance(outcome, Scan):
            return outcome
        unread = Tail(outcome.start)
        return from_tail(
            runs, end, Tail(outcome.start, wire_sequence(end - 1), end - 1) if outcome.start < end else unread
        )

    def fetch(self, batches: int) -> None:
        """Take in the next so many batches of the source."""
        if self.partition.position.phase is not Phase.REPLICATING:
            self.find()
        if self.partition.cursor.unfinished:
            return  # nothing is fetched then
        history = self._world.history
        frame = self._pool.adopt(bytearray(history.bytes_from(self.partition.cursor.offset, batches)))
        item = Fetched("t", 0, 0, 0, 0, 0, frame.view(), tuple(history.aborted_from(self.partition.cursor.offset)))
        whole = self._stamper.take(self.partition, item, frame, tailing=False)
        assert whole or self._world.policy.transform is not None
        frame.release()

    def send(self) -> bool:
        """Send what may go out; False if the destination expected another record."""
        world, partition = self._world, self.partition
        while (batch := partition.queue.take(0.0)) is not None:
            partition.queue.landed(batch)
            batch.buffer.release()
            if batch.sequence != len(world.log):
                partition.reset_position(None, "conflict", 0.0)
                return False
            copied = read_records(parse(batch.view))
            originals = world.expected[len(world.log) : len(world.log) + len(copied)]
            assert [one[1:] for one in copied] == [one[1:] for one in originals]
            world.log += originals
            world.forgotten = False
            partition.acked(batch, 0.0)
        return True

    def keep_map(self, log_start: int = -1) -> None:
        """Write a checkpoint and tidy up."""
        if self.partition.position.phase is Phase.REPLICATING:
            self.partition.position.log_begins(log_start)
            self._checkpointer.check(self.partition, self._world.runs, 1)

    def _queue(self, partition: Partition, batch: OutBatch) -> None:
        partition.queue.append(batch)

    def _stop(self, _: Partition, reason: Reason, detail: str) -> None:
        raise AssertionError(f"{reason}: {detail}")

    def _broken(self, _: Partition, cause: str) -> None:
        raise AssertionError(cause)
