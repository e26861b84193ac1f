"""Records that pass through Spark: the columns that go there, and what is put together with those that come back."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from strait.engine.detour import merging
from strait.engine.detour.layout import FROM_SPARK, Kind
from strait.engine.detour.merging import made_of, taken
from strait.engine.detour.rows import RETURNED, binary, column_of
from strait.engine.evaluation import MadeBatch, Malformed, Work
from strait.state.transform import TopicTransform
from strait.wire.batch import parse
from strait.wire.columns import column
from strait.wire.records import Record, build_batch, read_records
from strait.wire.shapes import Stretch

BATCHES, COUNT = 3, 40
RECORDS = [
    Record(
        3 * n,
        1_000 + n,
        None if n % 7 == 3 else b"k%d" % n,
        None if n % 5 == 2 else b"{}" * (n % 3),
        (("h", b"%d" % n),),
    )
    for n in range(BATCHES * COUNT)
]


def work(transform: TopicTransform) -> Work:
    groups = [RECORDS[first:behind] for first, behind in pairwise(range(0, len(RECORDS) + 1, COUNT))]
    batches = [parse(memoryview(build_batch([r._replace(offset=n) for n, r in enumerate(some)], 3))) for some in groups]
    return Work("t", 4, transform, batches, [Stretch(record.offset, 1) for record in RECORDS], 3, 700)


def returned(*rows: tuple[Kind, int, bytes | None, bytes | None]) -> pa.RecordBatch:
    columns = [pa.array([(*row, None)[at] for row in rows], field.type) for at, field in enumerate(RETURNED)]
    return pa.RecordBatch.from_arrays(columns, names=FROM_SPARK)


def found_in(made: list[MadeBatch | Malformed]) -> list[Any]:
    found: list[Any] = []
    for one in made:
        if isinstance(one, Malformed):
            found.append(one.offset)
        else:
            assert len(one.data) <= 700
            pairs = zip(read_records(parse(memoryview(one.data))), one.offsets.tolist(), strict=True)
            found += [record._replace(offset=offset) for record, offset in pairs]
    return found


@pytest.fixture(params=[1, 4 << 20], ids=["several groups", "one group"], autouse=True)
def row_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "ROW_BYTES", request.param)


@pytest.mark.parametrize("changed", [{}, {"key": "x"}, {"value": "x"}, {"key": "x", "value": "x", "headers": "drop"}])
@pytest.mark.parametrize("keeps", [lambda n: True, lambda n: n % 3 == 0, lambda n: n == 70, lambda n: False])
def test_only_changed_parts_come_from_spark(changed: dict[str, str], keeps: Any) -> None:
    kept = [record for number, record in enumerate(RECORDS) if keeps(number)]
    rows = [(Kind.RECORD, r.offset, None if n % 4 == 1 else b"new key", b"v%d" % n) for n, r in enumerate(kept)]
    made = made_of(taken(work(TopicTransform(where="x", **changed))), returned(*rows), len(RECORDS))  # type: ignore[arg-type]
    assert found_in(made) == [
        record._replace(
            key=key if "key" in changed else record.key,
            value=value if "value" in changed else record.value,
            headers=() if "headers" in changed else record.headers,
        )
        for record, (_, _, key, value) in zip(kept, rows, strict=True)
    ]


def test_malformed_records_stand_between_the_others() -> None:
    bad = {0, 39, 40, 41, 119}
    rows = [
        (Kind.MALFORMED if n in bad else Kind.RECORD, r.offset, b"k", None) for n, r in enumerate(RECORDS) if n != 7
    ]
    made = made_of(taken(work(TopicTransform(key="x"))), returned(*rows), len(RECORDS))
    assert found_in(made) == [r.offset if n in bad else r._replace(key=b"k") for n, r in enumerate(RECORDS) if n != 7]


@pytest.mark.parametrize("offsets", [(3, 0), (0, 0), (1,), (360,), (-1,), (0, 357, 358)])
def test_rows_of_other_records_are_not_taken(offsets: tuple[int, ...]) -> None:
    rows = returned(*((Kind.RECORD, offset, None, None) for offset in offsets))
    with pytest.raises(ValueError, match="record"):
        made_of(taken(work(TopicTransform(where="x"))), rows, len(RECORDS))


def test_a_row_that_does_not_come_back_is_not_a_record_that_is_left_out() -> None:
    with pytest.raises(ValueError, match="119 of 120 rows came back"):
        made_of(taken(work(TopicTransform(where="x"))), returned(), len(RECORDS) - 1)


@pytest.mark.parametrize(
    ("transform", "reads"),
    [
        (TopicTransform(where="partition = 0"), ""),
        (TopicTransform(where="length(key) > 1"), "key"),
        (TopicTransform(key="sha2(concat('monkey', CAST(`key` AS STRING)), 256)"), "key"),
        (TopicTransform(json_schema="a INT", where="v.a = 1"), "value"),
        (TopicTransform(value="upper(CAST(value AS STRING))"), "value"),
        (TopicTransform(value="to_json(struct(*))"), "key value"),
        (TopicTransform(json_schema="a INT", set_fields={"a": "hash(key)"}), "key value"),
    ],
)
def test_columns_that_no_expression_reads_do_not_leave_the_slot(transform: TopicTransform, reads: str) -> None:
    assert transform.reads == set(reads.split())
    rows = pa.Table.from_batches(taken(work(transform)).rows(5)).to_pylist()
    assert [rows[0]["__kind"], rows[-1]["__kind"], rows[-1]["offset"]] == [Kind.BEGIN, Kind.END, 5]
    assert rows[0]["offset"] == transform.number("t")
    for row, record in zip(rows[1:-1], RECORDS, strict=True):
        assert row["key"] == (record.key if "key" in reads else None)
        assert row["value"] == (record.value if "value" in reads else None)
        assert (row["offset"], row["__ms"], row["partition"]) == (record.offset, record.timestamp_ms, 4)
        one_object = record.value is None or record.value == b"{}"
        assert row["__kind"] == (Kind.RECORD if one_object or not transform.json_schema else Kind.MALFORMED)


def test_a_slice_of_an_array_is_a_column() -> None:
    contents = [None, b"a", b"", b"bc", None, *[b"%d" % n for n in range(30)], None]
    array = binary(column(contents), len(contents))
    for first in range(len(contents)):
        part = column_of(array.slice(first, 9))
        assert [part.at(row) for row in range(len(contents[first : first + 9]))] == contents[first : first + 9]
