"""A batch of very many records, taken apart turn by turn."""

import pytest

from strait.engine.batch_stamper import UNFINISHED_QUEUE_BYTES, BatchStamper
from strait.engine.partition.partition import Partition
from strait.net.buffers import BufferPool
from strait.state.schema import TopicPolicy
from strait.wire.fetch import Fetched
from strait.wire.records import Record
from support.model.batches import source_batch
from support.model.partitions import placed

COUNT = 250_000


class Stamping:
    """A real stamper, and a reply that takes it three turns."""

    def __init__(self) -> None:
        self.pool = BufferPool(64 << 20)
        self.partition = placed(policy=TopicPolicy(compression="none"))
        self.partition.cursor.take_apart(0, 1)
        self.stamper = BatchStamper(
            self.pool,
            NotImplemented,
            7,
            self,
            emit=lambda partition, batch: partition.queue.append(batch),
            stop=NotImplemented,
            broken=NotImplemented,
            freed=NotImplemented,
        )
        batch = source_batch([Record(n, 5, None, b"", ()) for n in range(COUNT)], 0, COUNT, codec=0)
        self.frame = self.pool.take(len(batch))
        self.frame.view()[:] = batch
        item = Fetched("t", 0, 0, COUNT, COUNT, 0, self.frame.view())
        assert self.stamper.take(self.partition, item, self.frame, tailing=False)
        self.frame.release()

    def left_out(self, _: TopicPolicy) -> None:
        return None

    def judge(self, *_: object) -> None:
        raise AssertionError

    @property
    def sequence(self) -> int:
        return self.partition.cursor.sequence


@pytest.fixture
def stamping() -> Stamping:
    return Stamping()


def test_it_goes_on_where_it_was_and_nothing_is_fetched_meanwhile(stamping: Stamping) -> None:
    cursor, sequences = stamping.partition.cursor, [stamping.sequence]
    assert 0 < stamping.sequence < COUNT
    while stamping.stamper.unfinished:
        assert cursor.unfinished
        stamping.stamper.go_on()
        sequences.append(stamping.sequence)
    assert len(sequences) == 3
    assert (cursor.offset, cursor.sequence, cursor.unfinished) == (COUNT, COUNT, False)
    assert sum(batch.records for batch in stamping.partition.queue.batches) == COUNT
    stamping.partition.queue.drop()
    assert stamping.pool.used_bytes == 0


def test_it_waits_while_enough_is_queued(stamping: Stamping) -> None:
    stamping.partition.queue.bytes += UNFINISHED_QUEUE_BYTES
    before = stamping.sequence
    stamping.stamper.go_on()
    assert (stamping.stamper.unfinished, stamping.sequence) == (False, before)
    stamping.partition.queue.bytes -= UNFINISHED_QUEUE_BYTES
    assert stamping.stamper.unfinished


@pytest.mark.parametrize("how", ["reset", "jumped", "retired", "another policy"])
def test_it_is_dropped_when_the_partition_goes_on_elsewhere(stamping: Stamping, how: str) -> None:
    partition: Partition = stamping.partition
    match how:
        case "reset":
            partition.reset_position(None, "", 0.0)
        case "jumped":
            partition.jump(5)
        case "retired":
            partition.retire()
        case _:
            partition.obey(TopicPolicy(compression="lz4"))
    before = stamping.sequence
    stamping.stamper.go_on()
    assert (stamping.stamper.unfinished, partition.cursor.unfinished, stamping.sequence) == (False, False, before)
    partition.queue.drop()
    assert stamping.pool.used_bytes == 0
