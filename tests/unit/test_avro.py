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
    made = values.replaced(value, {"gone": "", "id": 4, "country": "not in it"})
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


def record_of(**fields: Any) -> dict[str, Any]:
    """A record's schema: name -> type, or the parts of a field."""
    return {
        "type": "record",
        "name": "A",
        "fields": [
            {"name": name, **(kind if isinstance(kind, dict) and "aliases" in kind else {"type": kind})}
            for name, kind in fields.items()
        ],
    }


def alias(kind: Any, *names: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "aliases": list(names), **more}


def of_two(main: Any, older: Any) -> Values:
    return Values(json.dumps(main), 9, {7: json.dumps(older)})


def set_in_older(main: Any, older: Any, record: Any, changes: dict[str, Any]) -> Any:
    schema = fastavro.parse_schema(older)
    values = of_two(main, older)
    value = framed(7, encoded(record, schema))
    json.loads(values.as_json(value))
    return decoded(values.replaced(value, changes)[5:], schema)


def test_a_field_that_was_renamed_is_set_under_its_new_name() -> None:
    main, older = record_of(email=alias(["null", "string"], "mail", "post")), record_of(id="int", mail="string")
    assert set_in_older(main, older, {"id": 1, "mail": "secret"}, {"email": "x"}) == {"id": 1, "mail": "x"}
    values = of_two(main, older)
    assert [kind.kind for kind in values.types_of("email")] == ["union", "string"]
    assert set_problems(values, ["email"]) == []
    with pytest.raises(NotAvro, match="does not permit the new content of field email"):
        values.replaced(framed(7, b"\x02\x0csecret"), {"email": None})


def test_a_renamed_field_can_be_set_under_both_names() -> None:
    """Rules had to do so to mask it in values of both schemas."""
    main, older = record_of(email=alias("string", "mail")), record_of(mail="string")
    assert set_problems(of_two(main, older), ["email", "mail"]) == []
    assert set_in_older(main, older, {"mail": "secret"}, {"email": "x", "mail": "y"}) == {"mail": "y"}


def test_fields_of_a_record_to_set_are_found_by_their_aliases() -> None:
    def address(name: str, **fields: Any) -> dict[str, Any]:
        return record_of(**fields) | {"name": name}

    places = {"type": "array", "items": address("P", town=alias("string", "place"))}
    older_places = {"type": "array", "items": address("P", place="string")}
    main = record_of(home=alias(address("H", city=alias("string", "town"), at=places), "address"))
    older = record_of(address=address("H", at=["null", older_places], gone=["null", "string"], town="string"))
    record = {"address": {"town": "secret", "at": [{"place": "secret"}], "gone": "secret"}}
    made = set_in_older(main, older, record, {"home": {"city": "x", "at": [{"town": "y"}]}})
    assert made == {"address": {"town": "x", "at": [{"place": "y"}], "gone": None}}


UNCLEAR = {
    "two fields are one by an alias": (
        record_of(email=alias("string", "mail")), record_of(email="string", mail="string"), "email"
    ),
    "an alias is the name of another field": (
        record_of(mail="string", email=alias("string", "mail", default="")), record_of(mail="string"), "email"
    ),
    "the name to set is an older one": (record_of(email=alias("string", "mail")), record_of(mail="string"), "mail"),
    "another case": (record_of(email={"aliases": [], "type": "string", "default": ""}), record_of(Email="string"), "email"),
    "another case of an alias": (record_of(email=alias("string", "mail", default="")), record_of(Mail="string"), "email"),
    "another case in the main schema": (
        record_of(Email={"aliases": [], "type": "string", "default": ""}), record_of(email="string"), "email"
    ),
    "an alias in the older schema": (
        record_of(email={"aliases": [], "type": "string", "default": ""}), record_of(mail=alias("string", "email")), "email"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNCLEAR)
def test_a_field_that_may_be_the_one_to_set_is_not_copied(case: str) -> None:
    main, older, name = UNCLEAR[case]
    values, problem = of_two(main, older), f"fields.set.{name}: field "
    assert [one[: len(problem)] for one in set_problems(values, [name])] == [problem]
    number = 9 if "`schema`" in set_problems(values, [name])[0] else 7
    with pytest.raises(NotAvro, match="does not permit to set field"):
        values.replaced(framed(number, b"\x0csecret" * 2), {name: "x"})
    both = {field["name"] for schema in (main, older) for field in schema["fields"]}
    assert set_problems(values, sorted(both)) == [], "each of them is set"
    for number, schema in ((9, main), (7, older)):
        value = framed(number, b"\x0csecret" * len(schema["fields"]))
        assert b"secret" not in values.replaced(value, dict.fromkeys(both, "x"))


NAMES = st.sampled_from(["a", "A", "b", "c"])
FIELDS = st.dictionaries(NAMES, st.sets(NAMES), min_size=1, max_size=3)


@given(FIELDS, FIELDS, NAMES)
def test_no_expression_sees_a_former_content_of_a_field_that_is_set(main: Any, older: Any, name: str) -> None:
    first, second = (
        record_of(**{field: alias("string", *sorted(aliases), default="") for field, aliases in one.items()})
        for one in (main, older)
    )
    values = of_two(first, second)
    for number, schema in ((9, first), (7, second)):
        value = framed(number, b"\x0csecret" * len(schema["fields"]))
        try:
            made = values.replaced(value, {name: "x"})
        except NotAvro:
            assert set_problems(values, [name])
            continue
        assert json.loads(values.as_json(made)).get(name, "") in ("x", "")


def test_fields_that_differ_only_by_case_are_two_where_both_are() -> None:
    both = record_of(email="string", Email="string", mail=alias("string", "email"))
    values = of_two(both, both)
    assert set_problems(values, ["email"]) == []
    assert values.replaced(framed(9, b"\x02a\x02b\x02c"), {"email": "x"}) == framed(9, b"\x02x\x02b\x02c")


def test_a_field_that_an_older_schema_has_as_several_types_is_not_copied() -> None:
    main, older = record_of(email=alias("string", "mail")), record_of(mail=["string", "long"])
    values = of_two(main, older)
    assert len(set_problems(values, ["email"])) == 1
    value = framed(7, b"\x00\x0csecret")
    assert json.loads(values.as_json(value)) == {"email": "secret"}
    with pytest.raises(NotAvro, match="does not permit to set field email"):
        values.replaced(value, {"email": "x"})


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
