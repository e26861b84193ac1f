"""Translation of each property of another tool: one row for each, which translates and documents it. Pure."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from strait.importing.draft import Flow, Given, Weight

Take = Callable[[Flow, Given], None]


@dataclass(frozen=True, slots=True)
class Row:
    """Attributes:
    names: properties; `*` matches the rest of a name.
    ours: the Strait counterpart, in Markdown.
    take: writes it to the draft, or records why not. ``Given.name``: the part that a `*` matches, if there is one.
    """

    names: tuple[str, ...]
    ours: str
    take: Take


def row(*names: str, ours: str, take: Take) -> Row:
    """Return a row for properties that have a counterpart."""
    return Row(names, ours, take)


def no(*names: str, why: str, weight: Weight = Weight.DIFFERS) -> Row:
    """Return a row for properties that have no counterpart."""
    return Row(names, f"– {why}", lambda flow, given: flow.leave(given, why, weight))


def needless(*names: str, why: str) -> Row:
    """Return a row for properties whose effect Strait has anyway, so that nothing is lost without them."""
    return Row(names, f"needless: {why}", lambda flow, given: flow.leave(given, f"needless: {why}", Weight.NEEDLESS))


def translate(flow: Flow, rows: Sequence[Row], given: Iterable[Given]) -> None:
    """Translate each property by the first row that names it."""
    for each in given:
        for candidate, rest in ((each_row, _rest(each_row, each.name)) for each_row in rows):
            if rest is not None:
                candidate.take(flow, Given(rest or each.name, each.key, each.value))
                break
        else:
            flow.leave(each, "unknown here")


def _rest(candidate: Row, name: str) -> str | None:
    """Return the part that a `*` matches, "" if the row names the property itself, None if it does not."""
    for pattern in candidate.names:
        head, star, tail = pattern.partition("*")
        if not star and pattern == name:
            return ""
        if star and (found := re.fullmatch(f"{re.escape(head)}(.+){re.escape(tail)}", name)):
            return found[1]
    return None
