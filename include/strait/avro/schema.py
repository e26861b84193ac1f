"""Avro schemas, parsed from JSON text, and the types in which Spark sees their fields. Pure.

Limits make every decoder of a schema bounded: a type that contains itself could nest as deep as a value has bytes, one that names
others many times could grow exponentially, and array items without any bytes could be any number.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from strait.json_text import value_of

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MOST_TYPES = 2_000
"""Number of types in a schema, each counted as often as it is used."""
DEEPEST = 32
NO_DEFAULT = object()

_SPARK = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BINARY",
    "string": "STRING",
    "enum": "STRING",
    "fixed": "BINARY",
}
_KEPT = ("type", "name", "namespace", "fields", "items", "values", "symbols", "size", "default", "aliases")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FULL_NAME = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*\.)*[A-Za-z_][A-Za-z0-9_]{0,127}")
_LARGEST_FIXED = 1 << 20


class FieldType(NamedTuple):
    """A field of a record. ``default``: as in the schema, `NO_DEFAULT` if it has none."""

    name: str
    type: "Type"
    default: object = NO_DEFAULT
    aliases: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[object, ...]:
        """The default, if it has one."""
        return () if self.default is NO_DEFAULT else (self.default,)


class Type(NamedTuple):
    """A type; logical types are their base types.

    Attributes:
        name: full name of a record, enum or fixed.
        symbols: of an enum.
        size: bytes of a fixed.
        parts: the type of the items of an array or map, or of each branch of a union.
    """

    kind: str
    name: str = ""
    fields: tuple[FieldType, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    parts: "tuple[Type, ...]" = ()

    @property
    def held(self) -> "Type | None":
        """The only type besides null of a union, or the type itself; None if a union has several."""
        if self.kind != "union":
            return self
        held = [part for part in self.parts if part.kind != "null"]
        return held[0] if len(held) == 1 else None

    @property
    def nullable(self) -> bool:
        return self.kind == "null" or (self.kind == "union" and any(part.kind == "null" for part in self.parts))

    @property
    def spark(self) -> str | None:
        """The type in Spark's notation; None if expressions cannot see it: null, and unions of several types."""
        held = self.held
        if held is None or held.kind == "null":
            return None
        if held.kind == "record":
            fields = ", ".join(f"`{name}`: {kind}" for name, kind in held.columns.items())
            return f"STRUCT<{fields}>" if fields else None
        if held.kind in ("array", "map"):
            item = held.parts[0].spark
            return item and (f"ARRAY<{item}>" if held.kind == "array" else f"MAP<STRING, {item}>")
        return _SPARK[held.kind]

    @property
    def meaning(self) -> Any:
        """All that determines the fields that expressions see, also of those that were written with another schema; as JSON."""
        held = self.held
        if held is None or held.spark is None:
            return None
        if held.kind == "record":
            seen = [field for field in held.fields if field.type.spark is not None]
            return {field.name: [field.type.meaning, *field.given, *field.aliases] for field in seen}
        return [held.kind, held.parts[0].meaning] if held.parts else held.spark

    @property
    def columns(self) -> dict[str, str]:
        """The fields of a record that expressions see, and their types in Spark's notation."""
        found = ((field.name, field.type.spark) for field in self.fields)
        return {name: kind for name, kind in found if kind is not None}


def matched(
    writer: Type, reader: Type | None
) -> tuple[Sequence[tuple[FieldType, FieldType | None]], Sequence[FieldType]]:
    """Return each field of the writer's record with the reader's field that shows it, by its name or else an alias, None if
    there is none; and the fields that the reader alone has, all of those that expressions see."""
    rest = {} if reader is None else {field.name: field for field in reader.fields if field.type.spark is not None}
    pairs: list[tuple[FieldType, FieldType | None]] = []
    for field in writer.fields:
        other = rest.get(field.name) or next((one for one in rest.values() if field.name in one.aliases), None)
        if other is not None:
            del rest[other.name]
        pairs.append((field, other))
    return pairs, list(rest.values())


def parsed(text: str) -> Type:
    """Return the schema of a record.

    Raises:
        ValueError: it is not a valid schema of a record, or is beyond a limit; the text gives the reason.
    """
    try:
        raw = value_of(text)
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    made = _Parser().parse(raw, "", "the schema", 0)
    if made.kind != "record":
        raise ValueError(f"is a schema of type {made.kind}, and must be a record, whose fields expressions can name")
    if len(list(islice(_walk(made), MOST_TYPES + 1))) > MOST_TYPES:  # types used twice may be exponentially many
        raise ValueError(f"has more than {MOST_TYPES:,} types, each counted as often as it is used")
    for found in _walk(made):
        if found.kind == "array" and not _smallest(found.parts[0]):
            raise ValueError("has an array whose items take no bytes, so a short value could have any number of them")
    return made


def stripped(text: str) -> str:
    """Return a valid schema's text without parts that have no meaning for its values, such as documentation and logical types."""
    return json.dumps(_stripped(value_of(text)), separators=(",", ":"), ensure_ascii=False)


