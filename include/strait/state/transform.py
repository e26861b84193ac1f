"""The transformation of a topic's records, as the plan has it."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import not_
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from strait.avro.schema import parsed, stripped
from strait.avro.values import UNFRAMED, Values
from strait.config.links import Topics
from strait.config.routes import Routed, route_of
from strait.config.rules import rule_of
from strait.config.transform import Fields, Format, Transform
from strait.state.record import Record

_DIGEST_CHARACTERS = 16
_WORD = re.compile(r"\w+")
_DECIMAL = re.compile(r"\b(decimal|dec|numeric)\b", re.IGNORECASE)
_WHOLE = re.compile(r"\bv\b(?!`?\s*\.\s*`?\w)")
"""An expression of the whole value rather than of its fields, or of anything that may be one."""


def _values(schema_text: str, schema_id: int, older: Iterable[tuple[str, str]]) -> Values:
    return Values(schema_text, schema_id, {int(number): text for number, text in older})


@lru_cache(maxsize=2048)
def _require_readable(schema_text: str, schema_id: int, older: tuple[tuple[str, str], ...]) -> None:
    """Raise ValueError unless a decoder can be made: of the same schemas once, since each reader of a plan asks for all topics,
    and one takes milliseconds."""
    _values(schema_text, schema_id, older)


class AvroFormat(Record):
    """Schemas of values in Avro: texts without parts that have no meaning for values."""

    schema_text: str
    schema_id: int = Field(UNFRAMED, ge=UNFRAMED, description="-1: values do not begin with a schema's ID.")
    older: Mapping[str, str] = Field({}, description="ID -> schema of other values.")

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        _require_readable(self.schema_text, self.schema_id, tuple(self.older.items()))
        return self

    @classmethod
    def of(cls, given: Format | None) -> "AvroFormat | None":
        if given is None or given.value != "avro":
            return None
        older = {str(number): stripped(text) for number, text in sorted(given.older.items())}
        number = UNFRAMED if given.schema_id is None else given.schema_id
        return cls(schema_text=stripped(given.schema_), schema_id=number, older=older)

    def values(self) -> Values:
        """Return the decoder of the values."""
        return _values(self.schema_text, self.schema_id, self.older.items())

    def meaning(self, expressions: Iterable[str]) -> Mapping[str, Any]:
        """Return all that determines the results of expressions.

        With IDs, a value is always decoded with the schema of its ID, and a partition stops at an ID that has none. So another schema
        changes no result unless it changes the type of a field that expressions name.
        """
        if self.schema_id == UNFRAMED:
            return {"schema": self.schema_text}
        fields = parsed(self.schema_text).meaning
        named = {name for text in expressions for name in _WORD.findall(text)}
        if any(_WHOLE.search(text) for text in expressions):
            named |= set(fields)
        return {"fields": {name: fields[name] for name in sorted(named & fields.keys())}}


def _by_name(secrets: Mapping[str, str]) -> Mapping[str, str]:
    # Slots and the query, which may be of an older plan, match contents by place; the digest is the same in any order.
    return dict(sorted(secrets.items()))


class TopicTransform(Record):
    """Filter and changes that apply to each record of a topic; see `strait.config.transform`.

    Expressions are Spark SQL over the record: ``key``, ``value``, ``topic``, ``partition``, ``offset``, ``timestamp``,
    the parsed value ``v``, and ``secret``.
    """

    json_schema: str = Field("", description="Fields of a value that is a JSON object; empty: values are not parsed.")
    avro: AvroFormat | None = Field(
        None,
        description="Values are in Avro. Written only if so: older versions cannot read it.",
        exclude_if=lambda avro: avro is None,
    )
    where: str = Field("", description="Condition for a record to be copied; empty: all are.")
    key: str = Field("", description="Expression of the new key; empty: unchanged.")
    value: str = Field("", description="Expression of the new value; empty: unchanged, or by the three below.")
    set_fields: Mapping[str, str] = Field({}, description="Field of the parsed value -> expression of its new content.")
    drop_fields: tuple[str, ...] = ()
    rename_fields: Mapping[str, str] = Field({}, description="Field of the parsed value -> its new name.")
    headers: Literal["keep", "drop"] = "keep"
    malformed: Literal["stop", "quarantine", "omit"] = Field(
        "stop",
        description="`omit`: the topic's first route puts a record that cannot be parsed into the quarantine, and this one leaves it out.",
    )
    secrets: Annotated[Mapping[str, str], AfterValidator(_by_name)] = Field(
        {},
        description="Name -> reference to the secret's file, by name: rows for Spark have their contents in this order.",
    )
    when: str = Field(
        "",
        description="Condition of a route, besides `where`; empty: none. Written only if there is one: older versions cannot "
        "read it.",
        exclude_if=not_,
    )
    unless: tuple[str, ...] = Field(
        (),
        description="Conditions of the routes before it, of which none may be true. Written only if there are any.",
        exclude_if=not_,
    )

    @classmethod
    def of_topic(cls, topics: Topics, name: str) -> "TopicTransform | None":
        """Return the transformation of a source topic or of a route by its rule; None if the rule configures none."""
        return cls.of(rule_of(topics, name).transform, route_of(topics, name))

    @classmethod
    def of(cls, given: Transform | None, routed: Routed | None = None) -> "TopicTransform | None":
        """Return the transformation that a rule configures, of one of its routes; None if it configures none."""
        if given is None:
            return None
        fields = given.fields or Fields.model_construct()
        before = () if routed is None else given.route[: routed.number]
        omits = before and given.malformed == "quarantine"
        return cls(
            json_schema=given.format.schema_ if given.format is not None and given.format.value == "json" else "",
            avro=AvroFormat.of(given.format),
            where=given.where or "",
            key=given.key or "",
            value=given.value or "",
            set_fields=dict(fields.set),
            drop_fields=fields.drop,
            rename_fields=dict(fields.rename),
            headers=given.headers,
            malformed="omit" if omits else given.malformed,
            secrets=dict(given.secrets),
            when="" if routed is None else routed.route.when or "",
            unless=tuple(route.when for route in before if route.when is not None),
        )

    @property
    def changes_fields(self) -> bool:
        """Whether the new value is made of the parsed one's fields."""
        return bool(self.set_fields or self.drop_fields or self.rename_fields)

    @property
    def has_decimals(self) -> bool:
        """Whether a field of a value in JSON may be a decimal number."""
        return _DECIMAL.search(self.json_schema) is not None

    @property
    def keeps_value(self) -> bool:
        return not self.value and not self.changes_fields

    @property
    def _expressions(self) -> list[str]:
        return [self.where, self.when, *self.unless, self.key, self.value, *self.set_fields.values()]

    @property
    def reads(self) -> frozenset[str]:
        """Which of key and value the expressions may use: those whose name is anywhere in their text. A star may mean
        all columns."""
        words = {word for text in self._expressions for word in re.findall(r"\w+|\*", text)}
        parsed = {"value"} if self.json_schema or self.avro is not None else set()
        return frozenset(part for part in ("key", "value") if part in words or "*" in words or part in parsed)

    @property
    def digest(self) -> str:
        """A digest of all settings that determine which records are copied, and their content. The action for malformed
        records is not part of it: the records before and after one are the same."""
        meant = self.model_dump(exclude={"malformed", "avro"})
        if self.avro is not None:
            meant["avro"] = self.avro.meaning(self._expressions)
        return _digest(meant)

    @property
    def rule_digest(self) -> str:
        """A digest of all settings but the action for malformed records: also of schemas of Avro that change no result, since a
        false one would hide the fields that are to be masked."""
        return _digest(self.model_dump(exclude={"malformed"}))

    def number(self, topic: str) -> int:
        """Return the number that identifies topic and transformation in rows for Spark: 63 bits. Another schema of Avro is
        another one, also if it changes no result: the slot makes values as the query's columns have them."""
        return int.from_bytes(hashlib.sha256(f"{self.rule_digest}:{topic}".encode()).digest()[:8], "big") >> 1

    def __str__(self) -> str:
        parts = [f"where {self.where}" if self.where else "", f"if {self.when}" if self.when else ""]
        parts += [f"unless {' or '.join(self.unless)}"] if self.unless else []
        parts += [f"key {self.key}"] if self.key else []
        parts += [f"value {self.value}"] if self.value else []
        parts += [f"{name} {what}" for name, what in self.set_fields.items()]
        parts += [f"without {', '.join(self.drop_fields)}"] if self.drop_fields else []
        parts += [f"{name} as {other}" for name, other in self.rename_fields.items()]
        parts += ["without headers"] if self.headers == "drop" else []
        return f"{self.digest} ({'; '.join(filter(None, parts))})"


def _digest(meant: Mapping[str, Any]) -> str:
    text = json.dumps(meant, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
