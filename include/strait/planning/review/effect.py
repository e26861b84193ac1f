"""One effect of a proposal: a change, or something that it leaves unchanged. Pure."""

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
    """An effect, such as ``creates orders: 3 partitions``."""

    verb: str
    subject: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.verb:<9} {self.subject}" + (f": {self.detail}" if self.detail else "")

    @property
    def sign(self) -> str:
        """``+`` for additions, ``~`` for changes, ``-`` for removals, ``=`` for no change."""
        return _SIGN_OF[self.verb]

    @property
    def line(self) -> str:
        """Human-readable text with the sign in front."""
        return f"{self.sign} {self}"


def removals_first(effects: Iterable[Effect]) -> list[Effect]:
    """Return the effects in the order in which an operator reads them: long lists are cut at their end."""
    return sorted(effects, key=lambda effect: ("-~+=".index(effect.sign), effect))


def totals(effects: Iterable[Effect]) -> str:
    """Return the number of effects by sign: ``Plan: 2 to add, 1 to change, 0 to remove.``"""
    counted = Counter(effect.sign for effect in effects)
    if not counted.keys() & set("+~-"):
        return "No changes."
    return f"Plan: {counted['+']} to add, {counted['~']} to change, {counted['-']} to remove."
