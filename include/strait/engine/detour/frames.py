"""Frames that the second process of a task sends to the slot over a local socket: the result of one piece of work. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct

import numpy as np

from strait.engine.evaluation import Made, MadeBatch, Malformed, Refusal
from strait.reasons import Reason

LENGTH = Struct("<q")
_HEAD = Struct("<qi")  # number of the work, number of items
_ITEM = Struct("<bqi")  # kind; offset or bytes; records
_BATCH, _MALFORMED, _REFUSAL = range(3)
_FAILURE = -1  # instead of the number of a piece of work


def encode(chunk: int, made: Made) -> list[bytes | bytearray | memoryview]:
    """Return the pieces of a frame, its length first."""
    items: Sequence[object] = [made] if isinstance(made, Refusal) else made
    pieces: list[bytes | bytearray | memoryview] = [_HEAD.pack(chunk, len(items))]
    for item in items:
        pieces += _encoded(item)
    return [LENGTH.pack(sum(map(len, pieces))), *pieces]


def encode_failure(cause: str) -> bytes:
    """Return the frame that ends the task: the second process cannot continue."""
    frame = _HEAD.pack(_FAILURE, 0) + cause.encode()
    return LENGTH.pack(len(frame)) + frame


def failure_of(frame: bytearray) -> str | None:
    """Return the cause if the frame ends the task, else None."""
    return frame[_HEAD.size :].decode() if _HEAD.unpack_from(frame)[0] == _FAILURE else None


def _encoded(item: object) -> Iterable[bytes | bytearray | memoryview]:
    if isinstance(item, MadeBatch):
        offsets = np.ascontiguousarray(item.offsets, np.int64)
        return _ITEM.pack(_BATCH, len(item.data), len(offsets)), item.data, offsets.tobytes()
    if isinstance(item, Malformed):
        return (_ITEM.pack(_MALFORMED, item.offset, 0),)
    assert isinstance(item, Refusal)
    detail = item.detail.encode()
    return _ITEM.pack(_REFUSAL, len(detail), len(item.reason)), item.reason.encode(), detail


def decode(frame: bytearray) -> tuple[int, Made]:
    """Return the number of the work and its result. ``frame``: without its length."""
    chunk, count = _HEAD.unpack_from(frame)
    found = list(_decoded(frame, count))
    refusal = next((item for item in found if isinstance(item, Refusal)), None)
    return chunk, refusal or [item for item in found if not isinstance(item, Refusal)]


def _decoded(frame: bytearray, count: int) -> Iterator[MadeBatch | Malformed | Refusal]:
    at = _HEAD.size
    for _ in range(count):
        kind, number, records = _ITEM.unpack_from(frame, at)
        at += _ITEM.size
        if kind == _MALFORMED:
            yield Malformed(number)
        elif kind == _BATCH:
            behind = at + number
            yield MadeBatch(frame[at:behind], np.frombuffer(frame, np.int64, records, behind))
            at = behind + 8 * records
        else:
            reason = Reason(frame[at : at + records].decode())
            yield Refusal(reason, frame[at + records : at + records + number].decode())
            at += records + number