def _stripped(raw: Any) -> Any:
    if isinstance(raw, list):
        return [_stripped(each) for each in raw]
    if not isinstance(raw, dict):
        return raw
    kept = {key: raw[key] for key in _KEPT if key in raw}
    for key in ("type", "items", "values", "fields"):
        if key in kept:
            kept[key] = _stripped(kept[key])
    return kept["type"] if kept.keys() == {"type"} else kept


class _Parser:
    def __init__(self) -> None:
        self._known: dict[str, Type] = {}
        self._open: set[str] = set()

    def parse(self, raw: Any, space: str, where: str, depth: int) -> Type:
        """Return a type. ``space``: the namespace in which it is named. ``where``: of which part it is, for errors."""
        if depth > DEEPEST:
            raise ValueError(f"{where} is nested more than {DEEPEST} deep")
        if isinstance(raw, str):
            return self._named(raw, space, where)
        if isinstance(raw, list):
            return self._union(raw, space, where, depth)
        if not isinstance(raw, dict) or "type" not in raw:
            raise ValueError(f"{where} has no type")
        kind = raw["type"]
        if not isinstance(kind, str):  # such as {"type": {"type": "string"}}
            return self.parse(kind, space, where, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(raw, kind, space, where, depth)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in raw:
                raise ValueError(f"{where} is of type {kind} and has no {key!r}")
            return Type(kind, parts=(self.parse(raw[key], space, f"{key} of {where}", depth + 1),))
        return self._named(kind, space, where)

    def _named(self, name: str, space: str, where: str) -> Type:
        if name in PRIMITIVES:
            return Type(name)
        full = _full(name, space)
        if full in self._open:
            raise ValueError(f"record {full} contains itself, so its values could be nested without a limit")
        found = self._known.get(full) or self._known.get(name)
        if found is None:
            raise ValueError(f"{where} is of type {name!r}, which is not defined before it")
        return found

    def _union(self, raw: Sequence[Any], space: str, where: str, depth: int) -> Type:
        parts = tuple(self.parse(each, space, where, depth + 1) for each in raw)
        kinds = [part.name or part.kind for part in parts]
        if not parts or "union" in kinds or len(set(kinds)) < len(kinds):
            raise ValueError(f"{where} is a union that is empty, holds another union, or one type twice")
        return Type("union", parts=parts)

    def _definition(self, raw: Mapping[str, Any], kind: str, space: str, where: str, depth: int) -> Type:
        name, given = raw.get("name"), raw.get("namespace", space)
        if not isinstance(name, str) or not _FULL_NAME.fullmatch(name) or not isinstance(given, str):
            raise ValueError(f"{where} is of type {kind} and has no valid name")
        full = _full(name, given)
        if full in self._known or full in self._open or full in PRIMITIVES:
            raise ValueError(f"{full} is defined twice")
        if kind == "enum":
            made = Type("enum", full, symbols=_symbols(raw, full))
        elif kind == "fixed":
            size = raw.get("size")
            if type(size) is not int or not 0 <= size <= _LARGEST_FIXED:
                raise ValueError(f"fixed {full} has no valid size")
            made = Type("fixed", full, size=size)
        else:
            self._open.add(full)
            made = Type("record", full, tuple(self._fields(raw, full, depth)))
            self._open.remove(full)
        self._known[full] = made
        return made

    def _fields(self, raw: Mapping[str, Any], full: str, depth: int) -> Iterator[FieldType]:
        fields, names = raw.get("fields"), set()
        if not isinstance(fields, list):
            raise ValueError(f"record {full} has no list of fields")  # noqa: TRY004  of the text
        for one in fields:
            name = one.get("name") if isinstance(one, dict) else None
            if not isinstance(name, str) or not _NAME.fullmatch(name) or name in names:
                raise ValueError(f"record {full} has a field without a valid name, or two of one name")
            names.add(name)
            aliases = one.get("aliases", [])
            if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
                raise ValueError(f"field {name} of {full} has no valid list of aliases")
            if "type" not in one:
                raise ValueError(f"field {name} of {full} has no type")
            kind = self.parse(one["type"], full.rpartition(".")[0], f"field {name} of {full}", depth + 1)
            yield FieldType(name, kind, one.get("default", NO_DEFAULT), tuple(aliases))


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _symbols(raw: Mapping[str, Any], full: str) -> tuple[str, ...]:
    symbols = raw.get("symbols")
    valid = isinstance(symbols, list) and all(isinstance(each, str) and _NAME.fullmatch(each) for each in symbols)
    if not valid or not symbols or len(set(symbols)) < len(symbols):
        raise ValueError(f"enum {full} has no valid list of symbols")
    return tuple(symbols)


def _walk(one: Type, depth: int = 0) -> Iterator[Type]:
    if depth > DEEPEST:
        raise ValueError(f"is nested more than {DEEPEST} deep")
    yield one
    for part in (*one.parts, *(field.type for field in one.fields)):
        yield from _walk(part, depth + 1)


def _smallest(one: Type) -> int:
    """Return the smallest number of bytes of a value: 0 or more."""
    if one.kind == "record":
        return sum(_smallest(field.type) for field in one.fields)
    return {"null": 0, "fixed": one.size, "float": 4, "double": 8}.get(one.kind, 1)
