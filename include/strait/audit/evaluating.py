"""Transformed topics: the records of the source go through Spark, which evaluates their transformation again, to the
comparison with the destination.

    source -> rows of Arrow -> projections in the JVM -> rows of Arrow -> compared with the destination

The first and the last step run in two processes of one task. Rows stay in order. Each record of the source comes back with
a decision: its new content, that it is filtered out, or that its value cannot be parsed.
"""

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from strait.audit.chunks import Chunk
from strait.audit.feed import Evaluated, Hole, Item, unreadable
from strait.audit.reading import LogSide
from strait.config.credentials import resolve
from strait.engine.detour.layout import AUDITED, Kind
from strait.engine.detour.merging import merged
from strait.engine.detour.rows import Place, binary, column_of, control_row, kinds_of, record_rows
from strait.errors import ConfigError, CorruptBatch, StraitError
from strait.model import TopicPartition
from strait.text import plural
from strait.wire.batch import CONTROL, LOG_APPEND_TIME, Batch, check, parse
from strait.wire.columns import Columns, Opened, decode, encode, opened
from strait.wire.digests import Array, record_digests
from strait.wire.legacy import read_legacy
from strait.wire.records import build_batch, read_records

ROW_BYTES = 4 << 20
"""Of records in one Arrow batch."""
_KIND, _OFFSET, _TIME, *_CONTENTS = (
    AUDITED.index(name) for name in ("__out_kind", "offset", "__ms", "key", "value", "__headers")
)


@dataclass
class SourceRead:
    """Result of reading the source for a chunk. ``records``: number that was handed in. ``error``: why it could not be read to
    the end; empty: it was."""

    records: int = 0
    bytes: int = 0
    batches: int = 0
    skipped: int = 0
    newest_ms: int = -1
    error: str = ""


def source_rows(chunk: Chunk, source: LogSide) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk's source records, between a first and a last one. An error is in the last one."""
    read = SourceRead()
    yield _control(Kind.BEGIN, pickle.dumps(chunk))
    try:
        yield from _rows(chunk, source, read)
    except StraitError as error:
        read.error = str(error)
    read.skipped = source.skipped
    yield _control(Kind.END, json.dumps(vars(read)).encode())


def _rows(chunk: Chunk, source: LogSide, read: SourceRead) -> Iterator[pa.RecordBatch]:
    facts, (low, high) = chunk.facts, chunk.bounds[2:]
    transform = facts.transform
    assert transform is not None
    try:
        secrets = tuple(resolve("", transform.secrets).values())
    except ConfigError as error:
        raise ConfigError(
            f"needs the secrets of transformation {transform.digest}", ["; ".join(error.problems)]
        ) from None
    place = Place(transform.number(facts.topic), facts.partition, ("key", "value"), secrets)
    with closing(source.items(TopicPartition(facts.topic, facts.partition), low, high)) as items:
        for found in _decoded(items, high, read):
            if isinstance(found, Hole):
                yield _control(Kind.HOLE, json.dumps(found._asdict()).encode())
                continue
            first, behind = np.searchsorted(found.offsets, (low, high)).tolist()
            read.records += behind - first
            if behind > first:
                columns = found.columns
                rows = record_rows(place, columns, found.offsets, kinds_of(transform, columns.values, len(columns)))
                yield _with_headers(rows, binary(columns.headers, len(columns))).slice(first, behind - first)


def _control(kind: Kind, description: bytes) -> pa.RecordBatch:
    return _with_headers(control_row(kind, description), pa.nulls(1, pa.binary()))


def _with_headers(rows: pa.RecordBatch, headers: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*rows.columns, headers], names=[*rows.schema.names, "__headers"])


class _Group(NamedTuple):
    offsets: Array
    columns: Columns


def _decoded(items: Iterable[Item], end: int, read: SourceRead) -> Iterator[_Group | Hole]:
    """Yield the records of some batches at a time, and the holes. A damaged batch is a hole."""
    pending: list[tuple[Array, Opened]] = []
    for item in items:
        if isinstance(item, Batch):
            read.bytes, read.batches = read.bytes + len(item.view), read.batches + 1
            try:
                batches = list(_opened(item))
            except CorruptBatch:
                item = Hole(item.base_offset, max(item.base_offset + 1, min(item.next_offset, end)), "damaged")
            else:
                if batches and item.magic == 2:
                    read.newest_ms = max(read.newest_ms, item.max_timestamp)
                pending += batches
                if sum(len(one.data) for _, one in pending) < ROW_BYTES:
                    continue
        yield from _groups(pending)
        pending = []
        if isinstance(item, Hole):
            yield item
    yield from _groups(pending)


