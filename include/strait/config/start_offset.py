"""The start offset of partitions that are new to a link, and the end of replication. Pure.

Both are set in the links file, and their type determines their form: a keyword, a time, or an offset for each partition.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

_FORMS = "`earliest`, `latest`, a time such as 2026-01-31T12:00:00Z, milliseconds since 1970, or an object {partition: offset}"


def _parse(value: Any) -> Any:
    if value in ("earliest", "latest") or _is_natural(value):
        return value
    if isinstance(value, str):
        return _milliseconds(value)
    if isinstance(value, dict) and value:
        return {_partition(key): _offset(offset) for key, offset in value.items()}
    raise ValueError(f"{value!r} is none of {_FORMS}")


def _parse_end(value: Any) -> Any:
    if value == "earliest":
        raise ValueError("`earliest` is no end")
    return _parse(value)


def _milliseconds(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is none of {_FORMS}") from None
    if time.tzinfo is None:
        raise ValueError(f"the time {text!r} needs a time zone, such as a final Z")
    if time.timestamp() < 0:
        raise ValueError(f"the time {text!r} is before 1970; Kafka's timestamps start there")
    return round(time.timestamp() * 1000)


def _partition(key: Any) -> int:
    number = int(key) if isinstance(key, str) and key.isdecimal() else key  # keys are strings in JSON
    if not _is_natural(number):
        raise ValueError(f"{key!r} is not a partition; expected a number, 0 or greater")
    return int(number)


def _offset(value: Any) -> int:
    if not _is_natural(value):
        raise ValueError(f"{value!r} is not an offset; expected a number, 0 or greater")
    return int(value)


def _is_natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


Start = Annotated[
    Literal["earliest", "latest"] | int | Mapping[int, int],
    PlainValidator(_parse),
    PlainSerializer(lambda start: start, return_type=Any),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["earliest", "latest"]},
                {"type": "string", "format": "date-time"},
                {"type": "integer"},
                {"type": "object", "additionalProperties": {"type": "integer"}},
            ],
            "x-shown": "[start](#start)",
        }
    ),
]
"""A keyword, milliseconds since 1970, or partition -> offset."""

Until = Annotated[
    Literal["latest"] | int | Mapping[int, int],
    PlainValidator(_parse_end),
    PlainSerializer(lambda until: until, return_type=Any),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["latest"]},
                {"type": "string", "format": "date-time"},
                {"type": "integer"},
                {"type": "object", "additionalProperties": {"type": "integer"}},
            ],
            "x-shown": "[until](#until)",
        }
    ),
]
"""A keyword, milliseconds since 1970, or partition -> offset: records from there on are not copied."""


def until_text(until: Until | None) -> str:
    """Return the end as text; "" if there is none. Equal ends have equal texts."""
    if until is None:
        return ""
    if isinstance(until, int):
        return datetime.fromtimestamp(until / 1000, UTC).isoformat()
    return until if isinstance(until, str) else json.dumps({str(key): until[key] for key in sorted(until)})
