"""Values of a topic in Avro: as JSON for expressions, and with some fields replaced. Pure.

A value may have the frame of a registry's serializers: a zero byte and the ID of its schema in four bytes come first. Then values of several
schemas may be in one topic, each decoded with its own and shown as the main one has it.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

from strait.avro.reading import Decoder, Memory, NotAvro, decoder, members
from strait.avro.schema import FieldType, Type, matched, parsed
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


class _Field(NamedTuple):
    """A field of one schema. ``names``: those under which a rule can set it: its own, and the one that expressions see."""

    given: FieldType
    names: tuple[str, ...]
    passed_over: Decoder


class _Schema(NamedTuple):
    """One schema: its ID, its decoder as the main one has it, and its fields."""

    number: int
    shown: Decoder
    fields: tuple[_Field, ...]


class _Step(NamedTuple):
    """The treatment of one field when others are set. ``name``: of its new content, None if its bytes stay. ``encode``: None if
    it cannot be set."""

    passed_over: Decoder
    name: str | None
    encode: Encoder | None


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
        self._main_number = schema_id
        types = {schema_id: self.main}
        for number, text in (older or {}).items():
            types[number] = _parsed(f"older.{number}", text)
        self._schemas = {number: self._made(number, one) for number, one in types.items()}
        self._steps: dict[tuple[object, ...], tuple[_Step, ...]] = {}

    def _made(self, number: int, one: Type) -> _Schema:
        try:
            shown = decoder(one, self.main, self._memory)
        except ValueError as error:
            raise ValueError(f"older.{number}: cannot be read as `schema`: {error}") from None
        steps, _ = members(one, None, self._memory)
        fields = []
        for (field, other), (_, passed_over) in zip(matched(one, self.main)[0], steps, strict=True):
            names = (field.name,) if other is None or other.name == field.name else (field.name, other.name)
            fields.append(_Field(field, names, passed_over))
        return _Schema(number, shown, tuple(fields))

    def types_of(self, name: str) -> list[Type]:
        """Return the type of a field in each schema that has it, under this name or one of which the main one's is an alias; the
        main one first. New contents are of the first type."""
        return [field.given.type for one in self._schemas.values() for field in one.fields if name in field.names]

    def unclear(self, names: Collection[str]) -> Iterator[tuple[str, str, str]]:
        """Yield each field that may be one of those to set, and is not set: the name to set, the schema, and the field's name."""
        for one in self._schemas.values():
            for field in one.fields:
                name = self._meant(one, field, names)
                if name is not None and name not in field.names:
                    label = "schema" if one.number == self._main_number else f"older.{one.number}"
                    yield name, label, field.given.name

    def _meant(self, one: _Schema, field: _Field, names: Collection[str]) -> str | None:
        """Return the name in ``names`` that the field has, or else one that it may have; None if there is neither."""
        sure = (name for name in field.names if name in names)
        return next(sure, None) or next((name for name in names if self._may_be(one, field.given, name)), None)

    def _may_be(self, one: _Schema, field: FieldType, name: str) -> bool:
        """Return whether a field may hold the content of another name: by an alias that is not used to show it, or if upper and
        lower case were the same."""
        if one.number != self._main_number and any(
            field.name in main.aliases for main in self.main.fields if main.name == name
        ):
            return True  # Avro resolves aliases before names, so it may be either
        if any(name in other.names for other in one.fields):
            return False
        named = [other.given for each in self._schemas.values() for other in each.fields if other.given.name == name]
        known = {name, *(alias for other in named for alias in other.aliases)}
        return not {text.lower() for text in known}.isdisjoint(text.lower() for text in (field.name, *field.aliases))

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
        A name without a field in its schema, also by aliases, is ignored.

        Args:
            changes: name of a field -> its content, as Spark's JSON has it.

        Raises:
            NotAvro: it is not of its schema, or that does not permit a content, or has a field of which it is not clear that it
                is not to be set.
        """
        one, at = self._schema_of(value)
        self._memory.reset()
        made = bytearray(value[:at])
        for passed_over, name, encode in self._steps_of(one, tuple(changes)):
            try:
                _, behind = passed_over(value, at)
            except _DAMAGED:
                raise NotAvro("it is cut short, or its text is not UTF-8") from None
            if name is None:
                made += value[at:behind]
            elif encode is None:
                raise NotAvro(f"its schema does not permit to set field {name}")
            else:
                try:
                    encode(changes[name], made)
                except NOT_PERMITTED:
                    raise NotAvro(f"its schema does not permit the new content of field {name}") from None
            at = behind
        return bytes(made)

    def _steps_of(self, one: _Schema, names: tuple[str, ...]) -> tuple[_Step, ...]:
        found = self._steps.get((one.number, names))
        if found is None:
            found = self._steps[one.number, names] = tuple(self._step(one, field, names) for field in one.fields)
        return found

    def _step(self, one: _Schema, field: _Field, names: tuple[str, ...]) -> _Step:
        name, kind = self._meant(one, field, names), field.given.type
        if name is None or name not in field.names or kind.spark is None:
            return _Step(field.passed_over, name, None)
        return _Step(field.passed_over, name, encoder(kind, self.types_of(name)[0]))

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


def set_problems(values: Values, names: Collection[str]) -> list[str]:
    """Return why fields cannot be set, one line each."""
    problems = [
        f"fields.set.{name}: field {field} of `{schema}` may be the same one, by an alias or but for upper and lower case, and would be "
        f"copied as it is; set {field}, too"
        for name, schema, field in values.unclear(names)
    ]
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
