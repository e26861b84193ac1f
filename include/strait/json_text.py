"""Parsing of JSON text that Strait did not write itself."""

from typing import Any

from pydantic_core import from_json


def value_of(text: str | bytes) -> Any:
    """Return the parsed value.

    Raises:
        ValueError: the text is invalid in any way, including nesting that is too deep and numbers that are too long,
            for which `json.loads` raises other errors.
    """
    return from_json(text, allow_inf_nan=False)
