"""Avro's values: as another implementation encodes and decodes them, and hostile ones."""

import base64
import io
import json
import math
import random
import struct
import tracemalloc
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.avro.reading import MOST_MEMORY, NotAvro
from strait.avro.schema import parsed, stripped
from strait.avro.values import UnknownSchema, Values, set_problems

SCHEMA = {
    "type": "record",
    "name": "Customer",
    "namespace": "com.example",
    "doc": "said of it",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "score", "type": ["double", "null"]},
        {"name": "small", "type": "int"},
        {"name": "ratio", "type": "float"},
        {"name": "ok", "type": "boolean"},
        {"name": "raw", "type": "bytes"},
        {"name": "level", "type": {"type": "enum", "name": "Level", "symbols": ["LOW", "HIGH"]}},
        {"name": "again", "type": ["null", "Level"]},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {
            "name": "address",
            "type": {"type": "record", "name": "Address", "fields": [{"name": "city", "type": "string"}]},
        },
        {"name": "former", "type": {"type": "array", "items": "com.example.Address"}},
        {"name": "either", "type": ["null", "string", "long"]},
        {"name": "nothing", "type": "null"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
TEXT = json.dumps(SCHEMA)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
ADDRESSES = st.fixed_dictionaries({"city": st.text()})
RECORDS = st.fixed_dictionaries(
    {
        "id": LONGS,
        "email": st.none() | st.text(),
        "score": st.none() | st.floats(),
        "small": st.integers(-(1 << 31), (1 << 31) - 1),
        "ratio": st.floats(width=32),
        "ok": st.booleans(),
        "raw": st.binary(),
        "level": st.sampled_from(["LOW", "HIGH"]),
        "again": st.sampled_from([None, "LOW", "HIGH"]),
        "hash": st.binary(min_size=4, max_size=4),
        "tags": st.lists(st.text()),
        "counts": st.dictionaries(st.text(), LONGS),
        "address": ADDRESSES,
        "former": st.lists(ADDRESSES),
        "either": st.none() | st.text() | LONGS,
        "nothing": st.none(),
        "at": LONGS,
    }
)
OTHERS = fastavro.parse_schema(json.loads(stripped(TEXT)))
OURS = Values(TEXT)


def encoded(record: Any, schema: Any = OTHERS) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


def decoded(value: bytes, schema: Any = OTHERS) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(value), schema, None)


def as_seen(record: Any) -> Any:
    """A record as expressions see it."""
    shown = {name: each for name, each in record.items() if name not in ("either", "nothing")}
    return shown | {name: base64.b64encode(shown[name]).decode() for name in ("raw", "hash")}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


@given(RECORDS)
def test_values_are_those_of_another_implementation(record: Any) -> None:
    found = json.loads(OURS.as_json(encoded(record)))
    assert same(found, as_seen(record))


SEEN = sorted({field["name"] for field in SCHEMA["fields"]} - {"either", "nothing"})  # type: ignore[index]


@given(RECORDS, RECORDS, st.sets(st.sampled_from(SEEN)))
def test_fields_that_are_set_are_replaced_and_all_others_keep_their_bytes(
    one: Any, other: Any, names: set[str]
) -> None:
    changes = {name: as_seen(other)[name] for name in names}
    made = OURS.replaced(encoded(one), changes)
    assert same(decoded(made), one | {name: other[name] for name in names})
    assert OURS.replaced(made, {name: as_seen(one)[name] for name in names}) == encoded(one)


def test_blocks_as_other_encoders_write_them() -> None:
    """Several blocks, with their sizes in bytes."""
    values = Values(
        '{"type":"record","name":"A","fields":[{"name":"a","type":{"type":"array","items":"int"}},{"name":"b","type":"int"}]}'
    )
    assert values.as_json(b"\x03\x04\x02\x04\x02\x06\x00\x08") == b'{"a":[1,2,3],"b":4}'
    assert values.replaced(b"\x03\x04\x02\x04\x02\x06\x00\x08", {"b": 5}) == b"\x03\x04\x02\x04\x02\x06\x00\x0a"
    with pytest.raises(NotAvro, match="another size"):
        values.as_json(b"\x03\x02\x02\x04\x00\x08")


