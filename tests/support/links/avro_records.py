"""A transformation of records whose values are in Avro, such values, and what becomes of each by another decoder than Strait's."""

import io
import json
import random
import struct
from typing import Any

import fastavro

from strait.avro.schema import stripped
from strait.state.transform import AvroFormat, TopicTransform
from support.kafka.records import Record

OLD = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "email", "type": "string"},
        {"name": "ssn", "type": "string"},
        {"name": "country", "type": {"type": "enum", "name": "Country", "symbols": ["US", "DE", "FR"]}},
    ],
}
NEW = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "country", "type": {"type": "enum", "name": "Country", "symbols": ["US", "DE", "FR"]}},
        {"name": "email", "type": ["null", "string"]},
        {"name": "scores", "type": {"type": "array", "items": ["null", "double", "string"]}, "default": []},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
    ],
}
NEWEST = {**NEW, "fields": [*NEW["fields"], {"name": "more", "type": ["null", "string"], "default": None}]}
SCHEMAS = {7: OLD, 9: NEW, 12: NEWEST}
PARSED = {number: fastavro.parse_schema(schema) for number, schema in SCHEMAS.items()}


def transform(main: int, *older: int) -> TopicTransform:
    """Filter and fields, for values of these schema IDs."""
    texts = {number: stripped(json.dumps(SCHEMAS[number])) for number in (main, *sorted(older))}
    return TopicTransform(
        avro=AvroFormat(schema_text=texts.pop(main), schema_id=main, older={str(key): texts[key] for key in texts}),
        where="v.country <> 'US'",
        set_fields={"email": "regexp_replace(v.email, '^[^@]+', 'x')", "ssn": "''"},
        malformed="quarantine",
    )


def value(rng: random.Random, number: int, schema: int) -> bytes | None:
    """Return a value of this schema ID with a registry's framing; some are null, or cannot be parsed."""
    if rng.random() < 0.02:
        return rng.choice(
            [None, b"", b"\0", struct.pack(">bI", 0, schema), struct.pack(">bI", 0, schema) + b"\xff" * 20, b"{}"]
        )
    made: dict[str, Any] = {
        "id": number,
        "country": rng.choice(["US", "DE", "FR"]),
        "email": f"person{number}@example.com",
    }
    if schema == 7:
        made["ssn"] = "123-45-6789"
    else:
        made |= {"scores": [None, 0.1, "x"], "at": number, "email": made["email"] if number % 5 else None, "more": "y"}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PARSED[schema], made)
    return struct.pack(">bI", 0, schema) + out.getvalue()


def transformed(record: Record) -> Record | None:
    """What becomes of a record; the offset is the source's."""
    if record.value is None or len(record.value) < 8 or record.value[5:7] == b"\xff\xff":
        return None
    schema = PARSED[struct.unpack_from(">I", record.value, 1)[0]]
    made: Any = fastavro.schemaless_reader(io.BytesIO(record.value[5:]), schema, None)
    if made["country"] == "US":
        return None
    if made["email"] is not None:
        made["email"] = "x@example.com"
    if "ssn" in made:
        made["ssn"] = ""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, made)
    return record._replace(value=record.value[:5] + out.getvalue())
