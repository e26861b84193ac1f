"""Values in Avro on the detour: their fields are decoded before Spark, and those that the rule sets are put back after it."""

import json
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache

from strait.avro.reading import NotAvro
from strait.avro.values import UnknownSchema, Values
from strait.state.transform import AvroFormat
from strait.wire.columns import Column, Columns, column, part_of

DECODED_BYTES = 16 << 20
"""Of decoded values in one Arrow batch; a single value may have more."""


def values_of(avro: AvroFormat) -> Values:
    """Return the decoder of values of this format on the calling thread."""
    return _values(avro.model_dump_json(), threading.get_ident())


@lru_cache(maxsize=64)
def _values(text: str, thread: int) -> Values:
    return AvroFormat.model_validate_json(text).values()


class Decoded:
    """Decodes the values of rows. ``unknown``: row -> why the partition stops there, for the first value with an unknown schema."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self.unknown: dict[int, str] = {}

    def parts(self, rows: Columns, first: int) -> Iterator[tuple[int, Columns, Column]]:
        """Yield the rows in parts that are not too large: the number of the first row, the rows, and `fields` of their values.

        Args:
            first: number of the first row of all.
        """
        begin, size = 0, 0
        found: list[bytes | None] = []
        for row, fields in enumerate(self._each(rows.values, first)):
            if found and size + len(fields or b"") > DECODED_BYTES:
                yield first + begin, part_of(rows, begin, row), column(found)
                begin, size, found = row, 0, []
            found.append(fields)
            size += len(fields or b"")
        yield first + begin, part_of(rows, begin, len(rows)), column(found)

    def fields(self, values: Column) -> list[bytes | None]:
        """Return the fields of each value as JSON; None if it is null, or cannot be decoded."""
        return list(self._each(values, 0))

    def _each(self, values: Column, first: int) -> Iterator[bytes | None]:
        for row in range(len(values.starts) - 1):
            value, fields = values.at(row), None
            if value is not None:
                try:
                    fields = self._values.as_json(value)
                except UnknownSchema as error:
                    if not self.unknown:
                        self.unknown[first + row] = str(error)
                except NotAvro:
                    pass
            yield fields


def put_back(values: Values, names: Sequence[str], contents: Column, fields: Column) -> tuple[Column, list[int]]:
    """Return values with new contents of some fields, and the rows whose schema does not permit them.

    Args:
        names: of the fields.
        fields: by row, their contents as Spark's JSON has them; null: the value stays as it is.
    """
    made, bad = [], []
    for row in range(len(contents.starts) - 1):
        value, text = contents.at(row), fields.at(row)
        if value is not None and text is not None:
            found = json.loads(text)
            try:
                value = values.replaced(value, {name: found.get(name) for name in names})
            except NotAvro:
                bad.append(row)
        made.append(value)
    return column(made), bad
