"""The second process of a task: it builds batches from the transformed rows and sends them to the slot.

So the slot's process fetches and decodes while this one encodes and compresses.
"""

import contextlib
import json
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from strait.avro.values import Values
from strait.engine.detour import frames
from strait.engine.detour.avro import put_back, values_of
from strait.engine.detour.layout import Kind
from strait.engine.detour.rows import columns_of, fields_of
from strait.engine.evaluation import Made, MadeBatch, Malformed, Offsets, Refusal
from strait.reasons import Reason
from strait.state.transform import AvroFormat
from strait.wire.columns import Columns, cuts, encode, part_of

OUTDATED = ""
"""Detail of a refusal if the JVM's query was built for another plan: the task must be restarted."""


class Collector:
    """Collects the rows of one piece of work after the other. ``refused``: number of a transformation -> why Spark does not evaluate it."""

    def __init__(self, refused: Mapping[int, str]) -> None:
        self._refused = refused
        self.where = ""
        """Path of the socket of the slot that submitted the work."""
        self._chunk = -1
        self._number = self._codec = self._most_bytes = 0
        self._rows: list[pa.RecordBatch] = []
        self._items: list[MadeBatch | Malformed] = []
        self._known = True
        self._values: Values | None = None
        """With Avro, if the rule sets fields; ``_set``: their names."""
        self._set: Sequence[str] = ()

    def take(self, rows: pa.RecordBatch) -> Iterator[tuple[int, Made]]:
        """Take rows. Yields the number and the result of each piece of work that they end."""
        kinds = rows.column(1).to_numpy()
        if (left_out := kinds == Kind.LEFT_OUT).any():
            rows, kinds = rows.filter(pa.array(~left_out)), kinds[~left_out]
        first = 0
        for at in np.flatnonzero(kinds != Kind.RECORD).tolist():
            self._add(rows, first, at)
            first = at + 1
            if kinds[at] == Kind.BEGIN:
                self._begin(rows, at)
            elif kinds[at] == Kind.UNKNOWN:
                self._known = False
            elif kinds[at] == Kind.MALFORMED:
                self._make()
                self._items.append(Malformed(int(rows.column(2)[at].as_py())))
            elif kinds[at] == Kind.END and rows.column(0)[at].as_py() == self._chunk:
                yield self._chunk, self._result()
                self._chunk = -1
        self._add(rows, first, len(kinds))

    def _begin(self, rows: pa.RecordBatch, at: int) -> None:
        described = json.loads(rows.column(5)[at].as_py())
        self.where, self._number = described["where"], described["number"]
        self._codec, self._most_bytes = described["codec"], described["most_bytes"]
        self._chunk = rows.column(0)[at].as_py()
        self._rows, self._items, self._known = [], [], True
        avro = described.get("avro")
        self._values = None if avro is None else values_of(AvroFormat.model_validate(avro))
        self._set = described.get("set", ())

    def _add(self, rows: pa.RecordBatch, first: int, behind: int) -> None:
        if behind > first:
            self._rows.append(rows.slice(first, behind - first))

    def _make(self) -> None:
        """Make batches of the rows that were added."""
        if not self._rows:
            return
        rows = pa.concat_batches(self._rows) if len(self._rows) > 1 else self._rows[0]
        self._rows = []
        offsets, columns = columns_of(rows)
        if self._values is None:
            self._add_batches(offsets, columns)
            return
        values, bad = put_back(self._values, self._set, columns.values, fields_of(rows))
        columns = Columns(columns.times, columns.keys, values, columns.headers)
        for before, row in pairwise([-1, *bad, len(columns)]):
            if row > before + 1:
                self._add_batches(offsets[before + 1 : row], part_of(columns, before + 1, row))
            if row < len(columns):
                self._items.append(Malformed(int(offsets[row])))

    def _add_batches(self, offsets: Offsets, columns: Columns) -> None:
        for first, behind in pairwise(cuts(columns, self._most_bytes)):
            self._items.append(MadeBatch(encode(columns, first, behind, self._codec), offsets[first:behind]))

    def _result(self) -> Made:
        if not self._known:
            return Refusal(Reason.TRANSFORM_REFUSED, self._refused.get(self._number, OUTDATED))
        self._make()
        return self._items


def collect(refused: Mapping[int, str], batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """Send the results of all work to the slots that submitted it. Yields nothing. An error is sent to the slot, too, since
    Spark does not notice it before the slot has more rows."""
    line: socket.socket | None = None
    try:
        collector = Collector(refused)
        for rows in batches:
            for chunk, made in collector.take(rows):
                line = line or _connected(collector.where)
                for piece in frames.encode(chunk, made):
                    line.sendall(piece)
    except Exception as error:
        with contextlib.suppress(OSError):
            line = line or _connected(collector.where)
            line.sendall(frames.encode_failure(f"{type(error).__name__}: {error}"))
        raise
    finally:
        if line is not None:
            line.close()
    yield from ()


def _connected(where: str) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.connect(where)
    return line
