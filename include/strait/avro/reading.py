"""Decodes Avro's binary form of a value into plain data, as JSON has it: bytes are base64 text, enums are their symbols. Pure.

Decoders are closures, compiled once for a schema: given the bytes and a position, they return the value and the position after
it. Each length, count and index is checked before it is used, and the memory that a few bytes may take is bounded.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any

from strait.avro.schema import NO_DEFAULT, FieldType, Type, matched

Decoder = Callable[[bytes, int], tuple[Any, int]]

MOST_MEMORY = 32 << 20
"""Bytes that the items of a value's arrays and maps may take in memory besides their content, as `_weight` estimates them."""
_ITEM_BYTES = 64
_FLOAT, _DOUBLE = Struct("<f"), Struct("<d")
_PROMOTED = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}
"""Type of the writer -> types in which it can be read."""


class NotAvro(Exception):
    """A value is not of its schema; the text gives the reason, without content."""


class Memory:
    """The memory that the items of the present value may still take, in bytes."""

    def __init__(self) -> None:
        self.left = MOST_MEMORY

    def reset(self) -> None:
        """Start another value."""
        self.left = MOST_MEMORY

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise NotAvro("its arrays have too many items")


def long(data: bytes, at: int) -> tuple[int, int]:
    """Decode a zigzag varint of 64 bits. Raises IndexError or NotAvro."""
    byte = data[at]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, shift = byte & 127, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise NotAvro("a number is too long")
    if value >> 64:
        raise NotAvro("a number is too large")
    return (value >> 1) ^ -(value & 1), at + 1


def decoder(writer: Type, reader: Type | None, memory: Memory) -> Decoder:
    """Return the decoder of values that were written with one schema, as another one shows them.

    Args:
        reader: None if the values are only passed over; the decoder then returns anything.

    Raises:
        ValueError: values of the first cannot be read as the second.
    """
    if reader is None or reader.spark is None:
        return _compiled(writer, None, memory)
    if writer.kind == "union":
        return _union([_branch(part, reader, memory) for part in writer.parts], writer, reader)
    held = reader.held
    assert held is not None
    if writer.kind == "null" and reader.nullable:
        return _null
    return _compiled(writer, held, memory)


def _branch(writer: Type, reader: Type, memory: Memory) -> Decoder | None:
    try:
        return decoder(writer, reader, memory)
    except ValueError:
        return None


def _union(branches: Sequence[Decoder | None], writer: Type, reader: Type) -> Decoder:
    if not any(branches):
        raise ValueError(f"no type of the union can be read as {reader.kind}")
    count = len(branches)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        number, at = long(data, at)
        if not 0 <= number < count:
            raise NotAvro("a union has no such branch")
        branch = branches[number]
        if branch is None:
            raise NotAvro(f"a value of type {writer.parts[number].kind} cannot be read as {reader.kind}")
        return branch(data, at)

    return read


def _compiled(writer: Type, reader: Type | None, memory: Memory) -> Decoder:
    """``reader``: neither null nor a union; None: values are passed over."""
    kind = writer.kind
    if reader is not None and reader.kind != kind and reader.kind not in _PROMOTED.get(kind, ()):
        raise ValueError(f"a value of type {kind} cannot be read as {reader.kind}")
    if kind == "union":
        return _union([_compiled(part, None, memory) for part in writer.parts], writer, writer)
    if kind == "record":
        return _record(writer, reader, memory)
    if kind in ("array", "map"):
        item = decoder(writer.parts[0], None if reader is None else reader.parts[0], memory)
        weight = _weight(writer.parts[0], None if reader is None else reader.parts[0])
        return _array(item, weight, memory) if kind == "array" else _map(item, weight, memory)
    if kind == "enum":
        return _enum(writer.symbols)
    if kind == "fixed":
        if reader is not None and reader.size != writer.size:
            raise ValueError(f"a value of {writer.size} bytes cannot be read as one of {reader.size}")
        return _fixed(writer.size)
    if kind in ("string", "bytes"):
        return _bytes if (reader or writer).kind == "bytes" else _text
    return _SIMPLE[kind]


def _record(writer: Type, reader: Type | None, memory: Memory) -> Decoder:
    steps, missing = members(writer, reader, memory)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        made = dict(missing)
        for name, part in steps:
            value, at = part(data, at)
            if name is not None:
                made[name] = value
        return made, at

    return read


def members(
    writer: Type, reader: Type | None, memory: Memory
) -> tuple[Sequence[tuple[str | None, Decoder]], Mapping[str, Any]]:
    """Return for each field of the writer's record its name in the reader's, None if that does not show it, with its decoder; and
    the contents of the fields that the reader alone has. Raises ValueError."""
    steps: list[tuple[str | None, Decoder]] = []
    pairs, rest = matched(writer, reader)
    for field, other in pairs:
        try:
            steps.append((other and other.name, decoder(field.type, other and other.type, memory)))
        except ValueError as error:
            raise ValueError(f"field {field.name}: {error}") from None
    return steps, {field.name: _default(field) for field in rest}


