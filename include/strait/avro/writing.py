"""Encodes plain data, as Spark's JSON has it, in Avro's binary form. Pure.

Content that a schema does not permit raises one of `NOT_PERMITTED`: null in a type without it, a number beyond its type, a symbol
that an enum lacks. Nothing is converted.
"""

import base64
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Any

from strait.avro.schema import Type, matched

Encoder = Callable[[Any, bytearray], None]

NOT_PERMITTED = (ValueError, TypeError, KeyError, OverflowError, StructError)

_FLOATS = {"float": Struct("<f"), "double": Struct("<d")}
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_BITS = {"int": 32, "long": 64}


def put_long(value: int, out: bytearray) -> None:
    """Append a number of 64 bits as a zigzag varint."""
    rest = (value << 1) ^ (value >> 63)
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    out.append(rest)


def encoder(one: Type, given: Type) -> Encoder:
    """Return the function that appends a value of this type, which expressions must see (`Type.spark`); a part of it that they do not see can
    only be null.

    Args:
        given: the type that contents have; by its names and aliases, the fields of their records become those of this type.
    """
    if one.kind == "union":
        return _nullable(one, given)
    if one.kind in ("array", "map"):
        item = encoder(one.parts[0], _part(given, one.kind) or one.parts[0])
        return _array(item) if one.kind == "array" else _map(item)
    if one.kind == "record":
        return _record(one, given.held)
    if one.kind == "enum":
        numbers = {symbol: number for number, symbol in enumerate(one.symbols)}
        return lambda value, out: put_long(numbers[value], out)
    if one.kind in _BITS:
        return _integer(_BITS[one.kind])
    if one.kind in _FLOATS:
        return _floating(_FLOATS[one.kind])
    if one.kind == "fixed":
        return _fixed(one.size)
    return {"null": _null, "boolean": _boolean, "string": _string, "bytes": _bytes}[one.kind]


def _part(given: Type, kind: str) -> Type | None:
    held = given.held
    return held.parts[0] if held is not None and held.kind == kind else None


def _nullable(one: Type, given: Type) -> Encoder:
    held = one.held
    if held is None:  # several types
        return _null_of(one)
    inner, own = encoder(held, given), one.parts.index(held)
    null = next((number for number, part in enumerate(one.parts) if part.kind == "null"), -1)

    def write(value: Any, out: bytearray) -> None:
        if value is None and null >= 0:
            put_long(null, out)
        else:
            put_long(own, out)
            inner(value, out)

    return write


def _null_of(one: Type) -> Encoder:
    null = next((number for number, part in enumerate(one.parts) if part.kind == "null"), -1)

    def write(value: Any, out: bytearray) -> None:
        if value is not None or null < 0:
            raise ValueError("a union of several types cannot be set")
        put_long(null, out)

    return write


def _record(one: Type, given: Type | None) -> Encoder:
    parts = [
        (field.name if other is None else other.name, encoder(field.type, field.type if other is None else other.type))
        for field, other in matched(one, given)[0]
    ]

    def write(value: Any, out: bytearray) -> None:
        contents = _of(value, dict)
        for name, part in parts:
            part(contents.get(name), out)  # Spark leaves fields out that are null

    return write


def _array(item: Encoder) -> Encoder:
    def write(value: Any, out: bytearray) -> None:
        items = _of(value, list)
        if items:
            put_long(len(items), out)
            for each in items:
                item(each, out)
        out.append(0)

    return write


def _map(item: Encoder) -> Encoder:
    def write(value: Any, out: bytearray) -> None:
        items = _of(value, dict)
        if items:
            put_long(len(items), out)
            for key, each in items.items():
                _string(key, out)
                item(each, out)
        out.append(0)

    return write


def _integer(bits: int) -> Encoder:
    most = 1 << bits - 1

    def write(value: Any, out: bytearray) -> None:
        if type(value) is not int or not -most <= value < most:
            raise ValueError(f"not a number of {bits} bits")
        put_long(value, out)

    return write


def _floating(layout: Struct) -> Encoder:
    def write(value: Any, out: bytearray) -> None:
        out += layout.pack(_NOT_FINITE.get(value, value) if isinstance(value, str) else value)

    return write


def _fixed(size: int) -> Encoder:
    def write(value: Any, out: bytearray) -> None:
        found = base64.b64decode(_of(value, str), validate=True)
        if len(found) != size:
            raise ValueError(f"not {size} bytes")
        out += found

    return write


def _null(value: Any, out: bytearray) -> None:
    if value is not None:
        raise ValueError("not null")


def _boolean(value: Any, out: bytearray) -> None:
    out.append(_of(value, bool))


def _string(value: Any, out: bytearray) -> None:
    found = _of(value, str).encode()
    put_long(len(found), out)
    out += found


def _bytes(value: Any, out: bytearray) -> None:
    found = base64.b64decode(_of(value, str), validate=True)
    put_long(len(found), out)
    out += found


def _of(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"not a {kind.__name__}")
    return value
