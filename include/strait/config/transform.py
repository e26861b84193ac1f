"""The `transform:` block of a rule: records that are filtered and changed on the way, by expressions of Spark SQL.

Only its form is checked here. The application's driver checks whether Spark accepts the expressions, and whether each is a
function of the record (`strait.spark.evaluating`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from strait.avro.values import UNFRAMED, Values, set_problems
from strait.config.client_properties import REFERENCE
from strait.config.settings import Settings

Expression = Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"\S")]
FieldName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


SchemaText = Annotated[str, Field(min_length=1, max_length=100_000)]


def _number(key: Any) -> Any:
    return int(key) if isinstance(key, str) and key.isdecimal() else key  # keys are strings in JSON


SchemaId = Annotated[int, BeforeValidator(_number), Field(ge=0, le=(1 << 32) - 1)]


_TEXT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_SECRET = re.compile(r"(?<![\w.`])`?secret\b")
WHY_NOT_IN_WHERE = (
    "may not use `secret`: two hosts with different contents of its file, as during a rotation, would keep different records, "
    "and the offset map could contradict itself; use it in `key`, `value` or `fields`"
)


def uses_secret(expression: str) -> bool:
    """Return whether an expression uses the column `secret`, as far as its text shows."""
    return _SECRET.search(re.sub(r"\s*\.\s*", ".", _TEXT.sub("''", expression))) is not None


def foreign_secrets(given: Iterable["Transform | None"], own: Iterable["Transform | None"]) -> Iterator[str]:
    """Yield a line for each file that the rules of a topics block from elsewhere refer to, and the rules of the links file do
    not: its author could have any file of the host written to a topic.

    Args:
        given: the transformation of each rule.
    """
    known = {reference for each in own if each is not None for reference in each.secrets.values()}
    for number, transform in enumerate(given):
        for name, reference in () if transform is None else transform.secrets.items():
            if reference not in known:
                yield f"rules.{number}.transform.secrets.{name}: the links file gives this link no such secret"


class Format(Settings):
    """How values are parsed."""

    value: Literal["json", "avro"] = Field(
        description="Format of values: `json`, each is one JSON object; `avro`, each is a record in Avro's binary form."
    )
    schema_: SchemaText = Field(
        alias="schema",
        description="Its fields. For `json` in Spark's notation, such as `id BIGINT, email STRING`; for `avro` the schema as JSON text. "
        "Expressions see them as `v.id`, `v.email`.",
    )
    schema_id: SchemaId | None = Field(
        None,
        description="ID of an Avro schema in a registry, if values start with a zero byte and the ID. Default: they start with "
        "the record itself.",
    )
    older: Mapping[SchemaId, SchemaText] = Field(
        default_factory=dict,
        description="ID -> text of other Avro schemas with which values were written; needs `schema_id`. Expressions see them as "
        "`schema` has them.",
    )

    @model_validator(mode="after")
    def _is_readable(self) -> "Format":
        if self.value == "json":
            if self.schema_id is not None or self.older:
                raise ValueError("schema_id and older: are for `value: avro`")
            return self
        if self.schema_id is None and self.older:
            raise ValueError(
                "older: needs `schema_id`; without IDs, nothing says with which schema a value was written"
            )
        if self.schema_id in self.older:
            raise ValueError(f"older: {self.schema_id} is the ID of `schema`")
        self.avro()
        return self

    def avro(self) -> Values:
        """Return the decoder of values in Avro. Raises ValueError if a schema is invalid."""
        return Values(self.schema_, UNFRAMED if self.schema_id is None else self.schema_id, self.older)


class Fields(Settings):
    """Changes of parsed values. In JSON, the new value is an object of the schema's fields; fields that the schema does not name
    are omitted, as are those that are null. In Avro, it is of the same schema."""

    set: Mapping[FieldName, Expression] = Field(
        default_factory=dict,
        description="Field of the schema -> expression of its new content. To add a field, add it to the schema of JSON.",
    )
    drop: tuple[FieldName, ...] = Field((), description="Fields to leave out, of JSON.")
    rename: Mapping[FieldName, FieldName] = Field(default_factory=dict, description="Field -> its new name, of JSON.")

    @model_validator(mode="after")
    def _changes_agree(self) -> "Fields":
        problems = [
            f"drop: {name!r} is in `{key}`, too"
            for name in self.drop
            for key, names in (("set", self.set), ("rename", self.rename))
            if name in names
        ]
        names = list(self.rename.values())
        problems += [f"rename: two fields become {name!r}" for name in sorted(set(names)) if names.count(name) > 1]
        problems += [
            f"rename: {name!r} becomes {new!r}, which `set` makes, too"
            for name, new in self.rename.items()
            if new in self.set and new not in self.rename
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return self


class Route(Settings):
    """One destination topic of a divided source topic."""

    when: Expression | None = Field(
        None,
        description="Condition for a record to take this route, in Spark SQL; a null is not true. Default: every record "
        "that no route before it takes; then it must be the last.",
    )
    to: str = Field(
        min_length=1,
        max_length=500,
        description="Name of the destination topic, to which `naming` does not apply. `\\1` or `\\g<name>` insert the text "
        "of a capturing group of the rule's `match`.",
    )


class Transform(Settings):
    """Filter and changes that apply to each record of a topic on the way."""

    format: Format | None = Field(None, description="How values are parsed. Default: not at all.")
    where: Expression | None = Field(
        None,
        description="Condition for a record to be copied, in Spark SQL, which may not use `secret`. Default: all are copied.",
    )
    key: Expression | None = Field(None, description="Expression of the new key, text or bytes. Default: unchanged.")
    value: Expression | None = Field(
        None, description="Expression of the new value, text or bytes. Default: unchanged."
    )
    fields: Fields | None = Field(None, description="Changes of the fields of the parsed value. Default: unchanged.")
    headers: Literal["keep", "drop"] = Field(
        "keep", description="Headers of copied records: `keep` them unchanged, or `drop` all."
    )
    malformed: Literal["stop", "quarantine"] = Field(
        "stop",
        description="Action for a value that cannot be parsed: `stop` halts the partition there, `quarantine` notes the "
        "record's offset in the quarantine, without its content, and continues.",
    )
    route: tuple[Route, ...] = Field(
        (),
        max_length=100,
        description="Routes that divide the topic among several destination topics: a record goes to the first route whose "
        "`when` is true, and nowhere if none is. Default: one destination topic, by `naming`.",
    )
    secrets: Mapping[FieldName, str] = Field(
        default_factory=dict,
        description="Name -> reference to a file with a secret, `${directory:DIR:NAME}`. Expressions see it as `secret.NAME`.",
    )

    @model_validator(mode="after")
    def _does_something(self) -> "Transform":
        problems = []
        divides = len(self.route) > 1 or any(route.when is not None for route in self.route)
        if self.headers == "keep" and not divides and (self.where, self.key, self.value, self.fields) == (None,) * 4:
            problems.append("it changes nothing: set `where`, `key`, `value`, `fields`, `headers` or `route`")
        problems += [
            f"route.{number + 1}: never gets a record, since route.{number} has no `when` and takes all that are left"
            for number, route in enumerate(self.route[:-1])
            if route.when is None
        ]
        names = [route.to for route in self.route]
        problems += [f"route: two routes go to {name!r}" for name in sorted(set(names)) if names.count(name) > 1]
        if self.fields is not None:
            if self.format is None:
                problems.append("fields: needs `format`, since the value must be parsed")
            if self.value is not None:
                problems.append("fields: makes the value, as `value` does; set one of them")
            if not (self.fields.set or self.fields.drop or self.fields.rename):
                problems.append("fields: set `set`, `drop` or `rename`")
        if self.malformed != "stop" and self.format is None:
            problems.append("malformed: needs `format`; values that are not parsed cannot be malformed")
        if self.where is not None and uses_secret(self.where):
            problems.append(f"where: {WHY_NOT_IN_WHERE}")
        problems += [
            f"route.{number}.when: {WHY_NOT_IN_WHERE}"
            for number, route in enumerate(self.route)
            if route.when is not None and uses_secret(route.when)
        ]
        made = {"key": self.key, "value": self.value} | {
            f"fields.set.{name}": text for name, text in (self.fields.set.items() if self.fields else ())
        }
        problems += [
            f"{key}: uses `secret`, and `secrets` names none"
            for key, text in made.items()
            if text is not None and not self.secrets and uses_secret(text)
        ]
        problems += self._problems_of_avro()
        problems += [
            f"secrets.{name}: must be a reference such as ${{directory:/run/secrets:salt}}, never the secret itself"
            for name, reference in self.secrets.items()
            if not REFERENCE.fullmatch(reference)
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _problems_of_avro(self) -> list[str]:
        if self.format is None or self.format.value != "avro" or self.fields is None:
            return []
        refused = [key for key, given in (("drop", self.fields.drop), ("rename", self.fields.rename)) if given]
        return [
            f"fields.{key}: the copy of values in Avro has their schema; set the field to null or a constant instead"
            for key in refused
        ] + set_problems(self.format.avro(), self.fields.set)
