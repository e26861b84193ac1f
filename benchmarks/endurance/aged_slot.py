"""A slot that writes what weeks of copying leave in the state topics, without copying.

The product's own parts write: the checkpointer confirms, the reporter reports, history and ledger roll up, the state
writer sends, and a state reader follows the map as a slot does. Only the acknowledgements are made up: in each minute one record of each partition, at
a moment of its own, so that of 1,000 partitions 17 move in each second.

`fill` then makes the logs say the same: as many records in each partition of both sides, the copies under the link's
producer ID and numbers.
"""

import random
import time
from collections.abc import Iterable, Iterator

from endurance.compressed_time import Clock
from endurance.rig_link import RigLink
from strait.control.plane import GROUP
from strait.engine.checkpointer import Checkpointer
from strait.engine.ledger import IntervalLedger
from strait.engine.partition.changes import Changes
from strait.engine.partition.partition import Partition
from strait.engine.partition.send_queue import OutBatch
from strait.engine.reporter import Reported, Reporter
from strait.engine.slot_history import SlotHistory
from strait.engine.slot_metrics import SlotMetrics
from strait.model import topic_id_bytes
from strait.net.buffers import Buffer
from strait.state.reader import StateReader
from strait.state.writer import StateWriter
from strait.wire.batch import parse, restamp
from strait.wire.records import Record, build_batch
from support.fixtures.waiting import eventually
from support.kafka.raw import RawClient

_APPLICATION = "endurance"
_MINUTE_SECONDS = 60
_CLOCK_STEP_SECONDS = 10
_FLUSH_SECONDS = 120.0
_ZSTD = 4
_NOT_LEADER = 6


class AgedSlot:
    """Slot 0 of a link whose plan is published and that has copied nothing yet; the topic ``without`` stays so. Used as a
    context manager."""

    def __init__(self, link: RigLink, clock: Clock, seed: int, *, without: str = "") -> None:
        self._link = link
        self._clock = clock
        self._state = StateReader(link.destination.client_properties, "destination", link.name, some_partitions=True)
        self._state.catch_up(60.0)
        self._writer = StateWriter(link.destination.client_properties, "destination", link.name)
        self._checkpointer = Checkpointer(self._writer)
        self._plan = self._state.plans[GROUP]
        self._changes: Changes[Partition] = Changes()
        self.partitions = list(self._planned(without))
        self._second = time.monotonic()  # in compressed time
        self._metrics = SlotMetrics(link.spec, 0, _APPLICATION)
        self._history = SlotHistory(GROUP, 0, clock.now_ms)
        self._reporter = Reporter(self._metrics, self._changes, self._history, lambda _: None)
        self._ledger = IntervalLedger(
            link.spec, 0, _APPLICATION, self._writer, lambda: self.partitions, self._second, clock.now_ms
        )
        self._second_of = {id(one): random.Random(f"{seed} {one}").randrange(60) for one in self.partitions}
        self.records = 0  # acknowledged in each partition

    def __enter__(self) -> "AgedSlot":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.flush(_FLUSH_SECONDS)
        self._state.close()

    def copy_minute(self, *, reporting: bool) -> None:
        """One minute of copying, at whose end the map's checkpoints are due. Its past is rolled up in any case."""
        self.records += 1
        if reporting:
            for second in range(_MINUTE_SECONDS):
                self._copy_second(second)
        else:
            self._acknowledge_all()
            self._write_reports(self._history.observe(
                self._clock.now_ms, self._metrics.totals, lag_records=0, lag_seconds=0.0, latency_ms_p99=None
            ))  # fmt: skip
        self._checkpoint()
        self._ledger.step(self._second, self._clock.now_ms)
        self._writer.flush(_FLUSH_SECONDS)

    def _copy_second(self, second: int) -> None:
        for partition in self.partitions:
            if self._second_of[id(partition)] == second:
                self._acknowledge(partition)
        if self._second >= self._reporter.next_at:
            self._write_reports(self._reporter.due(self._plan.version, self._second))
        self._writer.poll()
        self._second += 1
        if second % _CLOCK_STEP_SECONDS == _CLOCK_STEP_SECONDS - 1:
            self._advance(_CLOCK_STEP_SECONDS)

    def acknowledge_minute(self) -> None:
        """One minute of copying that nothing is written of."""
        self.records += 1
        self._acknowledge_all()

    def fill(self) -> None:
        """Make both logs hold what was acknowledged; the last record is of now."""
        with RawClient(self._link.source) as source, RawClient(self._link.destination) as destination:
            for first, count in ((0, self.records - 1), (self.records - 1, 1)):
                now_ms = self._clock.now_ms
                age = [(self.records - 1 - number) * 60_000 for number in range(first, first + count)]
                records = [Record(at, now_ms - ago, None, b"", ()) for at, ago in enumerate(age)]
                for partition in self.partitions if count else ():
                    batch = build_batch(records, _ZSTD)
                    _append(source, partition.source_id, partition.number, batch, first)
                    restamp(parse(memoryview(batch)), self._plan.producer_id, first)
                    _append(destination, partition.destination_id, partition.number, batch, first)

    def _planned(self, without: str) -> Iterator[Partition]:
        for topic in self._plan.topics:
            for number, slot in enumerate(topic.slots):
                if slot == 0 and topic.source != without:
                    ids = topic_id_bytes(topic.source_id), topic_id_bytes(topic.destination_id)
                    partition = Partition(topic.source, number, topic.destination, *ids, topic.policy, 0, self._changes)
                    partition.found(self._state.runs[topic.source, number], 0, 0)
                    partition.cursor.heard(0, 0, 0)
                    yield partition

    def _acknowledge_all(self) -> None:
        for partition in self.partitions:
            self._acknowledge(partition)
        self._second += _MINUTE_SECONDS
        self._advance(_MINUTE_SECONDS)

    def _acknowledge(self, partition: Partition) -> None:
        sequence = partition.position.acked_sequence
        partition.cursor.heard(sequence + 1, sequence + 1, 0)
        partition.cursor.stamped(1, sequence + 1, sequence + 1, 0)
        batch = _batch(sequence, self._clock.now_ms)
        partition.acked(batch, self._second)
        self._metrics.acked(batch, self._second)

    def _write_reports(self, reported: Iterable[Reported]) -> None:
        for record in reported:
            self._writer.write_report(record)

    def _checkpoint(self) -> None:
        self._state.poll()
        for partition in self.partitions:
            known = self._state.runs.get((partition.topic, partition.number), ())
            self._checkpointer.check(partition, known, self._clock.now_ms)

    def _advance(self, seconds: int) -> None:
        """What was written is stamped before time passes."""
        self._writer.flush(_FLUSH_SECONDS)
        self._clock.advance(seconds)


def _append(client: RawClient, topic_id: bytes, number: int, batch: bytearray, first: int) -> None:
    """At offset ``first``. A broker that is busy may lead nothing for a moment."""

    def appended() -> bool:
        produced = client.append(topic_id, number, batch)
        assert produced.error in (0, _NOT_LEADER), produced
        assert produced.error or produced.base_offset == first, produced
        return not produced.error

    eventually(appended, what="the partition's leader")


def _batch(sequence: int, at_ms: int) -> OutBatch:
    """One record, acknowledged."""
    return OutBatch(0, _NOTHING, _NO_BUFFER, sequence, 1, sequence, sequence + 1, 0, b"", 0, at_ms, True)


_NOTHING = memoryview(b"")
_NO_BUFFER = Buffer(lambda _: None, bytearray(), 0)
