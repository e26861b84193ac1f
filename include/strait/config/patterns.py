"""Lookup of the first regular expression of a list that matches a whole name, in bounded time.

A list is tried as one alternation, so 50,000 names against 50 expressions take a fraction of a second. An expression
with exponential backtracking (`(a|aa)+b`) is an error that names it: `regex` checks the CPU time while it matches, and
this module adds up the time of a whole list. Results are cached, since each step of a cycle needs the same names.
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

_NAME_SECONDS = 0.25  # of CPU, for one name against the whole list; thousands of times the usual
_LIST_SECONDS = 5.0  # for all names matched so far, or …
_MEAN_SECONDS = 0.0002  # … this for each of them, if that is more
_REMEMBERED_MOST = 500_000  # names for each list
_BLOCKS_MOST = 16

# Constructs that change their meaning inside a larger expression: group numbers and names, flags, recursion, verbs.
_NOT_PLAIN = regex.compile(r"\(\?(?![ims]*:|=|!|<=|<!)|\(\*|\\[0-9gkGKL]")
_FLAGS_AHEAD = regex.compile(r"\(\?([ims]+)\)")


class FirstMatch:
    """A list of expressions. ``where`` is its place in the configuration, with `{}` for the number of the expression;
    ``of``: the kind of object that has the names; ``any_text``: names may have line breaks, which `.` then matches."""

    def __init__(self, where: str, patterns: tuple[str, ...], *, of: str = "topic", any_text: bool = False) -> None:
        self._where = where
        self._of = of
        self._patterns = patterns
        self._steps = _steps(patterns, regex.DOTALL if any_text else 0)
        self._found: dict[str, int | None] = {}
        self._names = 0
        self._spent_seconds = 0.0

    def __call__(self, name: str) -> int | None:
        """Return the index of the first expression that matches the whole name. Raises ConfigError if that takes too
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
        """Return the error, which names the slowest expression of the list for this name."""
        number = max(range(len(self._patterns)), key=lambda number: _seconds(self._patterns[number], name))
        return ConfigError(
            self._where.format(number),
            [f"the regular expression {self._patterns[number]!r} takes too long, for example on {self._of} {name}"],
            hint="rewrite it without nested repetitions",
        )


def once_for_each(make: Callable[[Block], Made]) -> Callable[[Block], Made]:
    """Cache results for the last 16 settings blocks, by identity: they are frozen, and hashing large ones is slow."""
    lock = threading.Lock()
    kept: dict[int, tuple[Block, Made]] = {}

    def of(block: Block) -> Made:
        with lock:
            entry = kept.get(id(block))
            if entry is None:
                if len(kept) >= _BLOCKS_MOST:
                    kept.pop(next(iter(kept)))
                entry = kept[id(block)] = block, make(block)  # a reference to the block, so that its id is not reused
            return entry[1]

    return of


def expanded(pattern: str, replacement: str, name: str) -> str:
    """Return the replacement for a name that the expression matches as a whole."""
    match = regex.fullmatch(pattern, name)
    assert match is not None
    return str(match.expand(replacement))


def _steps(patterns: tuple[str, ...], flags: int) -> "tuple[tuple[int | None, regex.Pattern[str]], ...]":
    """Return, in order, adjacent plain expressions as one alternation with a group named after each index; others with
    their index."""
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
    """Return `(?i)x` as `(?i:x)`, which keeps its meaning inside a larger expression."""
    flags = _FLAGS_AHEAD.match(pattern)
    return pattern if flags is None else f"(?{flags[1]}:{pattern[flags.end() :]})"


def _seconds(pattern: str, name: str) -> float:
    began = time.thread_time()
    try:
        regex.compile(pattern).fullmatch(name, timeout=_NAME_SECONDS)
    except TimeoutError:
        return float("inf")
    return time.thread_time() - began
