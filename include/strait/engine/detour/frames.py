"""Frames that the second process of a task sends to the slot over a local socket: the rows that came back of one piece of
work. Pure."""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any, NamedTuple

import pyarrow as pa

from strait.engine.detour.rows import RETURNED
from strait.engine.evaluation import Refusal
from strait.reasons import Reason

HEAD = Struct("<qqqi")  # bytes after the head; number of the work; its rows; kind


class _Kind(IntEnum):
    ROWS = 0
    REFUSAL = 1
    FAILURE = 2


class Returned(NamedTuple):
    """The rows of one piece of work, of the columns `RETURNED`; or why it cannot be done. ``evaluated``: number of rows with
    those that are filtered out."""

    chunk: int
    rows: "pa.RecordBatch | Refusal"
    evaluated: int


class Failure(NamedTuple):
    """The second process cannot continue, which ends the task."""

    cause: str


def encode(one: Returned | Failure) -> list[Any]:
    """Return the pieces of a frame, its head first."""
    if isinstance(one, Failure):
        body: Any = one.cause.encode()
        return [HEAD.pack(len(body), -1, 0, _Kind.FAILURE), body]
    kind = _Kind.ROWS
    if isinstance(one.rows, Refusal):
        kind, body = _Kind.REFUSAL, f"{one.rows.reason}\n{one.rows.detail}".encode()
    else:
        body = memoryview(pa.RecordBatch.from_arrays(one.rows.columns, schema=RETURNED).serialize())
    return [HEAD.pack(len(body), one.chunk, one.evaluated, kind), body]


def read(receive: Callable[[int], bytearray | None]) -> Returned | Failure | None:
    """Return the next frame; None if there is none. ``receive`` returns this number of bytes; None if the line was closed."""
    head = receive(HEAD.size)
    if head is None:
        return None
    size, chunk, evaluated, kind = HEAD.unpack(head)
    body = receive(size)
    if body is None:
        return None
    if kind == _Kind.ROWS:
        return Returned(chunk, pa.ipc.read_record_batch(pa.py_buffer(body), RETURNED), evaluated)
    if kind == _Kind.FAILURE:
        return Failure(body.decode())
    reason, _, detail = body.decode().partition("\n")
    return Returned(chunk, Refusal(Reason(reason), detail), evaluated)
