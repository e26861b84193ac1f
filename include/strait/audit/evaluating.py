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
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from strait.audit.chunks import Chunk
from strait.audit.feed import Evaluated, Hole, Item, unreadable
from strait.audit.findings import Difference
from strait.audit.followers import FollowersRead, LeaderRead
from strait.config.credentials import secrets_of
from strait.engine.detour.avro import Decoded, values_of
from strait.engine.detour.layout import AUDITED, Kind
from strait.engine.detour.merging import ROW_BYTES, merged
from strait.engine.detour.rows import Place, binary, column_of, control_row, kinds_of, record_rows
from strait.errors import ConfigError, CorruptBatch, StraitError
from strait.text import plural
from strait.wire.batch import CONTROL, LOG_APPEND_TIME, Batch, check, parse
from strait.wire.columns import Column, Columns, Opened, decode, encode, opened, part_of
from strait.wire.digests import Array, record_digests
from strait.wire.legacy import read_legacy
from strait.wire.records import build_batch, read_records

if TYPE_CHECKING:
    from strait.audit.task import Auditor

_KIND, _OFFSET, _TIME, *_CONTENTS = (
    AUDITED.index(name) for name in ("__out_kind", "offset", "__ms", "key", "value", "__headers")
)


@dataclass
class SourceRead:
    """Result of reading the source for a chunk.

    Attributes:
        records: number that was handed in.
        error: why it could not be read to the end; empty: it was.
        followers: result of checking the followers, if these were to be checked.
    """

    records: int = 0
    bytes: int = 0
    batches: int = 0
    skipped: int = 0
    newest_ms: int = -1
    error: str = ""
    followers: FollowersRead = field(default_factory=FollowersRead)

    @classmethod
    def of_json(cls, text: str) -> "SourceRead":
        """Return the result whose `asdict` this is."""
        found = json.loads(text)
        differences = [Difference(*one) for one in found["followers"].pop("differences")]
        return cls(**found | {"followers": FollowersRead(differences, **found["followers"])})


def source_rows(chunk: Chunk, auditor: "Auditor") -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk's source records, between a first and a last one. Any error is in the last one: Spark would run
    the task again without limit."""
    read = SourceRead()
    source, (leader, _) = auditor.source_of(chunk), auditor.leaders_of(chunk)
    yield _control(Kind.BEGIN, pickle.dumps(chunk))
    try:
        with closing(source.items(leader.place, leader.first, leader.end)) as items:
            yield from _rows(chunk, leader.noting(items) if auditor.replicas else items, read, leader)
        read.followers = auditor.check_source(leader)
    except StraitError as error:
        read.error = str(error)
    except Exception as error:  # noqa: BLE001
        read.error = f"{type(error).__name__}: {error}"
    read.skipped = source.skipped
    yield _control(Kind.END, json.dumps(asdict(read)).encode())


def _rows(chunk: Chunk, items: Iterable[Item], read: SourceRead, leader: LeaderRead) -> Iterator[pa.RecordBatch]:
    facts, (low, high) = chunk.facts, chunk.bounds[2:]
    transform = facts.transform
    assert transform is not None
    try:
        secrets = secrets_of("", transform.secrets)
    except ConfigError as error:
        raise ConfigError(
            f"needs the secrets of transformation {transform.digest}", ["; ".join(error.problems)]
        ) from None
    place = Place(transform.number(facts.topic), facts.partition, ("key", "value"), secrets)
    decoded = None if transform.avro is None else Decoded(values_of(transform.avro))
    for found in _decoded(items, high, read):
        if isinstance(found, Hole):
            if found.why == "damaged":
                leader.damaged.add(found.first)
            yield _control(Kind.HOLE, json.dumps(found._asdict()).encode())
            continue
        first, behind = np.searchsorted(found.offsets, (low, high)).tolist()
        read.records += behind - first
        if behind > first:
            inside = _Group(found.offsets[first:behind], part_of(found.columns, first, behind))
            for group, fields in [(inside, None)] if decoded is None else _with_fields(inside, decoded, facts.passed):
                columns = group.columns
                kinds = kinds_of(transform, columns.values, len(columns))
                rows = record_rows(place, columns, group.offsets, kinds, fields)
                yield _with_headers(rows, binary(columns.headers, len(columns)))


def _with_fields(found: "_Group", decoded: Decoded, passed: int) -> Iterator[tuple["_Group", Column]]:
    """Yield records in parts, with the fields of their values in Avro. A slot stops before a schema that its rule does not have, so
    there may be one only at offsets that the link has not passed. Raises StraitError."""
    for begin, part, fields in decoded.parts(found.columns, 0):
        yield _Group(found.offsets[begin : begin + len(part)], part), fields
    for row, why in decoded.unknown.items():
        if found.offsets[row] < passed:
            raise StraitError(f"the value at offset {found.offsets[row]} cannot be decoded: {why}")
    decoded.unknown.clear()


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
                self.read = SourceRead.of_json(_description(rows).decode())
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
        transform = self.chunk.facts.transform
        assert transform is not None
        if transform.malformed == "omit":  # the quarantine has them for the topic's first route
            kinds = np.where(kinds == Kind.MALFORMED, int(Kind.LEFT_OUT), kinds)
        left_out = offsets[kinds == Kind.LEFT_OUT]
        self.left_out += len(left_out)
        copied = kinds == Kind.RECORD
        chosen = rows if copied.all() else rows.filter(pa.array(copied))
        wanted = kinds != Kind.LEFT_OUT
        digests = unreadable(len(kinds), "source", strong=self.strong).copy()
        if len(chosen):
            originals = Columns(chosen.column(_TIME).to_numpy(), *(column_of(chosen.column(at)) for at in _CONTENTS))
            columns, bad = merged(transform, originals, np.arange(len(chosen)), chosen)
            batch = parse(memoryview(encode(columns, 0, len(chosen), 0)))
            timed = self.chunk.facts.timed
            made = record_digests(batch, timed=timed, strong=self.strong).digests.copy()
            made[list(bad)] = unreadable(len(bad), "source", strong=self.strong)
            digests[copied] = made
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
