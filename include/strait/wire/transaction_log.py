"""Records of `__transaction_state`, in which a cluster's coordinators keep every step of every transaction. Pure.

Key: version i16 (0), transactional id. Value, version 0: producer id i64, producer epoch i16, timeout i32, state i8,
partitions (topic, numbers), time of this step i64, time of the start i64. Version 1 (KIP-890) has the same fields, with
compact strings and arrays, and tagged fields.
"""

from struct import Struct
from typing import NamedTuple

from strait.errors import ProtocolError
from strait.wire.primitives import decoding, read_compact_string, read_uvarint, skip_tags

PREPARE_COMMIT = 2
PREPARE_ABORT = 3
COMPLETE = frozenset({4, 5})
_HEAD = Struct(">hqhib")
_I16, _I32, _I64 = Struct(">h"), Struct(">i"), Struct(">q")


class TransactionStep(NamedTuple):
    """``state``: Kafka's number for it. ``partitions``: topics and partition numbers that the transaction has written
    to so far; none once it is complete."""

    transactional_id: str
    producer_id: int
    state: int
    partitions: tuple[tuple[str, int], ...]
    at_ms: int


def read_step(key: bytes | None, value: bytes | None) -> TransactionStep | None:
    """Return the step in a record; None if the record is a tombstone or of another kind.

    Raises:
        ProtocolError: its version is unknown here, or it is malformed.
    """
    with decoding("a record of the transaction log"):
        if key is None or value is None or _I16.unpack_from(key)[0] != 0:
            return None
        name = key[4 : 4 + _I16.unpack_from(key, 2)[0]].decode(errors="replace")
        version, producer_id, _, _, state = _HEAD.unpack_from(value)
        if version not in (0, 1):
            raise ProtocolError(f"a record of the transaction log has version {version}, expected 0 or 1")
        read = _read_compact if version else _read_plain
        partitions, at = read(memoryview(value), _HEAD.size)
        return TransactionStep(name, producer_id, state, tuple(partitions), _I64.unpack_from(value, at)[0])


def _read_plain(value: memoryview, at: int) -> tuple[list[tuple[str, int]], int]:
    found = []
    topics, at = _I32.unpack_from(value, at)[0], at + 4
    for _ in range(topics):
        length, at = _I16.unpack_from(value, at)[0], at + 2
        topic, at = str(value[at : at + length], "utf-8", "replace"), at + length
        numbers, at = _I32.unpack_from(value, at)[0], at + 4
        found += [(topic, _I32.unpack_from(value, at + 4 * each)[0]) for each in range(numbers)]
        at += 4 * numbers
    return found, at


def _read_compact(value: memoryview, at: int) -> tuple[list[tuple[str, int]], int]:
    """Read compact fields: an encoded length is the length plus 1; 0 is null."""
    found = []
    topics, at = read_uvarint(value, at)
    for _ in range(topics - 1):
        topic, at = read_compact_string(value, at)
        numbers, at = read_uvarint(value, at)
        numbers = max(0, numbers - 1)
        found += [(topic or "", _I32.unpack_from(value, at + 4 * each)[0]) for each in range(numbers)]
        at = skip_tags(value, at + 4 * numbers)
    return found, at
