"""The second process of a task: it sends the rows that Spark has evaluated back to the slot."""

import contextlib
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from strait.engine.detour import frames
from strait.engine.detour.frames import Failure, Returned
from strait.engine.detour.layout import Kind
from strait.engine.detour.rows import joined
from strait.engine.evaluation import Refusal
from strait.reasons import Reason

OUTDATED = ""
"""Detail of a refusal if the JVM's query was built for another plan: the task must be restarted."""
_CONTROL = (Kind.ADDRESS, Kind.BEGIN, Kind.END)


class Collector:
    """Collects the rows of one piece of work after the other. ``refused``: number of a transformation -> why Spark does not evaluate it."""

    def __init__(self, refused: Mapping[int, str]) -> None:
        self._refused = refused
        self.address = ""
        """Path of the slot's socket."""
        self._number = 0
        self._rows: list[pa.RecordBatch] = []
        self._known = self._begun = False

    def take(self, rows: pa.RecordBatch) -> Iterator[Returned]:
        """Take rows. Yields the result of each piece of work that they end."""
        kinds = rows.column(0).to_numpy()
        first = 0
        for at in np.flatnonzero(np.isin(kinds, _CONTROL)).tolist():
            self._add(rows, kinds, first, at)
            first = at + 1
            if kinds[at] == Kind.ADDRESS:
                self.address = rows.column(3)[at].as_py().decode()
            elif kinds[at] == Kind.BEGIN:
                self._number, self._rows, self._known, self._begun = rows.column(1)[at].as_py(), [], True, True
            elif self._begun:
                evaluated = sum(map(len, self._rows))
                yield Returned(rows.column(1)[at].as_py(), self._result(), evaluated)
                self._rows, self._begun = [], False
        self._add(rows, kinds, first, len(kinds))

    def _add(self, rows: pa.RecordBatch, kinds: Any, first: int, behind: int) -> None:
        if self._begun:
            self._rows.append(rows.slice(first, behind - first))
            self._known = self._known and not (kinds[first:behind] == Kind.UNKNOWN).any()

    def _result(self) -> "pa.RecordBatch | Refusal":
        if not self._known:
            return Refusal(Reason.TRANSFORM_REFUSED, self._refused.get(self._number, OUTDATED))
        rows = joined(self._rows)
        left_out = rows.column(0).to_numpy() == Kind.LEFT_OUT
        return rows.filter(pa.array(~left_out)) if left_out.any() else rows


def collect(refused: Mapping[int, str], batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """Send the results of all work to the slot that submitted it. Yields nothing. An error is sent to the slot, too, since
    Spark does not notice it before the slot has more rows."""
    line: socket.socket | None = None
    collector = Collector(refused)
    try:
        for rows in batches:
            for returned in collector.take(rows):
                line = line or _connected(collector.address)
                _send(line, returned)
    except Exception as error:
        with contextlib.suppress(OSError):
            line = line or _connected(collector.address)
            _send(line, Failure(f"{type(error).__name__}: {error}"))
        raise
    finally:
        if line is not None:
            line.close()
    yield from ()


def _send(line: socket.socket, one: Returned | Failure) -> None:
    for piece in frames.encode(one):
        line.sendall(piece)


def _connected(address: str) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    return line