def _opened(batch: Batch) -> Iterator[tuple[Array, Opened]]:
    """Yield a batch's records with their offsets; nothing if none counts. Raises CorruptBatch."""
    if batch.magic == 2:
        check(batch)
        if batch.records <= 0:
            return
        if batch.whole and not batch.attributes & (CONTROL | LOG_APPEND_TIME):
            yield np.arange(batch.base_offset, batch.next_offset), opened(batch)
            return
    records = read_records(batch) if batch.magic == 2 else read_legacy(batch.view)
    if records:
        offsets = np.array([one.offset for one in records], np.int64)
        yield offsets, opened(parse(memoryview(build_batch(records, 0))))


def _groups(found: Sequence[tuple[Array, Opened]]) -> Iterator[_Group | Hole]:
    if not found:
        return
    try:
        yield _Group(np.concatenate([offsets for offsets, _ in found]), decode([one for _, one in found]))
    except CorruptBatch:
        if len(found) > 1:
            for one in found:
                yield from _groups([one])
            return
        (offsets, _), *_ = found
        yield Hole(int(offsets[0]), int(offsets[-1]) + 1, "damaged")


@dataclass
class EvaluatedSource:
    """The source of one chunk, as it comes back from Spark.

    Attributes:
        read: result of reading the source; complete once all items were taken.
        left_out: records that the transformation filters out. ``tail``: records after the last one that the link has passed.
    """

    chunk: Chunk
    rows: Iterator[pa.RecordBatch]
    strong: bool
    read: SourceRead = field(default_factory=lambda: SourceRead(records=-1))
    left_out: int = 0
    tail: int = 0
    ended: bool = False
    _records: int = 0

    def items(self) -> Iterator[Hole | Evaluated]:
        """Yield the items, up to the last row of the chunk.

        Raises:
            StraitError: the source could not be read to the end, or Spark has lost rows.
        """
        for rows in self.rows:
            kind = _kind(rows)
            if kind == Kind.END:
                self.ended = True
                self.read = SourceRead(**json.loads(_description(rows)))
                break
            yield Hole(**json.loads(_description(rows))) if kind == Kind.HOLE else self._evaluated(rows)
        if not self.ended or (not self.read.error and self._records != self.read.records):
            read = plural(self.read.records, "record")
            raise StraitError(f"{self._records} of {read} of the source came back from Spark; audit again")
        if self.read.error:
            raise StraitError(self.read.error)

    def drain(self) -> None:
        """Take the rows that are left, without their content."""
        while not self.ended and (rows := next(self.rows, None)) is not None:
            self.ended = _kind(rows) == Kind.END

    def _evaluated(self, rows: pa.RecordBatch) -> Evaluated:
        kinds, offsets = rows.column(_KIND).to_numpy(), rows.column(_OFFSET).to_numpy()
        if (kinds == Kind.UNKNOWN).any():
            raise StraitError("the transformation was not evaluated")
        self._records += len(kinds)
        left_out = offsets[kinds == Kind.LEFT_OUT]
        self.left_out += len(left_out)
        copied = kinds == Kind.RECORD
        chosen = rows if copied.all() else rows.filter(pa.array(copied))
        wanted = kinds != Kind.LEFT_OUT
        digests = unreadable(len(kinds), "source", strong=self.strong).copy()
        if len(chosen):
            transform = self.chunk.facts.transform
            assert transform is not None
            originals = Columns(chosen.column(_TIME).to_numpy(), *(column_of(chosen.column(at)) for at in _CONTENTS))
            columns, _ = merged(transform, originals, np.arange(len(chosen)), chosen)
            batch = parse(memoryview(encode(columns, 0, len(chosen), 0)))
            timed = self.chunk.facts.timed
            digests[copied] = record_digests(batch, timed=timed, strong=self.strong).digests
        ahead = wanted & (offsets >= self.chunk.facts.passed)
        self.tail += int(ahead.sum())
        wanted &= ~ahead
        return Evaluated(offsets[wanted], digests[wanted], left_out)


def evaluated_sources(batches: Iterable[pa.RecordBatch], *, strong: bool) -> Iterator[EvaluatedSource]:
    """Yield the source of each chunk whose rows these are, one after the other."""
    rows = _split(batches)
    for first in rows:
        if _kind(first) == Kind.BEGIN:
            chunk = pickle.loads(_description(first))  # noqa: S301  of the first process of this task
            source = EvaluatedSource(chunk, rows, strong)
            yield source
            source.drain()


def _split(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows such that those that are no records are alone."""
    alone = [kind.value for kind in (Kind.BEGIN, Kind.END, Kind.HOLE)]
    for rows in batches:
        first = 0
        kinds: Any = rows.column(_KIND).to_numpy()
        for at in np.flatnonzero(np.isin(kinds, alone)).tolist():
            if at > first:
                yield rows.slice(first, at - first)
            yield rows.slice(at, 1)
            first = at + 1
        if first < len(kinds):
            yield rows.slice(first)


def _kind(rows: pa.RecordBatch) -> int:
    return int(rows.column(_KIND)[0].as_py())


def _description(rows: pa.RecordBatch) -> bytes:
    """Return the value of a row that is no record."""
    return bytes(rows.column(AUDITED.index("value"))[0].as_py())