@given(RECORDS, st.randoms(use_true_random=False))
def test_a_damaged_value_is_malformed_or_another_value(record: Any, rng: random.Random) -> None:
    value = bytearray(encoded(record))
    for cut in {0, len(value) - 1, rng.randrange(len(value))}:
        with pytest.raises(NotAvro):
            OURS.as_json(bytes(value[:cut]))
    with pytest.raises(NotAvro, match="1 bytes are left over"):
        OURS.as_json(bytes(value) + b"\0")
    for _ in range(5):
        value[rng.randrange(len(value))] = rng.randrange(256)
        try:
            found = OURS.as_json(bytes(value))
        except NotAvro:
            continue
        json.loads(found)


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_malformed(value: bytes) -> None:
    for values in (OURS, Values(TEXT, 0)):
        for use in (values.as_json, lambda data, values=values: values.replaced(data, {"id": 1})):
            try:
                use(value)
            except NotAvro:
                continue


def schema_of(*fields: Any, name: str = "A") -> str:
    return json.dumps(
        {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": kind} for n, kind in enumerate(fields)]}
    )


def framed(number: int, value: bytes) -> bytes:
    return struct.pack(">bI", 0, number) + value


def test_hostile_numbers_take_neither_time_nor_memory() -> None:
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # 2**63 - 1
    least = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # -2**63
    kinds = ["string", "bytes", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}]
    kinds += [["null", "int"], {"type": "enum", "name": "E", "symbols": ["A"]}, "boolean"]
    tracemalloc.start()
    for kind in kinds:
        values = Values(schema_of(kind))
        for value in (huge, least, least + huge, b"\x03", b"\x80" * 20 + b"\x01", b"\xff" * 9 + b"\x7f", b"\x02" * 9):
            with pytest.raises(NotAvro):
                values.as_json(value)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_few_bytes_do_not_become_much_memory() -> None:
    """A record takes a byte, and its fields have long names."""
    item = {"type": "record", "name": "I", "fields": [{"name": "n" * 100 + str(n), "type": "int"} for n in range(20)]}
    values = Values(schema_of({"type": "array", "items": item}))
    count = MOST_MEMORY // 1_000
    with pytest.raises(NotAvro, match="too many items"):
        values.as_json(b"\xfe\xff\x07" + bytes(20 * count))  # 65,535 of them
    assert values.as_json(b"\x02" + bytes(20) + b"\0")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "is not JSON"),
        ('"string"', "must be a record"),
        ('{"type": "record", "name": "A"}', "no list of fields"),
        ('{"type": "record", "name": "a b", "fields": []}', "no valid name"),
        (schema_of("A"), "contains itself"),
        (schema_of(["null", "A"]), "contains itself"),
        (schema_of("B"), "'B', which is not defined"),
        (schema_of(["null", "null"]), "one type twice"),
        (schema_of({"type": "array"}), "has no 'items'"),
        (schema_of({"type": "enum", "name": "E", "symbols": []}), "no valid list of symbols"),
        (schema_of({"type": "fixed", "name": "F", "size": -1}), "no valid size"),
        (schema_of({"type": "array", "items": "null"}), "take no bytes"),
        (schema_of({"type": "array", "items": {"type": "record", "name": "B", "fields": []}}), "take no bytes"),
        (schema_of(*["int"] * 3_000), "more than 2,000 types"),
        (
            '{"type":"record","name":"A","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
            "two of one name",
        ),
    ],
)
def test_a_wrong_schema_says_why(schema: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parsed(schema)


def test_schemas_that_grow_or_nest_without_bound_are_refused() -> None:
    doubling: Any = {"type": "record", "name": "R0", "fields": []}
    deep: Any = "int"
    for number in range(1, 60):
        fields = [{"name": "a", "type": doubling}, {"name": "b", "type": doubling["name"]}]
        doubling = {"type": "record", "name": f"R{number}", "fields": fields}
        deep = {"type": "array", "items": deep}
    chain = [{"type": "record", "name": "C0", "fields": []}]
    chain += [{"type": "record", "name": f"C{n}", "fields": [{"name": "a", "type": f"C{n - 1}"}]} for n in range(1, 45)]
    for schema in (schema_of(doubling["fields"][0]["type"]), schema_of(deep), schema_of(*chain)):
        with pytest.raises(ValueError, match=r"nested more than 32 deep|more than 2,000 types"):
            parsed(schema)


def test_values_of_several_schemas_are_seen_as_the_main_one_has_them() -> None:
    main = {
        "type": "record",
        "name": "A",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "mail", "type": ["null", "string"], "aliases": ["email"]},
            {"name": "country", "type": "string", "default": "DE"},
            {"name": "raw", "type": "bytes", "default": "\u00ff"},
        ],
    }
    old = {
        "type": "record",
        "name": "A",
        "fields": [
            {"name": "email", "type": "string"},
            {"name": "gone", "type": "string"},
            {"name": "id", "type": "int"},
        ],
    }
    values = Values(json.dumps(main), 9, {7: json.dumps(old)})
    value = framed(7, encoded({"email": "a", "gone": "x", "id": 3}, fastavro.parse_schema(old)))
    assert json.loads(values.as_json(value)) == {"country": "DE", "raw": "/w==", "mail": "a", "id": 3}
    made = values.replaced(value, {"gone": "", "id": 4, "mail": "not in it"})
    assert (
        decoded(made[5:], fastavro.parse_schema(old)) == {"email": "a", "gone": "", "id": 4} and made[:5] == value[:5]
    )
    with pytest.raises(NotAvro, match="does not permit the new content of field id"):
        values.replaced(value, {"id": 1 << 40})
    with pytest.raises(UnknownSchema, match="schema ID 8"):
        values.as_json(framed(8, value[5:]))
    for wrong in (b"", b"\0\0\0\0", b"\1" + value[1:], value[5:]):
        with pytest.raises(NotAvro, match="does not begin"):
            values.as_json(wrong)
    with pytest.raises(ValueError, match=r"older\.7: cannot be read as `schema`: field id is not in it"):
        Values(json.dumps(main), 9, {7: schema_of("string")})


