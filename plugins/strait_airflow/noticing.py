"""When a link's watch wakes its DAG: immediately for a new finding, with growing pauses for one that persists. Pure.

A watch's findings are compared with those that runs last acted upon, which the runs store. So no finding is lost while
the triggerer is down or the DAG is paused, and a finding that a run could not resolve does not start a stream of runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from strait_airflow.stored import object_of, texts_of, time_of, times_of

FIRST_PAUSE_SECONDS = 15.0
"""Pause after a run that did not resolve the finding that woke it; doubled each time, up to `LONGEST_PAUSE_SECONDS`."""

RETRY_PAUSE_SECONDS = 60.0
"""The first such pause after a run that failed."""

LONGEST_PAUSE_SECONDS = 600.0

ATTENTION_PAUSE_SECONDS = 300.0
"""Minimum time between two runs that are woken because an operator is needed for something else than before."""

ACTING_MOST_MS = 1_200_000
"""A run takes at most this long: the time limits of its tasks together. It is not waited for any longer."""

ACTED = "acted"
"""Key of the asset's state under which `monitor` stores the facts that it acted upon."""

JUDGED = "judged"
"""Key of the asset's state under which `verdict` stores the needs of the link, and which runs have ended."""

WORK = "work"
HOURS = "hours"
ATTENTION = "attention"
CLUSTERS = ("source", "destination")
AWAY = "away"
"""Value of the findings about a cluster that does not respond."""

FACTS = frozenset({"settings", *CLUSTERS, WORK})
"""Facts for which a run plans."""

RETRY = "retry"


class Finding(NamedTuple):
    """One finding of a watch.

    Attributes:
        value: the part that is compared: a digest or a constant, never a secret.
        text: one human-readable line.
        application: of a problem: the application that has it.
    """

    value: str
    text: str
    application: str = ""


class Acting(NamedTuple):
    """A run that is acting. ``seen``: the facts that it acts upon."""

    began_ms: int
    seen: Mapping[str, str]


class Acted(NamedTuple):
    """The facts that the runs of a link last acted upon, and the result. Stored as JSON.

    Attributes:
        failed: `retriable` or `final`; empty: the last run completed its planning.
        held: application that exited too often -> until when it is not submitted again, in ms since 1970.
        acting: run -> the start of its work; it ends with an entry in `Judged`.
        seen_at_ms: when the run was requested that ``seen`` is from: runs may overtake one another.
        planned_at_ms: when the last complete planning began.
    """

    seen: Mapping[str, str] = {}
    failed: str = ""
    held: Mapping[str, int] = {}
    acting: Mapping[str, Acting] = {}
    planned_at_ms: int = 0
    seen_at_ms: int = 0

    @classmethod
    def of(cls, stored: Any) -> "Acted":
        """Return the value that `data` was called on; an empty one for any other stored data."""
        if not isinstance(stored, dict):
            return cls()
        acting = {
            run: Acting(time_of(one.get("began_ms")), texts_of(one.get("seen")))
            for run, one in object_of(stored.get("acting")).items()
            if isinstance(one, dict)
        }
        held, times = (
            times_of(stored.get("held")),
            [time_of(stored.get(key)) for key in ("planned_at_ms", "seen_at_ms")],
        )
        return cls(texts_of(stored.get("seen")), str(stored.get("failed", "")), held, acting, *times)

    def data(self) -> dict[str, Any]:
        acting = {run: {"began_ms": one.began_ms, "seen": dict(one.seen)} for run, one in self.acting.items()}
        return self._asdict() | {"seen": dict(self.seen), "held": dict(self.held), "acting": acting}

    def with_facts(self, at_ms: int, found: Sequence[Mapping[str, str]]) -> "Acted":
        """Return the state after a run that was requested at ``at_ms`` acted upon these facts, oldest first. A run that was
        requested later has replaced them."""
        if at_ms < self.seen_at_ms:
            return self
        seen = dict(self.seen)
        for facts in found:
            seen |= facts
        return self._replace(seen=seen, seen_at_ms=at_ms)

    def beginning(self, run: str, seen: Mapping[str, str], now_ms: int) -> "Acted":
        """Return the state while a run acts upon these facts. Runs that never ended are dropped."""
        recent = {other: one for other, one in self.acting.items() if now_ms - one.began_ms < ACTING_MOST_MS}
        return self._replace(acting=recent | {run: Acting(now_ms, seen)})


class Judged(NamedTuple):
    """The verdict of the last run of a link. Stored as JSON.

    Attributes:
        known: identity of an incident -> since when it is known, in ms since 1970.
        attention: digest of the needs among these, which the watch compares with its own.
        failed: an application could not be submitted.
        ended: run -> when it ended, in ms since 1970; only recent ones.
        red: identity of an incident -> when a run was last red for it, in ms since 1970.
        planning: the incidents that only a run that plans can find to be over.
    """

    known: Mapping[str, int] = {}
    attention: str = ""
    failed: bool = False
    ended: Mapping[str, int] = {}
    red: Mapping[str, int] = {}
    planning: Sequence[str] = ()

    @classmethod
    def of(cls, stored: Any) -> "Judged":
        """Return the value that `data` was called on; an empty one for any other stored data."""
        if not isinstance(stored, dict):
            return cls()
        known, ended, red = (times_of(stored.get(key)) for key in ("known", "ended", "red"))
        planning = stored.get("planning")
        unplanned = tuple(map(str, planning)) if isinstance(planning, list) else ()
        return cls(known, str(stored.get("attention", "")), stored.get("failed") is True, ended, red, unplanned)

    def data(self) -> dict[str, Any]:
        maps = {"known": dict(self.known), "ended": dict(self.ended), "red": dict(self.red)}
        return self._asdict() | maps | {"planning": list(self.planning)}

    def ending(self, run: str, now_ms: int) -> "Judged":
        """Return the state after the end of a run."""
        recent = {other: at for other, at in self.ended.items() if now_ms - at < 2 * ACTING_MOST_MS}
        return self._replace(ended=recent | {run: now_ms})


