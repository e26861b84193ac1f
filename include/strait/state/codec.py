"""State records <-> the bytes of their keys and values. Pure; strict in both directions.

Keys are made in one way only, byte for byte, because compaction compares bytes.
"""

import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from strait.state.schema import Offset, Plan, Record, Report, Run

_V = 1
Value = TypeVar("Value", Plan, Run, Report)
Model = TypeVar("Model", bound=BaseModel)


class Unreadable(ValueError):
    """A record that this version cannot read; the text says what is wrong with it."""


class PlanKey(Record):
    """Key of the plan topic."""

    group: str


class RunKey(Record):
    """Key of the map topic."""

    topic: str
    partition: Offset
    sequence_base: Offset


class ReportKey(Record):
    """Key of the reports topic."""

    group: str
    slot: int
    part: int


Key = PlanKey | RunKey | ReportKey


def key_of(value: Plan | Run | Report) -> Key:
    """The key under which a value is written."""
    if isinstance(value, Plan):
        return PlanKey(group=value.group)
    if isinstance(value, Run):
        return RunKey(topic=value.topic, partition=value.partition, sequence_base=value.sequence_base)
    return ReportKey(group=value.group, slot=value.slot, part=value.part)


def encode_key(key: Key) -> bytes:
    """The one byte form of a key."""
    return key.model_dump_json().encode()


def encode(value: Plan | Run | Report) -> tuple[bytes, bytes]:
    """Key and value as they are written."""
    return encode_key(key_of(value)), value.model_dump_json().encode()


def decode_key(kind: type[Key], raw: bytes | None) -> Key:
    """Raises Unreadable."""
    if raw is None:
        raise Unreadable("the record has no key")
    return _strict(kind, raw, "key")


def decode(kind: type[Value], raw_key: bytes | None, raw_value: bytes) -> Value:
    """Raises Unreadable: not JSON, of another version, not what the schema says, or under a key that is not its own."""
    try:
        version = json.loads(raw_value)["v"]
    except (ValueError, TypeError, KeyError):
        version = _V  # not ours at all: the schema says precisely what is wrong with it
    if version != _V:
        raise Unreadable(f"it has v {version!r}, and this version of Strait reads v {_V}")
    value = _strict(kind, raw_value, "value")
    if encode_key(key_of(value)) != raw_key:
        raise Unreadable(f"its key {_shown(raw_key)} does not fit its value")
    return value


def _strict(kind: type[Model], raw: bytes, part: str) -> Model:
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join([part, *map(str, first["loc"])])
        raise Unreadable(f"{where}: {first['msg']}") from None


def _shown(raw: bytes | None) -> str:
    return "(none)" if raw is None else ascii(raw[:200].decode(errors="replace"))
