"""Segments of a partition that are written anew while their broker is down: with other records, and checksums that match them.

What a faulty tool, a wrong restore or a person with a hex editor leaves, and no checksum shows.
"""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from strait.wire.batch import CODEC_MASK, HEADER_BYTES, PREFIX_BYTES, Batch, seal, split_batches
from strait.wire.record_bytes import encode_content, varint
from strait.wire.records import Record, read_records
from support.kafka.segments import segments

Rewrite = Callable[[Sequence[Record]], Sequence[Record]]
"""Returns the records of a batch as they shall be, each at the offset that it has; none: the batch is taken out."""


def rewrite(folder: Path, topic: str, partition: int, change: Rewrite) -> None:
    """Write each copy of a partition below a folder of brokers anew. The broker makes the indexes again at its start."""
    for path in segments(folder, topic, partition):
        data = memoryview(path.read_bytes())
        path.write_bytes(b"".join(_rewritten(batch, change) for batch in split_batches(data)))
        for index in (".index", ".timeindex"):
            path.with_suffix(index).unlink(missing_ok=True)


def _rewritten(batch: Batch, change: Rewrite) -> bytes:
    before = list(read_records(batch))
    after = list(change(before))
    if not after:
        return b""
    if after == before:
        return bytes(batch.view)
    body = b"".join(_encoded(batch, one) for one in after)
    made = bytearray(batch.view[:HEADER_BYTES]) + body
    struct.pack_into(">i", made, 8, len(made) - PREFIX_BYTES)
    struct.pack_into(">h", made, 21, batch.attributes & ~CODEC_MASK)
    struct.pack_into(">i", made, 57, len(after))
    seal(made)
    return bytes(made)


def _encoded(batch: Batch, one: Record) -> bytes:
    content = encode_content(one.key, one.value, one.headers)
    deltas = varint(one.timestamp_ms - batch.base_timestamp) + varint(one.offset - batch.base_offset)
    body = b"\0" + deltas + content
    return varint(len(body)) + body
