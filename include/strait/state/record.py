"""The base of every record in state topics, and the types of its fields. `strait.state.schema` has the records."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from strait.text import printable

Offset = Annotated[int, Field(ge=0)]
Reason = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,99}$")]

TOLD_CHARACTERS = 2_000
Told = Annotated[str, AfterValidator(lambda text: printable(text[:TOLD_CHARACTERS]))]
"""Human-readable text. Its writer may have put anything there, so it is truncated and made printable on input."""

_MOST: Mapping[str, int] = {"_ms": 253_402_300_799_999, "_seconds": 10**9, "": (1 << 63) - 1}
"""Maximum by the end of a field's name: times up to the year 9999, the last one of dates; durations; and 64 bits."""

_FAILING_FAST = ("tuple", "list", "dict", "set", "frozenset")


def _bounded(schema: Any, field: str = "") -> Any:
    """Return the schema with bounds for integers that set none, and with lists that end at their first error: a million of
    errors would take gigabytes."""
    if isinstance(schema, list | tuple):
        return type(schema)(_bounded(each, field) for each in schema)
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "int":
        most = next(most for ending, most in _MOST.items() if field.endswith(ending))
        return {"ge": -most - 1, "le": most} | schema
    if schema.get("type") == "model-fields":
        fields = {name: _bounded(each, name) for name, each in schema["fields"].items()}
        return schema | {"fields": fields}
    bounded = {
        key: each if key in ("metadata", "serialization") else _bounded(each, field) for key, each in schema.items()
    }
    return bounded | {"fail_fast": True} if schema.get("type") in _FAILING_FAST else bounded


class Record(BaseModel):
    """Base of every state record: frozen, with unknown keys rejected, and every number bounded by the possible range of
    its quantity, so that no later operation on it fails."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        bounded: CoreSchema = _bounded(handler(source))
        return bounded
