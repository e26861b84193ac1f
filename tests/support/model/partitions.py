"""Partitions as a slot holds them, with nothing remarkable in them."""

from strait.engine.partition.partition import Partition
from strait.engine.partition.send_queue import OutBatch
from strait.net.buffers import BufferPool
from strait.state.schema import TopicPolicy
from support.model.reports import plain_run


def plain_partition(number: int = 0, policy: TopicPolicy | None = None) -> Partition:
    """Before its first look-up."""
    return Partition("t", number, "t", bytes([1]) * 16, bytes([2]) * 16, policy or TopicPolicy())


def placed(sequence: int = 0, *, number: int = 0, policy: TopicPolicy | None = None) -> Partition:
    """A look-up has found ``sequence`` to be the number of its next record."""
    partition = plain_partition(number, policy)
    partition.found([plain_run()], sequence, sequence)
    return partition


def batch_of(partition: Partition, timestamp_ms: int) -> OutBatch:
    """One byte, as the partition's next record."""
    buffer = BufferPool(1 << 20).adopt(bytearray(1))
    generation, sequence = partition.position.generation, partition.cursor.sequence
    return OutBatch(generation, buffer.view(), buffer, sequence, 1, 0, 1, 0, b"", 0, timestamp_ms, False)
