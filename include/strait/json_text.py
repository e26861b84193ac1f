"""JSON that somebody else wrote."""

from typing import Any

from pydantic_core import from_json


def value_of(text: str | bytes) -> Any:
    """What it holds. Raises ValueError, whatever is wrong: also where it is nested too deeply, or a number is too long,
    on which `json.loads` fails in other ways."""
    return from_json(text, allow_inf_nan=False)
