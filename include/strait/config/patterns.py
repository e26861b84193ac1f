"""Which regular expression of a list is the first that matches a whole name, in bounded time.

A list is tried as one alternation, so 50,000 names against 50 expressions take a fraction of a second. An expression
that would try for ever (`(a|aa)+b`) is an error that names it: `regex` looks at the CPU's clock while it matches, and
this module adds up what a whole list takes. Results are remembered: every decision of a cycle asks for the same names.
"""

import threading
import time
from collections.abc import Callable
from itertools import groupby
from typing import TypeVar

import regex

from strait.config.settings import Settings
from strait.errors import ConfigError

Block = TypeVar("Block", bound=Settings)
Made = TypeVar("Made")

_NAME_SECONDS = 0.25  # of CPU, for one name against the whole list; thousands of times what a sound list takes
_LIST_SECONDS = 5.0  # for all names that were tried so far, or …
_MEAN_SECONDS = 0.0002  # … this for each of them, where they are many
_REMEMBERED_MOST = 500_000  # names for each list
_BLOCKS_MOST = 16

# What means another thing inside a larger expression: numbers and names of groups, flags, recursion, verbs.
_NOT_PLAIN = regex.compile(r"\(\?(?![ims]*:|=|!|<=|<!)|\(\*|\\[0-9gkGKL]")
_FLAGS_AHEAD = regex.compile(r"\(\?([ims]+)\)")


class FirstMatch:
    """A list of expressions. ``where`` is its place in the configuration, with `{}` for the number of the
    expression; ``of``: what has the names; ``any_text``: these may hold line breaks, which `.` matches too."""

    def __init__(self, where: str, patterns: tuple[str, ...], *, of: str = "topic", any_text: bool = False) -> None:
        self._where = where
        self._of = of
        self._patterns = patterns
        self._steps = _steps(patterns, regex.DOTALL if any_text else 0)
        self._found: dict[str, int | None] = {}
        self._names = 0
        self._spent_seconds = 0.0

    def __call__(self, name: str) -> int | None:
        """The place of the first expression that matches the whole name. Raises ConfigError where that takes too
        long."""
        if name in self._found:
            return self._found[name]
        began = time.thread_time()
        try:
            found = self._search(name)
        except TimeoutError:
            raise self._too_slow(name) from None
        self._names += 1
        self._spent_seconds += time.thread_time() - began
        if self._spent_seconds > max(_LIST_SECONDS, self._names * _MEAN_SECONDS):
            raise self._too_slow(name)
        if len(self._found) >= _REMEMBERED_MOST:
            self._found.clear()
        self._found[name] = found
        return found

    def _search(self, name: str) -> int | None:
        for number, expression in self._steps:
            match = expression.fullmatch(name, timeout=_NAME_SECONDS)
            if match is not None:
                return number if number is not None else int(str(match.lastgroup)[1:])
        return None

    def _too_slow(self, name: str) -> ConfigError:
        """Names the slowest expression of the list on this name."""
        number = max(range(len(self._patterns)), key=lambda number: _seconds(self._patterns[number], name))
        return ConfigError(
            self._where.format(number),
            [f"the regular expression {self._patterns[number]!r} takes too long, for example on {self._of} {name}"],
            hint="rewrite it without nested repetitions",
        )


def once_for_each(make: Callable[[Block], Made]) -> Callable[[Block], Made]:
    """Remember what is made of the last settings blocks. By identity: they are frozen, and hashing large ones costs
    more."""
    lock = threading.Lock()
    kept: dict[int, tuple[Block, Made]] = {}

    def of(block: Block) -> Made:
        with lock:
            entry = kept.get(id(block))
            if entry is None:
                if len(kept) >= _BLOCKS_MOST:
                    kept.pop(next(iter(kept)))
                entry = kept[id(block)] = block, make(block)  # the block is kept too, so that its id stays its own
            return entry[1]

    return of


def expanded(pattern: str, replacement: str, name: str) -> str:
    """What a replacement makes of a name that the expression matches whole."""
    match = regex.fullmatch(pattern, name)
    assert match is not None
    return str(match.expand(replacement))


def _steps(patterns: tuple[str, ...], flags: int) -> "tuple[tuple[int | None, regex.Pattern[str]], ...]":
    """In order: plain neighbours as one alternation, whose named groups are their places; others with their place."""
    steps: list[tuple[int | None, regex.Pattern[str]]] = []
    scoped = [_with_flags_scoped(pattern) for pattern in patterns]
    for plain, group in groupby(enumerate(scoped), lambda item: _NOT_PLAIN.search(item[1]) is None):
        members = list(group)
        if plain:
            alternation = "|".join(f"(?P<_{number}>{pattern})" for number, pattern in members)
            steps.append((None, regex.compile(alternation, flags)))
        else:
            steps += [(number, regex.compile(pattern, flags)) for number, pattern in members]
    return tuple(steps)


def _with_flags_scoped(pattern: str) -> str:
    """`(?i)x` as `(?i:x)`, which means the same inside a larger expression."""
    flags = _FLAGS_AHEAD.match(pattern)
    return pattern if flags is None else f"(?{flags[1]}:{pattern[flags.end() :]})"


def _seconds(pattern: str, name: str) -> float:
    began = time.thread_time()
    try:
        regex.compile(pattern).fullmatch(name, timeout=_NAME_SECONDS)
    except TimeoutError:
        return float("inf")
    return time.thread_time() - began
