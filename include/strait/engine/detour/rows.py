"""The rows in which records go through Spark: Apache Arrow's form of `strait.wire.columns`.

Rows flow in one direction and in order. The records of one piece of work are between two control rows. Filler rows
follow, since the JVM forwards a fixed number of rows at a time (``HANDED_ON``).
"""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from strait.engine.detour.layout import FROM_SPARK, Kind
from strait.state.transform import TopicTransform
from strait.wire.columns import Column, Columns
from strait.wire.json_values import immense_decimals, not_one_object

_SCHEMA = pa.schema(
    [
        ("__kind", pa.int32()),
        ("__number", pa.int64()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("__ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("__secrets", pa.list_(pa.string())),
        ("__fields", pa.binary()),
    ]
)
RETURNED = pa.schema(list(zip(FROM_SPARK, (pa.int32(), pa.int64(), *[pa.binary()] * 3), strict=True)))


class Place(NamedTuple):
    """Whose records rows hold. ``reads``: the columns that the transformation's expressions use; others are not sent."""

    number: int
    partition: int
    reads: Collection[str]
    secrets: Sequence[str] = ()


def kinds_of(transform: TopicTransform, values: Column, count: int) -> Any:
    """Return the kinds of the rows of records with these values, int32: MALFORMED if Spark would read the beginning of a value
    as an object and ignore the rest, or would be occupied by a decimal number for minutes."""
    malformed = not_one_object(values, count) if transform.json_schema else np.zeros(count, np.bool_)
    if transform.has_decimals:
        malformed |= immense_decimals(values, count)
    return malformed * np.int32(Kind.MALFORMED)


def record_rows(place: Place, rows: Columns, offsets: Any, kinds: Any, fields: Column | None = None) -> pa.RecordBatch:
    """Return the rows of records, at these source offsets. ``kinds``: from `kinds_of`. ``fields``: of values in Avro, as JSON."""
    count = len(rows)
    secrets = pa.nulls(count, _SCHEMA.field("__secrets").type)
    if place.secrets:
        secrets = pa.array([list(place.secrets)], secrets.type).take(pa.array(np.zeros(count, np.int32)))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(kinds),
            _constant(place.number, count, np.int64),
            _constant(place.partition, count, np.int32),
            pa.array(offsets, pa.int64()),
            pa.array(rows.times, pa.int64()),
            binary(rows.keys, count) if "key" in place.reads else pa.nulls(count, pa.binary()),
            binary(rows.values, count) if "value" in place.reads else pa.nulls(count, pa.binary()),
            secrets,
            pa.nulls(count, pa.binary()) if fields is None else binary(fields, count),
        ],
        schema=_SCHEMA,
    )


def address_row(path: str) -> pa.RecordBatch:
    """Return the row that precedes all others. ``path``: of the socket for the results."""
    return control_row(Kind.ADDRESS, path.encode())


def begin_row(number: int) -> pa.RecordBatch:
    """Return the row that precedes the records of one piece of work. ``number``: of its transformation."""
    return _control(Kind.BEGIN, 1, offset=number)


def end_row(chunk: int) -> pa.RecordBatch:
    """Return the row that follows the records of one piece of work, whose number it is."""
    return _control(Kind.END, 1, offset=chunk)


def control_row(kind: Kind, description: bytes) -> pa.RecordBatch:
    """Return a row that is no record, with a description as its value."""
    return _control(kind, 1, value=description)


@cache
def filler_rows(count: int) -> pa.RecordBatch:
    """Return rows that carry nothing."""
    return _control(Kind.FILLER, count)


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return all rows in one batch."""
    return pa.concat_batches(batches) if len(batches) > 1 else batches[0]


def column_of(array: pa.BinaryArray) -> Column:
    """Return a column of an array's bytes, which are not copied."""
    valid, starts, data = array.buffers()
    count, at = len(array), array.offset
    found = np.ones(max(1, count), np.uint8)
    if array.null_count:
        bits = np.frombuffer(valid, np.uint8)[at // 8 : (at + count + 7) // 8]
        found = np.unpackbits(bits, bitorder="little")[at % 8 : at % 8 + count]
    held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return Column(held, np.frombuffer(starts, np.int32, count + 1, at * 4) if count else np.zeros(1, np.int32), found)


def binary(column: Column, count: int) -> pa.BinaryArray:
    """Return an array of a column's bytes, which are not copied."""
    valid = None
    if count and not column.valid[:count].all():
        valid = pa.py_buffer(np.packbits(column.valid[:count], bitorder="little"))
    return pa.BinaryArray.from_buffers(
        pa.binary(), count, [valid, pa.py_buffer(column.starts), pa.py_buffer(column.data)]
    )


def _constant(value: int, count: int, kind: Any) -> pa.Array:
    return pa.array(np.full(count, value, kind))


def _control(kind: Kind, count: int, *, offset: int = -1, value: bytes | None = None) -> pa.RecordBatch:
    columns: list[Any] = [
        _constant(kind, count, np.int32),
        _constant(-1, count, np.int64),
        _constant(-1, count, np.int32),
        _constant(offset, count, np.int64),
        _constant(0, count, np.int64),
        pa.nulls(count, pa.binary()),
        pa.array([value] * count, pa.binary()),
        pa.nulls(count, _SCHEMA.field("__secrets").type),
        pa.nulls(count, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
