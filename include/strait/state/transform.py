"""The transformation of a topic's records, as the plan has it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from strait.config.transform import Fields, Transform
from strait.state.record import Record

_DIGEST_CHARACTERS = 16


class TopicTransform(Record):
    """Filter and changes that apply to each record of a topic; see `strait.config.transform`.

    Expressions are Spark SQL over the record: ``key``, ``value``, ``topic``, ``partition``, ``offset``, ``timestamp``,
    the parsed value ``v``, and ``secret``.
    """

    json_schema: str = Field("", description="Fields of a value that is a JSON object; empty: values are not parsed.")
    where: str = Field("", description="Condition for a record to be copied; empty: all are.")
    key: str = Field("", description="Expression of the new key; empty: unchanged.")
    value: str = Field("", description="Expression of the new value; empty: unchanged, or by the three below.")
    set_fields: Mapping[str, str] = Field({}, description="Field of the parsed value -> expression of its new content.")
    drop_fields: tuple[str, ...] = ()
    rename_fields: Mapping[str, str] = Field({}, description="Field of the parsed value -> its new name.")
    headers: Literal["keep", "drop"] = "keep"
    malformed: Literal["stop", "quarantine"] = "stop"
    secrets: Mapping[str, str] = Field({}, description="Name -> reference to the secret's file.")

    @classmethod
    def of(cls, given: Transform | None) -> "TopicTransform | None":
        """Return the transformation that a rule configures; None if it configures none."""
        if given is None:
            return None
        fields = given.fields or Fields.model_construct()
        return cls(
            json_schema="" if given.format is None else given.format.schema_,
            where=given.where or "",
            key=given.key or "",
            value=given.value or "",
            set_fields=dict(fields.set),
            drop_fields=fields.drop,
            rename_fields=dict(fields.rename),
            headers=given.headers,
            malformed=given.malformed,
            secrets=dict(given.secrets),
        )

    @property
    def changes_fields(self) -> bool:
        """Whether the new value is made of the parsed one's fields."""
        return bool(self.set_fields or self.drop_fields or self.rename_fields)

    @property
    def keeps_value(self) -> bool:
        return not self.value and not self.changes_fields

    @property
    def digest(self) -> str:
        """A digest of all settings that determine which records are copied, and their content. The action for malformed
        records is not part of it: the records before and after one are the same."""
        meant = self.model_dump(exclude={"malformed"})
        text = json.dumps(meant, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]

    def number(self, topic: str) -> int:
        """Return the number that identifies topic and transformation in rows for Spark: 63 bits."""
        return int.from_bytes(hashlib.sha256(f"{self.digest}:{topic}".encode()).digest()[:8], "big") >> 1

    def __str__(self) -> str:
        parts = [f"where {self.where}" if self.where else "", f"key {self.key}" if self.key else ""]
        parts += [f"value {self.value}"] if self.value else []
        parts += [f"{name} {what}" for name, what in self.set_fields.items()]
        parts += [f"without {', '.join(self.drop_fields)}"] if self.drop_fields else []
        parts += [f"{name} as {other}" for name, other in self.rename_fields.items()]
        parts += ["without headers"] if self.headers == "drop" else []
        return f"{self.digest} ({'; '.join(filter(None, parts))})"
