"""What every configuration block is built from: a frozen base that refuses keys it does not know, and checked texts."""

from typing import Annotated, Literal

import regex
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
TOPIC_NAME = r"^[A-Za-z0-9._-]{1,249}$"
AFFIX = r"^[A-Za-z0-9._-]{0,248}$"


def checked_regex(pattern: str) -> str:
    """The expression. Raises ValueError where it is none."""
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
"""Which batches of the source are copied that a link wrote there: none; those that did not come from the destination;
all."""


class Settings(BaseModel):
    """Base of every configuration block: frozen, and a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, serialize_by_alias=True)


def check_replacement(pattern: str, replacement: str) -> None:
    r"""Raises ValueError where a replacement is not one for this expression, such as `\2` where it has one group."""
    try:
        regex.sub(f"(?:{pattern})|", replacement, "")  # the empty alternative always matches, so the template is read
    except (regex.error, IndexError) as error:
        raise ValueError(f"{replacement!r} does not fit {pattern!r}: {error}") from None
