"""The checksums of sent batches for the ledger: the brokers have these, whatever becomes of the memory that held the batches."""

import zlib
from typing import Any

from strait.engine.batch_stamper import BatchStamper
from strait.engine.partition.send_queue import OutBatch
from strait.net.buffers import BufferPool
from strait.wire.batch import CRC_BYTES, check, parse
from strait.wire.fetch import Fetched
from strait.wire.records import Record
from support.model.batches import source_batch
from support.model.partitions import placed


class Everything:
    """Judges no batch a copy."""

    def left_out(self, *_: object) -> None:
        return None

    def judge(self, *_: object) -> None:
        raise AssertionError


def test_the_ledger_s_digest_is_of_the_batches_as_they_were_sent_though_their_memory_is_used_again() -> None:
    pool, partition, sent, never = BufferPool(1 << 20), placed(), list[OutBatch](), Any
    stamper = BatchStamper(
        pool,
        never,  # type: ignore[arg-type]
        7,
        Everything(),
        emit=lambda _, batch: sent.append(batch),
        stop=never,
        broken=never,
        freed=never,
    )
    batches = [
        source_batch([Record(n, 5, b"k", b"v" * 200, ()) for n in range(at, at + 100)], at, at + 100, codec=0)
        for at in (0, 100)
    ]
    data = b"".join(map(bytes, batches))
    frame = pool.take(len(data))
    frame.view()[:] = data
    assert stamper.take(partition, Fetched("t", 0, 0, 200, 200, 0, frame.view()), frame, tailing=False)
    as_sent = [bytes(batch.view) for batch in sent]
    assert len(as_sent) == 2
    for batch in as_sent:
        check(parse(memoryview(batch)))
    frame.view()[:] = bytes(len(data))  # sent, and used for another reply
    for batch in sent:
        partition.position.acked(batch)
        partition.totals.acked(batch)
    ended = partition.totals.end_interval(200, ("copying", ""))
    assert ended is not None
    assert (ended.copy_digest_from, ended.copy_digest) == (0, zlib.crc32(b"".join(one[CRC_BYTES] for one in as_sent)))
