"""When a link's watch wakes its DAG: immediately for a new finding, with growing pauses for one that persists. Pure.

A watch's findings are compared with those that a run last acted upon, which the runs store. So no finding is lost while
the triggerer is down or the DAG is paused, and a finding that a run could not resolve does not start a stream of runs.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

FIRST_PAUSE_SECONDS = 15.0
"""Time that a run has to resolve the finding that woke it; doubled each time, up to `LONGEST_PAUSE_SECONDS`."""

LONGEST_PAUSE_SECONDS = 600.0

ACTED = "acted"
"""Key of the asset's state under which runs store the facts that they acted upon."""

WORK = "work"
FACTS = frozenset({"settings", "source", "destination", WORK})
RETRY = "retry"


class Finding(NamedTuple):
    """One finding of a watch.

    Attributes:
        value: the part that is compared: a digest or a constant, never a secret.
        text: one human-readable line.
    """

    value: str
    text: str


class Acted(NamedTuple):
    """The facts that the runs of a link last acted upon, and the result. Stored as JSON."""

    seen: Mapping[str, str] = {}
    failed: str = ""
    """`retriable` or `final`; empty: the last run completed all its work."""

    @classmethod
    def of(cls, stored: Any) -> "Acted":
        """Return the value that `data` was called on; an empty one for any other stored data."""
        if not isinstance(stored, dict):
            return cls()
        seen = stored.get("seen")
        return cls(dict(seen) if isinstance(seen, dict) else {}, str(stored.get("failed", "")))

    def data(self) -> dict[str, Any]:
        return {"seen": dict(self.seen), "failed": self.failed}


class _Told(NamedTuple):
    times: int
    again_at: float


class Noticing:
    """State of one link's watch from start to end: the findings that woke the DAG, and when they do so again."""

    def __init__(self, acted: Acted) -> None:
        self.acted = acted
        self._told: dict[tuple[str, str], _Told] = {}

    @property
    def waiting(self) -> bool:
        """Whether a finding that woke the DAG persists: then a run may have acted upon it, so `Acted` is read again."""
        return bool(self._told)

    @property
    def waits_for_plan(self) -> bool:
        """Whether such a finding is one of `FACTS`, for which a run plans."""
        return any(name in FACTS for name, _ in self._told)

    def due(self, facts: Mapping[str, Finding], troubles: Mapping[str, Finding], now: float) -> list[str]:
        """Return the names of all present findings if at least one is due to wake the DAG now, else an empty list.

        Args:
            facts: new if their value differs from the one last acted upon. An empty value is the normal state: new only
                after another value, and never for `WORK`.
            troubles: problems, present for as long as they persist.
            now: seconds, always on the same clock.
        """
        new = {name: fact for name, fact in facts.items() if self._is_news(name, fact)}
        present = {(name, finding.value) for name, finding in {**new, **troubles}.items()}
        if self.acted.failed == "retriable":
            present.add((RETRY, ""))
        self._told = {key: told for key, told in self._told.items() if key in present}
        if (RETRY, "") in present:  # the failed run has just ended
            self._told.setdefault((RETRY, ""), _Told(1, now + FIRST_PAUSE_SECONDS))
        if not any(key not in self._told or self._told[key].again_at <= now for key in present):
            return []
        for key in present:
            times = self._told[key].times if key in self._told else 0
            pause = min(FIRST_PAUSE_SECONDS * 2**times, LONGEST_PAUSE_SECONDS)
            self._told[key] = _Told(times + 1, now + pause)
        return sorted(name for name, _ in present)

    def _is_news(self, name: str, fact: Finding) -> bool:
        return fact.value != self.acted.seen.get(name, "") and not (name == WORK and not fact.value)
