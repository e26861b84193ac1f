"""One thing that a proposal does, or leaves as it is. Pure."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

_SIGNS = {
    "+": ("creates", "allows", "copies"),
    "~": ("grows", "alters", "moves", "changes", "budget", "sets", "reads", "writes"),
    "-": ("deletes", "withdraws", "leaves"),
    "=": ("waits", "left out"),
}
_SIGN_OF = {verb: sign for sign, verbs in _SIGNS.items() for verb in verbs}


class Effect(NamedTuple):
    """``creates orders: 3 partitions``."""

    verb: str
    subject: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.verb:<9} {self.subject}" + (f": {self.detail}" if self.detail else "")

    @property
    def sign(self) -> str:
        """``+`` for what comes, ``~`` for what changes, ``-`` for what goes, ``=`` for what stays as it is."""
        return _SIGN_OF[self.verb]

    @property
    def line(self) -> str:
        """With its sign in front, for people."""
        return f"{self.sign} {self}"


def totals(effects: Iterable[Effect]) -> str:
    """How many of each sign: ``Plan: 2 to add, 1 to change, 0 to remove.``"""
    counted = Counter(effect.sign for effect in effects)
    if not counted.keys() & set("+~-"):
        return "No changes."
    return f"Plan: {counted['+']} to add, {counted['~']} to change, {counted['-']} to remove."
