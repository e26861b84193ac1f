"""The base of every configuration block, frozen and without unknown keys, and validated string types."""

from typing import Annotated, Literal

import regex
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
TOPIC_NAME = r"^[A-Za-z0-9._-]{1,249}$"
AFFIX = r"^[A-Za-z0-9._-]{0,248}$"


def checked_regex(pattern: str) -> str:
    """Return the expression. Raises ValueError if it is not a regular expression."""
    try:
        regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"{pattern!r} is not a regular expression: {why}") from None
    return pattern


Name = Annotated[str, Field(pattern=NAME)]
TopicName = Annotated[str, Field(pattern=TOPIC_NAME)]
Affix = Annotated[str, Field(pattern=AFFIX)]
Regex = Annotated[str, AfterValidator(checked_regex)]


Copies = Literal["skip", "forward", "all"]
"""Policy for batches that another link wrote to the source: copy none; those that did not originate in the
destination; all."""


class Settings(BaseModel):
    """Base of every configuration block: frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, serialize_by_alias=True)