@pytest.mark.parametrize(
    ("name", "content"),
    [("id", None), ("id", "1"), ("id", 1.0), ("id", True), ("id", 1 << 63), ("level", "NONE"), ("hash", "AAA="), ("raw", "?"),
     ("ok", 1), ("small", 1 << 31), ("ratio", 1e300), ("ratio", "x"), ("address", {}), ("tags", [None]), ("counts", {"a": None}),
     ("email", "\ud800"), ("email", 3)],
)  # fmt: skip
def test_a_content_that_the_schema_does_not_permit_is_not_written(name: str, content: Any) -> None:
    with pytest.raises(NotAvro, match=f"does not permit the new content of field {name}"):
        OURS.replaced(encoded(EXAMPLE), {name: content})


EXAMPLE = {
    "id": 1, "email": None, "score": None, "small": 1, "ratio": 0.5, "ok": True, "raw": b"", "level": "LOW", "again": None,
    "hash": b"abcd", "tags": [], "counts": {}, "address": {"city": ""}, "former": [], "either": None, "nothing": None, "at": 0,
}  # fmt: skip


def test_which_fields_can_be_set() -> None:
    assert set_problems(OURS, ["id", "tags"]) == []
    assert [problem.partition(": ")[0] for problem in set_problems(OURS, ["either", "nothing", "none"])] == [
        "fields.set.either",
        "fields.set.nothing",
        "fields.set.none",
    ]
    for main, older, fits in (("double", "int", False), ("double", "float", True), ("long", "int", True)):
        both = Values(schema_of(main), 9, {7: schema_of(older)})
        assert (set_problems(both, ["f0"]) == []) is fits, (main, older)
    assert OURS.main.columns["former"] == "ARRAY<STRUCT<`city`: STRING>>"


@given(RECORDS)
def test_what_has_no_meaning_for_values_is_stripped(record: Any) -> None:
    assert "doc" not in stripped(TEXT) and stripped(stripped(TEXT)) == stripped(TEXT)
    assert Values(stripped(TEXT)).as_json(encoded(record)) == OURS.as_json(encoded(record))
