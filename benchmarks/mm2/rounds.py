"""Several rounds of the same as one result."""

from collections.abc import Sequence
from dataclasses import fields
from statistics import median
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Figures = TypeVar("Figures", bound=DataclassInstance)


def middle(rounds: "Sequence[Figures]") -> "Figures":
    """Of each figure the median. ``rounds``: one dataclass of numbers for each."""
    kind = type(rounds[0])
    return kind(**{each.name: median(getattr(found, each.name) for found in rounds) for each in fields(kind)})
