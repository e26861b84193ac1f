"""The records of one piece of work on both ends of the detour: split into the columns that expressions use, and merged
with the columns that came back. Parts of a record that do not change stay here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from strait.config.credentials import secrets_of
from strait.engine.detour.avro import Decoded, put_back, values_of
from strait.engine.detour.layout import Kind
from strait.engine.detour.rows import Place, begin_row, binary, column_of, end_row, joined, kinds_of, record_rows
from strait.engine.evaluation import MadeBatch, Malformed, Offsets, Work
from strait.state.transform import TopicTransform
from strait.text import plural
from strait.wire.columns import Column, Columns, Opened, cuts, decode, encode, opened, part_of, without_headers
from strait.wire.shapes import Stretch

ROW_BYTES = 4 << 20
"""Of records in one Arrow batch."""
PLAIN_BYTES = 16 << 20
"""Of decompressed records at a time: a thousand bytes of a batch may hold a megabyte."""


class _Group(NamedTuple):
    """Records that go through Spark in one Arrow batch, and their source offsets. ``fields``: of values in Avro, as JSON."""

    columns: Columns
    offsets: Offsets
    fields: Column | None = None


class Taken(NamedTuple):
    """The records of one piece of work."""

    work: Work
    place: Place
    groups: Sequence[_Group]
    unknown: Mapping[int, str]
    """Offset of the first value in Avro whose schema the rule does not have -> the reason to stop there."""
    later: Work | None
    """The other records, whose rows follow once the result of these is there."""

    def rows(self, chunk: int) -> Iterator[pa.RecordBatch]:
        """Yield their rows, with those around them. ``chunk``: number of the work."""
        for number, (columns, offsets, fields) in enumerate(self.groups):
            kinds = kinds_of(self.work.transform, columns.values, len(columns))
            batches = [record_rows(self.place, columns, offsets, kinds, fields)]
            if number == 0:
                batches.insert(0, begin_row(self.place.number))
            if number == len(self.groups) - 1:
                batches.append(end_row(chunk))
            yield joined(batches)


def taken(work: Work) -> Taken:
    """Return the records of one piece of work, or of its first batches if more would take too much memory.

    Raises:
        CorruptBatch: a batch is damaged; the work then has no result.
        ConfigError: a secret cannot be read; the work then has no result.
    """
    transform = work.transform
    secrets = secrets_of(f"transform of topic {work.topic}", transform.secrets)
    offsets, first = _offsets(work.stretches), 0
    groups: list[_Group] = []
    decoded = None if transform.avro is None else Decoded(values_of(transform.avro))
    found: list[Opened] = []
    size = 0
    for batch in work.batches:
        found.append(opened(batch))
        size += len(found[-1].data)
        if size >= PLAIN_BYTES:
            break
    for group in _grouped(found):
        columns = decode(group)
        if decoded is None:
            groups.append(_Group(columns, offsets[first : first + len(columns)]))
        else:
            for begin, part, fields in decoded.parts(columns, first):
                groups.append(_Group(part, offsets[begin : begin + len(part)], fields))
        first += len(columns)
    unknown = {} if decoded is None else {int(offsets[row]): why for row, why in decoded.unknown.items()}
    place = Place(transform.number(work.topic), work.partition, transform.reads, secrets)
    rest = work.batches[len(found) :]
    later = work._replace(batches=rest, stretches=list(_behind(work.stretches, first))) if rest else None
    return Taken(work, place, groups, unknown, later)


def _behind(stretches: Iterable[Stretch], records: int) -> Iterator[Stretch]:
    """Yield the stretches of the records after the first ones."""
    for one in stretches:
        passed = min(records, one.records)
        records -= passed
        if passed < one.records:
            yield Stretch(one.source + passed, one.records - passed)


def made_of(records: Taken, rows: pa.RecordBatch, evaluated: int) -> list[MadeBatch | Malformed]:
    """Return the result of one piece of work.

    Args:
        rows: of the columns `FROM_SPARK`, without those that are filtered out.
        evaluated: number of rows with them.

    Raises:
        ValueError: these are not the rows of these records, in order.
    """
    if evaluated != (sent := sum(len(group.offsets) for group in records.groups)):
        raise ValueError(f"{evaluated} of {plural(sent, 'row')} came back")
    kinds, offsets = rows.column(0).to_numpy(), rows.column(1).to_numpy()
    made: list[MadeBatch | Malformed] = []
    first = 0
    for group in records.groups:
        behind = int(np.searchsorted(offsets, group.offsets[-1], side="right"))
        found = _Rows(kinds[first:behind], offsets[first:behind], rows.slice(first, behind - first))
        made += _made(records, group, found)
        first = behind
    if first != len(offsets):
        raise ValueError(f"{plural(len(offsets) - first, 'row is', 'rows are')} of no record")
    return made


class _Rows(NamedTuple):
    kinds: Any
    offsets: Offsets
    rows: pa.RecordBatch


def _made(records: Taken, group: _Group, found: _Rows) -> Iterator[MadeBatch | Malformed]:
    places = np.searchsorted(group.offsets, found.offsets)
    if not np.array_equal(group.offsets[places], found.offsets) or np.any(np.diff(places) < 1):
        raise ValueError("a row is not of its record")
    malformed = np.flatnonzero(found.kinds == Kind.MALFORMED)
    for start, end in pairwise([-1, *malformed.tolist(), len(places)]):
        if end > start + 1:
            some = slice(start + 1, end)
            rows = found.rows.slice(some.start, end - some.start)
            columns, bad = merged(records.work.transform, group.columns, places[some], rows)
            yield from _batches(records.work, columns, found.offsets[some], bad)
        if end < len(places):
            offset = int(found.offsets[end])
            yield Malformed(offset, records.unknown.get(offset, ""))


def _batches(work: Work, columns: Columns, offsets: Offsets, bad: Sequence[int]) -> Iterator[MadeBatch | Malformed]:
    """Yield batches of the records. ``bad``: rows that cannot be copied."""
    for start, end in pairwise([-1, *bad, len(columns)]):
        if end > start + 1:
            part, places = part_of(columns, start + 1, end), offsets[start + 1 : end]
            for first, behind in pairwise(cuts(part, work.most_bytes)):
                yield MadeBatch(encode(part, first, behind, work.codec), places[first:behind])
        if end < len(columns):
            yield Malformed(int(offsets[end]), kept=True)


def merged(
    transform: TopicTransform, columns: Columns, places: Any, rows: pa.RecordBatch
) -> tuple[Columns, Sequence[int]]:
    """Return records as the transformation makes them, and the rows whose schema in Avro does not permit it.

    Args:
        columns: of the original records.
        places: row in them of each of ``rows``, which have the changed parts in the columns `FROM_SPARK`, first of all.
    """
    count = len(places)
    keys = column_of(rows.column(2)) if transform.key else _picked(columns.keys, len(columns), places)
    bad: Sequence[int] = ()
    if transform.keeps_value or transform.avro is not None:
        values = _picked(columns.values, len(columns), places)
    else:
        values = column_of(rows.column(3))
    if transform.avro is not None and transform.set_fields:
        values, bad = put_back(values_of(transform.avro), list(transform.set_fields), values, column_of(rows.column(4)))
    headers = without_headers(count) if transform.headers == "drop" else _picked(columns.headers, len(columns), places)
    return Columns(columns.times[places], keys, values, headers), bad


def _picked(column: Column, count: int, places: Any) -> Column:
    return column if len(places) == count else column_of(binary(column, count).take(pa.array(places)))


def _offsets(stretches: Sequence[Stretch]) -> Offsets:
    return np.concatenate([np.arange(one.source, one.source + one.records, dtype=np.int64) for one in stretches])


def _grouped(found: Sequence[Opened]) -> Iterator[list[Opened]]:
    group: list[Opened] = []
    size = 0
    for one in found:
        if group and size + len(one.data) > ROW_BYTES:
            yield group
            group, size = [], 0
        group.append(one)
        size += len(one.data)
    yield group
