"""Values in Avro on the detour: which reach Spark with their fields, and what comes back; Spark is a function."""

import json
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from strait.avro.values import Values
from strait.engine.detour import avro as subject
from strait.engine.detour.collector import collect
from strait.engine.detour.layout import FROM_SPARK, Kind
from strait.engine.detour.rows import RETURNED
from strait.engine.evaluation import Made, MadeBatch, Malformed, Work
from strait.state.transform import AvroFormat, TopicTransform
from strait.wire.batch import parse
from strait.wire.records import Record, build_batch, read_records
from strait.wire.shapes import Stretch
from unit.engine.test_detour import Detour

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "A",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "mail", "type": "string"},
            {"name": "more", "type": "bytes"},
        ],
    }
)
FORMAT = AvroFormat(schema_text=SCHEMA, schema_id=7)


def value(number: int, mail: bytes = b"abc", schema_id: int = 7) -> bytes:
    """Of fewer than 64 and a text of fewer than 64 bytes."""
    return struct.pack(">bI", 0, schema_id) + bytes([2 * number, 2 * len(mail)]) + mail + b"\x02!"


def spark(rows: Iterator[Any], *_: Any) -> None:
    """Leaves out every third ID, and sets `mail` to the ID, where that is even; a text of "!" is no text in Avro."""

    def through() -> Iterator[Any]:
        for batch in rows:
            found = []
            for row in batch.to_pylist():
                kind, changed = row["__kind"], None
                if kind == Kind.RECORD and row["value"] is not None and row["__fields"] is None:
                    kind = Kind.MALFORMED
                if kind == Kind.RECORD and row["__fields"] is not None:
                    seen = json.loads(row["__fields"])
                    if seen["id"] % 3 == 0:
                        kind = Kind.LEFT_OUT
                    if seen["id"] % 2 == 0:
                        changed = json.dumps({"mail": None if seen["mail"] == "!" else str(seen["id"])}).encode()
                value = row["value"] if kind == Kind.ADDRESS else None
                found.append((int(kind), row["offset"], None, value, changed if kind == Kind.RECORD else None))
            columns = [pa.array([row[at] for row in found], field.type) for at, field in enumerate(RETURNED)]
            yield pa.RecordBatch.from_arrays(columns, names=FROM_SPARK)

    assert list(collect({}, through())) == []


def work(*values: bytes | None, names: tuple[str, ...] = ("mail",)) -> Work:
    transform = TopicTransform(avro=FORMAT, where="of the model", set_fields=dict.fromkeys(names, "of the model"))
    records = [Record(10 + number, 1_000, b"k", one, ()) for number, one in enumerate(values)]
    stretches = [Stretch(10, len(records))]
    return Work("t", 0, transform, [parse(memoryview(build_batch(records, 0)))], stretches, 0, 1 << 20)


def contents(made: Made) -> list[Any]:
    found: list[Any] = []
    for one in made:
        if isinstance(one, MadeBatch):
            records = read_records(parse(memoryview(one.data)))
            found += [(offset, record.value) for offset, record in zip(one.offsets.tolist(), records, strict=True)]
        else:
            found.append(one)
    return found


@pytest.fixture
def detour() -> Iterator[Detour]:
    with closing(Detour(spark=spark)) as one:
        yield one


def test_fields_are_put_back_and_all_else_keeps_its_bytes(detour: Detour) -> None:
    (made,) = detour.results(work(value(1), value(2), value(3), None, value(4, b"\xc3\xa9")))
    assert contents(made) == [(10, value(1)), (11, value(2, b"2")), (13, None), (14, value(4, b"4"))]


def test_what_is_not_of_the_schema_is_malformed_in_its_place(detour: Detour) -> None:
    (made,) = detour.results(
        work(value(1)[:-1], value(1), b"", value(2, b"\xff"), value(5) + b"\0", value(2, b"!"), value(7))
    )
    assert contents(made) == [
        Malformed(10),
        (11, value(1)),
        Malformed(12),
        Malformed(13),
        Malformed(14),
        Malformed(15, kept=True),  # the schema does not permit null
        (16, value(7)),
    ]


def test_a_value_of_an_unknown_schema_is_told_from_malformed_ones(detour: Detour) -> None:
    (made,) = detour.results(work(b"", value(1), value(1, schema_id=8), value(1, schema_id=9)))
    found = contents(made)
    assert found[:2] == [Malformed(10), (11, value(1))]
    assert found[2] == Malformed(12, "it has schema ID 8, for which the rule has no schema")
    (again,) = detour.results(work(value(2), names=()))
    assert contents(again) == [(10, value(2))], "nothing is set"


def test_large_values_reach_spark_in_parts(detour: Detour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "DECODED_BYTES", 100)
    (made,) = detour.results(work(*(value(n % 60, b"x" * 50, 7 if n != 40 else 8) for n in range(50))))
    found = contents(made)
    assert [one.offset if isinstance(one, Malformed) else one[0] for one in found] == [
        10 + n for n in range(50) if n % 3 or n == 40
    ]
    assert next(one for one in found if isinstance(one, Malformed)).unknown
    decoded = Values(SCHEMA, 7)
    assert all(
        json.loads(decoded.as_json(one[1]))["id"] == one[0] - 10 for one in found if not isinstance(one, Malformed)
    )
