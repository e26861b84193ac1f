"""The rows in which records go through Spark: Apache Arrow's form of `strait.wire.columns`.

Rows flow in one direction and in order. The records of one piece of work are between a first and a last row. Filler rows
follow, since the JVM forwards a fixed number of rows at a time (``HANDED_ON``).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from strait.engine.detour.layout import Kind
from strait.wire.columns import NO_HEADERS, Column, Columns

_SCHEMA = pa.schema(
    [
        ("__chunk", pa.int64()),
        ("__kind", pa.int32()),
        ("__number", pa.int64()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("__ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("__headers", pa.binary()),
        ("__secrets", pa.list_(pa.string())),
        ("__fields", pa.binary()),
    ]
)


class Place(NamedTuple):
    """Which work rows belong to, and which partition's records they are."""

    chunk: int
    number: int
    partition: int
    secrets: Sequence[str] = ()


def record_rows(place: Place, rows: Columns, offsets: Any, fields: Column | None = None) -> pa.RecordBatch:
    """Return the rows of records, at these source offsets. ``fields``: of values in Avro, as JSON."""
    count = len(rows)
    secrets = pa.nulls(count, _SCHEMA.field("__secrets").type)
    if place.secrets:
        secrets = pa.array([list(place.secrets)] * count, _SCHEMA.field("__secrets").type)
    return pa.RecordBatch.from_arrays(
        [
            _constant(place.chunk, count, np.int64),
            _constant(Kind.RECORD, count, np.int32),
            _constant(place.number, count, np.int64),
            _constant(place.partition, count, np.int32),
            pa.array(offsets, pa.int64()),
            pa.array(rows.times, pa.int64()),
            _binary(rows.keys, count),
            _binary(rows.values, count),
            _binary(rows.headers, count),
            secrets,
            pa.nulls(count, pa.binary()) if fields is None else _binary(fields, count),
        ],
        schema=_SCHEMA,
    )


def begin_row(chunk: int, description: bytes) -> pa.RecordBatch:
    """Return the row that precedes the records of one piece of work."""
    return control_row(chunk, Kind.BEGIN, description)


def end_row(chunk: int) -> pa.RecordBatch:
    """Return the row that follows the records of one piece of work."""
    return _control(chunk, Kind.END, 1)


def control_row(chunk: int, kind: Kind, description: bytes) -> pa.RecordBatch:
    """Return a row that is no record, with a description as its value."""
    return _control(chunk, kind, 1, description)


def filler_rows(count: int) -> pa.RecordBatch:
    """Return rows that carry nothing."""
    return _control(-1, Kind.FILLER, count)


def columns_of(rows: pa.RecordBatch) -> tuple[Any, Columns]:
    """Return the source offsets of rows that came back, and their columns."""
    offsets, times, keys, values, headers = (rows.column(at) for at in range(2, 7))
    return offsets.to_numpy(), Columns(
        np.ascontiguousarray(times.to_numpy()), column_of(keys), column_of(values), column_of(headers)
    )


def fields_of(rows: pa.RecordBatch) -> Column:
    """Return the fields of values in Avro that came back, as JSON."""
    return column_of(rows.column(7))


def column_of(array: pa.BinaryArray) -> Column:
    """Return a column of an array's bytes, which are not copied."""
    valid, starts, data = array.buffers()
    count, at = len(array), array.offset
    found = np.ones(max(1, count), np.uint8)
    if array.null_count:
        found = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[at : at + count]
    held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return Column(held, np.frombuffer(starts, np.int32, count + 1, at * 4) if count else np.zeros(1, np.int32), found)


def _binary(column: Column, count: int) -> pa.BinaryArray:
    valid = None
    if count and not column.valid[:count].all():
        valid = pa.py_buffer(np.packbits(column.valid[:count], bitorder="little"))
    return pa.BinaryArray.from_buffers(
        pa.binary(), count, [valid, pa.py_buffer(column.starts), pa.py_buffer(column.data)]
    )


def _constant(value: int, count: int, kind: Any) -> pa.Array:
    return pa.array(np.full(count, value, kind))


def _control(chunk: int, kind: Kind, count: int, value: bytes | None = None) -> pa.RecordBatch:
    columns: list[Any] = [
        _constant(chunk, count, np.int64),
        _constant(kind, count, np.int32),
        _constant(-1, count, np.int64),
        _constant(-1, count, np.int32),
        _constant(-1, count, np.int64),
        _constant(0, count, np.int64),
        pa.nulls(count, pa.binary()),
        pa.array([value] * count, pa.binary()),
        pa.array([NO_HEADERS] * count, pa.binary()),
        pa.nulls(count, pa.list_(pa.string())),
        pa.nulls(count, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