def _default(field: FieldType) -> Any:
    if field.default is NO_DEFAULT:
        raise ValueError(f"field {field.name} is not in it, and has no default")
    return _shown(field.type, field.default, field.name)


def _shown(kind: Type, default: Any, name: str) -> Any:
    """Return a default as decoders return values."""
    if default is None and kind.nullable:
        return None
    held = kind.held
    assert held is not None
    made: Any = default
    expected: Any = {"boolean": bool, "array": list, "map": dict, "record": dict}.get(held.kind, str)
    if held.kind in ("int", "long"):
        expected = int
    elif held.kind in ("float", "double"):
        expected = (int, float)
    if not isinstance(default, expected) or (isinstance(default, bool) and held.kind != "boolean"):
        raise ValueError(f"field {name}: its default is not of type {held.kind}")
    if held.kind in ("bytes", "fixed"):
        made = base64.b64encode(default.encode("latin-1")).decode()
    elif held.kind == "array":
        made = [_shown(held.parts[0], each, name) for each in default]
    elif held.kind == "map":
        made = {key: _shown(held.parts[0], each, name) for key, each in default.items()}
    elif held.kind == "record":
        made = {}
        for field in held.fields:
            if field.type.spark is not None:
                given = default.get(field.name, field.default)
                made[field.name] = _default(field._replace(default=given))
    return made


def _array(item: Decoder, weight: int, memory: Memory) -> Decoder:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        found = []
        count, at, end = _block(data, at, weight, memory)
        while count:
            for _ in range(count):
                value, at = item(data, at)
                found.append(value)
            _require_end(at, end)
            count, at, end = _block(data, at, weight, memory)
        return found, at

    return read


def _map(item: Decoder, weight: int, memory: Memory) -> Decoder:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        found = {}
        count, at, end = _block(data, at, weight, memory)
        while count:
            for _ in range(count):
                key, at = _text(data, at)
                found[key], at = item(data, at)
            _require_end(at, end)
            count, at, end = _block(data, at, weight, memory)
        return found, at

    return read


def _block(data: bytes, at: int, weight: int, memory: Memory) -> tuple[int, int, int]:
    """Return the number of items that follow, their position, and that of their end, -1 if the block does not have it."""
    count, at = long(data, at)
    if count >= 0:
        end = -1
    else:
        size, at = long(data, at)
        count, end = -count, at + size
    if count > len(data) - at:  # each takes a byte at least
        raise NotAvro("an array or map has more items than bytes")
    memory.take(count * weight)
    return count, at, end


def _require_end(at: int, end: int) -> None:
    if end >= 0 and at != end:
        raise NotAvro("a block has another size than it says")


def _weight(writer: Type, reader: Type | None) -> int:
    """Return about how many bytes a value takes in memory or as JSON, without its content."""
    shown = writer if reader is None else reader
    longest = max((len(symbol) for symbol in shown.symbols), default=0)
    fields = sum(len(field.name) + _weight(field.type, None) + _default_size(field) for field in shown.fields)
    others = max((_weight(part, None) for part in shown.parts if shown.kind == "union"), default=0)
    return _ITEM_BYTES + longest + fields + others


def _default_size(field: FieldType) -> int:
    return 0 if field.default in (NO_DEFAULT, None) else len(str(field.default))


def _enum(symbols: Sequence[str]) -> Decoder:
    """Return the decoder of an enum. It shows the symbol that was written, whether the reader's schema has it or not: a symbol
    that another schema adds must not change results."""
    count = len(symbols)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        number, at = long(data, at)
        if not 0 <= number < count:
            raise NotAvro("an enum has no such symbol")
        return symbols[number], at

    return read


def _raw(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = long(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise NotAvro("a text or bytes have another length than they say")
    return data[at:end], end


def _text(data: bytes, at: int) -> tuple[Any, int]:
    found, at = _raw(data, at)
    return found.decode(), at


def _bytes(data: bytes, at: int) -> tuple[Any, int]:
    found, at = _raw(data, at)
    return base64.b64encode(found).decode(), at


def _fixed(size: int) -> Decoder:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        end = at + size
        if end > len(data):
            raise NotAvro("it is cut short")
        return base64.b64encode(data[at:end]).decode(), end

    return read


def _null(data: bytes, at: int) -> tuple[Any, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[Any, int]:
    if data[at] > 1:
        raise NotAvro("a boolean is neither 0 nor 1")
    return data[at] == 1, at + 1


def _int(data: bytes, at: int) -> tuple[Any, int]:
    value, at = long(data, at)
    if not -(1 << 31) <= value < 1 << 31:
        raise NotAvro("an int has more than 32 bits")
    return value, at


def _float(data: bytes, at: int) -> tuple[Any, int]:
    return _FLOAT.unpack_from(data, at)[0], at + 4


def _double(data: bytes, at: int) -> tuple[Any, int]:
    return _DOUBLE.unpack_from(data, at)[0], at + 8


_SIMPLE: Mapping[str, Decoder] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": long,
    "float": _float,
    "double": _double,
}
