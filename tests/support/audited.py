"""Two logs made by hand for audits: batches of a source, and of a copy as a link or another tool writes it."""

import random
import struct
from collections.abc import Iterable, Sequence

from strait.wire.batch import Batch, parse, restamp, seal
from strait.wire.records import Record, build_batch

PRODUCER = 4711


def record(number: int, chance: random.Random) -> Record:
    """One that is unlike all others."""
    key = None if chance.random() < 0.1 else b"key %d" % number
    value = None if chance.random() < 0.1 else b"%d %s" % (number, chance.randbytes(chance.randrange(40)))
    headers = (("origin", b"%d" % number),) if chance.random() < 0.2 else ()
    return Record(0, 1_700_000_000_000 + number * 10 + chance.randrange(10), key, value, headers)


def batch_at(offset: int, records: Sequence[Record], codec: int = 0, *, producer: tuple[int, int] = (-1, -1)) -> Batch:
    """A batch as a broker holds it."""
    made = build_batch(records, codec)
    stamped = memoryview(made)
    if producer[0] >= 0:
        restamp(parse(stamped), *producer)
    struct.pack_into(">q", made, 0, offset)
    return parse(stamped)


def cut(records: Sequence[Record], sizes: Iterable[int]) -> list[Sequence[Record]]:
    found, at = [], 0
    for size in sizes:
        if at >= len(records):
            break
        found.append(records[at : at + size])
        at += size
    return found


def log_of(
    records: Sequence[Record],
    chance: random.Random,
    *,
    most: int = 40,
    first_offset: int = 0,
    first_sequence: int | None = None,
) -> list[Batch]:
    """The records in batches of random sizes and codecs; of the link's producer, if ``first_sequence`` is given."""
    found, offset = [], first_offset
    while records:
        size = chance.randrange(1, most)
        piece, records = records[:size], records[size:]
        producer = (-1, -1) if first_sequence is None else (PRODUCER, first_sequence + offset - first_offset)
        found.append(batch_at(offset, piece, chance.choice([0, 1, 3, 4]), producer=producer))
        offset += len(piece)
    return found


def passed(source: Sequence[Batch], *, first_offset: int = 0, first_sequence: int = 0) -> list[Batch]:
    """The batches as a link passes them through."""
    found, at = [], 0
    for batch in source:
        copy = bytearray(batch.view)
        restamp(parse(memoryview(copy)), PRODUCER, (first_sequence + at) % (1 << 31))
        struct.pack_into(">q", copy, 0, first_offset + at)
        found.append(parse(memoryview(copy)))
        at += batch.records
    return found


def flipped(batch: Batch, bit: int) -> Batch:
    """The batch with one bit changed on disk."""
    copy = bytearray(batch.view)
    copy[bit // 8] ^= 1 << bit % 8
    return parse(memoryview(copy))


def resealed(batch: Batch, at: int, what: bytes) -> Batch:
    """The batch with other bytes and a checksum that matches them."""
    copy = bytearray(batch.view)
    copy[at : at + len(what)] = what
    seal(copy)
    return parse(memoryview(copy))
