"""Values of a topic in Avro: as JSON for expressions, and with some fields replaced. Pure.

A value may have the frame of a registry's serializers: a zero byte and the ID of its schema in four bytes come first. Then values of several
schemas may be in one topic, each decoded with its own and shown as the main one has it.
"""

import json
from collections.abc import Iterable, Mapping
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

from strait.avro.reading import Decoder, Memory, NotAvro, decoder, members
from strait.avro.schema import Type, parsed
from strait.avro.writing import NOT_PERMITTED, Encoder, encoder

UNFRAMED = -1
"""Instead of a schema's ID: values are not framed."""
_FRAME = Struct(">bI")
_FLOATING = ("FLOAT", "DOUBLE")
_DAMAGED = (IndexError, StructError, UnicodeDecodeError)


class UnknownSchema(NotAvro):
    """A value has an ID for which no schema is given."""

    def __init__(self, schema_id: int) -> None:
        super().__init__(f"it has schema ID {schema_id}, for which the rule has no schema")


class _Schema(NamedTuple):
    """One schema: its decoder as the main one has it, and for each of its fields the name, the decoder that passes over it, and its
    encoder, None if expressions cannot see it."""

    shown: Decoder
    fields: tuple[tuple[str, Decoder, Encoder | None], ...]


class Values:
    """Decodes and changes the values of one topic. Not for several threads.

    Args:
        schema: text of the main schema. ``schema_id``: its ID, or `UNFRAMED`.
        older: ID -> text of other schemas with which values were written.

    Raises:
        ValueError: a schema is invalid, or an older one cannot be read as the main one.
    """

    def __init__(self, schema: str, schema_id: int = UNFRAMED, older: Mapping[int, str] | None = None) -> None:
        self._memory = Memory()
        self.main = _parsed("schema", schema)
        self._framed = schema_id != UNFRAMED
        types = {schema_id: self.main}
        for number, text in (older or {}).items():
            types[number] = _parsed(f"older.{number}", text)
        self._schemas = {number: self._made(number, one) for number, one in types.items()}
        self._types = types

    def _made(self, number: int, one: Type) -> _Schema:
        try:
            shown = decoder(one, self.main, self._memory)
        except ValueError as error:
            raise ValueError(f"older.{number}: cannot be read as `schema`: {error}") from None
        steps, _ = members(one, None, self._memory)
        fields = []
        for field, (_, passed_over) in zip(one.fields, steps, strict=True):
            fields.append((field.name, passed_over, encoder(field.type) if field.type.spark else None))
        return _Schema(shown, tuple(fields))

    def types_of(self, name: str) -> list[Type]:
        """Return the type of a field in each schema that has it, the main one first."""
        return [field.type for one in self._types.values() for field in one.fields if field.name == name]

    def as_json(self, value: bytes) -> bytes:
        """Return a value as a JSON object of the main schema's fields that expressions see.

        Raises:
            NotAvro: it is not of its schema, or bytes are left over. ``UnknownSchema``: its schema is not known.
        """
        one, at = self._schema_of(value)
        self._memory.reset()
        try:
            found, behind = one.shown(value, at)
        except _DAMAGED:
            raise NotAvro("it is cut short, or its text is not UTF-8") from None
        if behind != len(value):
            raise NotAvro(f"{len(value) - behind} bytes are left over")
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()

    def replaced(self, value: bytes, changes: Mapping[str, Any]) -> bytes:
        """Return a value with other contents of some fields, as its own schema has them; the bytes of all others are the same.
        A field that its schema lacks is ignored.

        Args:
            changes: name of a field -> its content, as Spark's JSON has it.

        Raises:
            NotAvro: it is not of its schema, or that does not permit a content.
        """
        one, at = self._schema_of(value)
        self._memory.reset()
        made = bytearray(value[:at])
        for name, passed_over, encode in one.fields:
            try:
                _, behind = passed_over(value, at)
            except _DAMAGED:
                raise NotAvro("it is cut short, or its text is not UTF-8") from None
            if encode is None or name not in changes:
                made += value[at:behind]
            else:
                try:
                    encode(changes[name], made)
                except NOT_PERMITTED:
                    raise NotAvro(f"its schema does not permit the new content of field {name}") from None
            at = behind
        return bytes(made)

    def _schema_of(self, value: bytes) -> tuple[_Schema, int]:
        if not self._framed:
            return self._schemas[UNFRAMED], 0
        if len(value) < _FRAME.size or value[0]:
            raise NotAvro("it does not begin with a zero byte and the ID of a schema")
        found = self._schemas.get(number := _FRAME.unpack_from(value)[1])
        if found is None:
            raise UnknownSchema(number)
        return found, _FRAME.size


def _parsed(name: str, text: str) -> Type:
    try:
        return parsed(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def set_problems(values: Values, names: Iterable[str]) -> list[str]:
    """Return why fields cannot be set, one line each."""
    problems = []
    for name in names:
        kinds = values.types_of(name)
        if not kinds:
            problems.append(f"fields.set.{name}: the schema has no field {name}")
        elif any(kind.spark is None for kind in kinds):
            problems.append(f"fields.set.{name}: a union of several types, or null, cannot be set")
        elif kinds[0].spark in _FLOATING and any(kind.spark not in _FLOATING for kind in kinds):
            problems.append(
                f"fields.set.{name}: it is {kinds[0].spark} in the schema and an integer in an older one, which does not permit "
                "the new content"
            )
    return problems
