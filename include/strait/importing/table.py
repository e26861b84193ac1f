"""What becomes of each property of another tool: one row for each, which translates it and documents it. Pure."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from strait.importing.draft import Flow, Given

Take = Callable[[Flow, Given], None]


@dataclass(frozen=True, slots=True)
class Row:
    """Attributes:
    names: properties; `*` stands for the rest of a name.
    ours: what they become, in Markdown.
    take: writes it into the draft, or says why not. ``Given.name`` is then the part that a `*` stands for, if there is
        one.
    """

    names: tuple[str, ...]
    ours: str
    take: Take


def row(*names: str, ours: str, take: Take) -> Row:
    """Properties that become something."""
    return Row(names, ours, take)


def no(*names: str, why: str) -> Row:
    """Properties that have no counterpart."""
    return Row(names, f"– {why}", lambda flow, given: flow.leave(given, why))


def needless(*names: str, why: str) -> Row:
    """Properties whose effect is there anyway, so that nothing is lost with them."""
    return Row(names, f"needless: {why}", lambda flow, given: flow.leave(given, f"needless: {why}"))


def translate(flow: Flow, rows: Sequence[Row], given: Iterable[Given]) -> None:
    """Let each property be taken by the first row that names it."""
    for each in given:
        for candidate, rest in ((each_row, _rest(each_row, each.name)) for each_row in rows):
            if rest is not None:
                candidate.take(flow, Given(rest or each.name, each.key, each.value))
                break
        else:
            flow.leave(each, "unknown here")


def _rest(candidate: Row, name: str) -> str | None:
    """What a `*` stands for, "" where the row names the property itself, None where it does not."""
    for pattern in candidate.names:
        head, star, tail = pattern.partition("*")
        if not star and pattern == name:
            return ""
        if star and (found := re.fullmatch(f"{re.escape(head)}(.+){re.escape(tail)}", name)):
            return found[1]
    return None
