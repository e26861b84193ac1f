"""Decides when a link's watch wakes its DAG: at once for what is new, with growing pauses for what persists. Pure.

What a watch saw is compared with what a run last acted upon, which the runs write down. So nothing is lost while the
triggerer is down or the DAG is paused, and what a run could not mend starts no stream of runs.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

FIRST_PAUSE_SECONDS = 15.0
"""So long a run has to change what woke it."""

LONGEST_PAUSE_SECONDS = 600.0

ACTED = "acted"
"""The key of the asset's state under which runs write what they acted upon."""

WORK = "work"
FACTS = frozenset({"settings", "source", "destination", WORK})
RETRY = "retry"


class Finding(NamedTuple):
    """One thing that a watch saw.

    Attributes:
        value: what of it is compared: a digest, never a secret.
        text: one line for people.
    """

    value: str
    text: str


class Acted(NamedTuple):
    """What the runs of a link last acted upon, and how that ended. It is stored as JSON."""

    seen: Mapping[str, str] = {}
    failed: str = ""
    """`retriable` or `final`; empty: the last run did all that it wanted."""

    @classmethod
    def of(cls, stored: Any) -> "Acted":
        """What `data` made; nothing for anything else."""
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
    """One link's watch from its start to its end."""

    def __init__(self, acted: Acted) -> None:
        self.acted = acted
        self._told: dict[tuple[str, str], _Told] = {}

    @property
    def waiting(self) -> bool:
        """Whether something woke the DAG and is still so: then what the runs act upon is worth reading again."""
        return bool(self._told)

    @property
    def waits_for_plan(self) -> bool:
        """The same of what a run plans for."""
        return any(name in FACTS for name, _ in self._told)

    def due(self, facts: Mapping[str, Finding], troubles: Mapping[str, Finding], now: float) -> list[str]:
        """The names of what is to wake the DAG now; none: it stays asleep.

        Args:
            facts: what was acted upon once and is news when it has another value; an empty one is what nobody expects
                otherwise.
            troubles: what is wrong for as long as it is there.
            now: seconds, on one clock.
        """
        new = {name: fact for name, fact in facts.items() if self._is_news(name, fact)}
        present = {(name, finding.value) for name, finding in {**new, **troubles}.items()}
        if self.acted.failed == "retriable":
            present.add((RETRY, ""))
        self._told = {key: told for key, told in self._told.items() if key in present}
        if (RETRY, "") in present:  # the run that failed has just been
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