class _Told(NamedTuple):
    times: int
    again_at: float


_Key = tuple[str, str]


class Noticing:
    """State of one link's watch from start to end: the findings that woke the DAG, and when they do so again."""

    def __init__(self, acted: Acted, judged: Judged = Judged()) -> None:  # noqa: B008  immutable
        self.acted = acted
        self.judged = judged
        self._told: dict[_Key, _Told] = {}
        self._during: set[_Key] = set()  # problems that appeared while a run was acting
        self._attention_at: float | None = None

    @property
    def waiting(self) -> bool:
        """Whether a finding that woke the DAG persists."""
        return bool(self._told)

    @property
    def waits_for_plan(self) -> bool:
        """Whether such a finding is one of `FACTS`, for which a run plans."""
        return any(name in FACTS for name, _ in self._told)

    def wakes(self, facts: Mapping[str, Finding], troubles: Mapping[str, Finding], now_ms: int) -> bool:
        """Return whether anything is present that runs, as far as known, have not acted upon. Changes nothing."""
        return bool(self._present(facts, troubles, (), now_ms)[0])

    def due(
        self, facts: Mapping[str, Finding], troubles: Mapping[str, Finding], now: float, now_ms: int = 0
    ) -> list[str]:
        """Return the names of all present findings if at least one is due to wake the DAG now, else an empty list.

        Args:
            facts: new if their value differs from the one last acted upon. An empty value is the normal state: new only
                after another value, and never for `WORK` and `HOURS`.
            troubles: problems, present for as long as they persist.
            now: seconds, always on the same clock.
            now_ms: wall-clock time, as in the stored state.
        """
        acting = self._acting(now_ms)
        everything, present = self._present(facts, troubles, acting, now_ms)
        self._told = {key: told for key, told in self._told.items() if key in everything}
        self._after_runs(everything - present, now, acting=bool(acting))
        if (RETRY, "") in present:  # the failed run has just ended
            self._told.setdefault((RETRY, ""), _Told(1, now + self._first_pause))
        if not any(self._is_due(key, now) for key in present):
            return []
        for key in present:
            times = self._told[key].times if key in self._told else 0
            pause = min(self._first_pause * 2**times, LONGEST_PAUSE_SECONDS)
            self._told[key] = _Told(times + 1, now + pause)
            if key[0] == ATTENTION:
                self._attention_at = now
        return sorted(name for name, _ in present)

    @property
    def _failed(self) -> bool:
        return self.acted.failed == "retriable" or self.judged.failed

    @property
    def _first_pause(self) -> float:
        return RETRY_PAUSE_SECONDS if self._failed else FIRST_PAUSE_SECONDS

    def _acting(self, now_ms: int) -> Sequence[Acting]:
        return [
            one
            for run, one in self.acted.acting.items()
            if now_ms - one.began_ms < ACTING_MOST_MS and self.judged.ended.get(run, -1) < one.began_ms
        ]

    def _present(
        self, facts: Mapping[str, Finding], troubles: Mapping[str, Finding], acting: Sequence[Acting], now_ms: int
    ) -> tuple[set[_Key], set[_Key]]:
        """Return all present findings, and those among them that are not acted upon now."""
        news = {(name, fact.value) for name, fact in facts.items() if self._is_news(name, fact)}
        waits = {key for key in news if key[0] == ATTENTION} if acting else set()  # the verdict of the run is next
        present = {key for key in news - waits if not any(run.seen.get(key[0]) == key[1] for run in acting)}
        wanted = {
            (name, found.value)
            for name, found in troubles.items()
            if self.acted.held.get(found.application, 0) <= now_ms
        }
        if self._failed and not acting and not any(facts.get(side, _NONE).value == AWAY for side in CLUSTERS):
            present.add((RETRY, ""))  # while a cluster does not respond, its return is the next finding
        everything = news | wanted | present
        return everything, present | (set() if acting else wanted)

    def _after_runs(self, suppressed: set[_Key], now: float, *, acting: bool) -> None:
        """Start the pause of a finding that a run acts upon at the end of the run."""
        if acting:
            self._during |= suppressed - self._told.keys()
            for key in suppressed & self._told.keys():
                self._told[key] = self._told[key]._replace(again_at=now + self._first_pause)
            return
        if self._failed:
            for key in self._during:
                self._told.setdefault(key, _Told(1, now + self._first_pause))
        self._during = set()

    def _is_due(self, key: _Key, now: float) -> bool:
        if key[0] == ATTENTION and self._attention_at is not None:
            return key not in self._told and now >= self._attention_at + ATTENTION_PAUSE_SECONDS
        return key not in self._told or self._told[key].again_at <= now

    def _is_news(self, name: str, fact: Finding) -> bool:
        before = self.judged.attention if name == ATTENTION else self.acted.seen.get(name, "")
        return fact.value != before and not (name in _ONLY_WORK and not fact.value)


_ONLY_WORK = frozenset({WORK, HOURS})
"""An empty value is never new."""


_NONE = Finding("", "")


def reasons_of(notices: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why a run was started, each reason once, oldest first.

    Args:
        notices: the payloads of the watch. A run that waited for another one has several; a reason that the newest does
            not have is over.
    """
    lines: dict[str, None] = {}
    newest = set(notices[-1]["reasons"]) if notices else set()
    for notice in notices:
        for reason in notice["reasons"]:
            lines[str(reason) if reason in newest else f"over: {reason}"] = None
    return list(lines)
