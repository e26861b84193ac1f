"""Watches one link: its settings, its source's topics, its reports and its applications. Calls block, but only
briefly."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from strait.text import plural
from strait.waiting import unix_ms
from strait_airflow.noticing import AWAY, Finding

if TYPE_CHECKING:
    from strait.config.links import LinksFile
    from strait.planning.status.health import Trouble
    from strait.state.schema import Plan
    from strait_airflow.settings import LiveSettings
    from strait_airflow.sources import SourceTopics, Topics

READ_SETTINGS_EVERY_SECONDS = 2.0
"""Each read queries Airflow for the link's Variables and Connections."""

REOPEN_EVERY_SECONDS = 10.0
CATCH_UP_SECONDS = 3.0
SUBMITTED_WITHIN_SECONDS = 15.0
_NAMED_MOST = 5


LOOK_WITHIN_SECONDS = 10.0


def look_at(link: str) -> dict[str, str]:
    """Return the values of the facts that a new watch reads first, by name; empty after `LOOK_WITHIN_SECONDS`."""
    watch, until = LinkWatch(link), time.monotonic() + LOOK_WITHIN_SECONDS
    try:
        while not (facts := watch.facts()) and time.monotonic() < until:
            time.sleep(0.05)
        return {name: fact.value for name, fact in facts.items()}
    finally:
        watch.close()


class LinkWatch:
    """Watches one link until it is closed. Not thread-safe."""

    def __init__(self, link: str) -> None:
        self.settings: LiveSettings | None = None
        self._link = link
        self._read_at = 0.0
        self._open: _Clusters | None = None
        self._opened_for: LiveSettings | None = None
        self._open_at = 0.0
        self._away: Finding | None = None
        self._selected: _Selected | None = None
        self._parts: Mapping[str, tuple[str, str]] = {}
        self._edited: tuple[str, ...] = ()

    def look(self) -> tuple[dict[str, Finding], dict[str, Finding]]:
        """Return `facts` and `troubles`."""
        return self.facts(), self.troubles()

    def facts(self) -> dict[str, Finding]:
        """Return the state that a run must act upon whenever it changes; empty until all of it has been read once."""
        now = time.monotonic()
        if self.settings is None or now >= self._read_at:
            self._read_settings()
            self._read_at = time.monotonic() + READ_SETTINGS_EVERY_SECONDS
        assert self.settings is not None
        if self._opened_for is not self.settings and now >= self._open_at:
            self._open_clusters(self.settings)
        error = self.settings.error
        found = {
            "settings": Finding(
                self.settings.digest,
                self._edit_text() if error is None else f"its settings are invalid: {error}",
            ),
            "destination": self._away or Finding("", "its destination can be read again"),
        }
        source = None if self._open is None else self._open.source.latest
        if source is not None and (of_source := self._of_source(source)) is not None:
            found["source"] = of_source
        return found if source is not None or error is not None or self._away is not None else {}

    def troubles(self) -> dict[str, Finding]:
        """Return the current problems with the applications, by name."""
        from strait.reasons import Reason

        found = {}
        for trouble in self._look():
            dead = trouble.reason is Reason.APPLICATION_DEAD
            name = f"{trouble.reason} {trouble.group}"
            # If another application exits, that is a new problem; if another slot stops reporting, that is not.
            name = f"{name} {trouble.detail}" if dead else name
            found[name] = Finding(str(trouble.reason), str(trouble), trouble.application)
        return found

    def _look(self) -> "list[Trouble]":
        from strait.errors import StraitError

        try:
            return [] if self._open is None else self._open.look()
        except StraitError as error:
            self._away = Finding(AWAY, f"its destination cannot be read: {error}")
            self._close_clusters()
            self._open_at = time.monotonic() + REOPEN_EVERY_SECONDS
            return []

    @property
    def reaches_clusters(self) -> bool:
        """Whether both clusters responded in the last poll."""
        if self._open is None or self._open.source.latest is None:
            return False
        return self._open.source.latest.away is None

    def silent_groups(self) -> list[str]:
        """Return the task groups whose applications run and do not report, as of the last poll."""
        return [] if self._open is None else self._open.silent_groups

    def close(self) -> None:
        self._close_clusters()

    def _read_settings(self) -> None:
        from strait_airflow import settings

        found, before = settings.live_settings(self._link), self.settings
        if before is not None and found.digest == before.digest:
            return
        if found.parts:
            self._edited = _changed(self._parts, found.parts) if self._parts else ()
            self._parts = found.parts
        self.settings, self._open_at = found, 0.0

    def _edit_text(self) -> str:
        return f"its settings were edited: {', '.join(self._edited)}" if self._edited else "its settings were edited"

    def _open_clusters(self, settings: "LiveSettings") -> None:
        """Connect to the clusters of these settings; if they cannot be read, keep the present connections."""
        from strait.errors import StraitError

        try:
            new = None if settings.file is None else _Clusters(settings.file, self._link)
        except StraitError as error:
            self._away = Finding(AWAY, f"its destination cannot be read: {error}")
            self._open_at = time.monotonic() + REOPEN_EVERY_SECONDS
            return
        if new is not None:
            self._close_clusters()
            self._open, self._away = new, None
        self._opened_for = settings

    def _close_clusters(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = self._opened_for = None

    def _of_source(self, source: "Topics") -> Finding | None:
        """Return the topics that the link selects, judged by their names. While the settings are invalid, return the
        previous ones; None if there are none."""
        assert self.settings is not None
        if source.away is not None:
            return Finding(AWAY, f"its source cannot be read: {source.away}")
        if self.settings.error is not None or self.settings.file is None:
            return None if self._selected is None else self._selected.finding
        if self._selected is None or not self._selected.made_of(source, self.settings):
            self._selected = _Selected(source, self.settings, self._link, self._selected)
        return self._selected.finding


def _changed(before: Mapping[str, tuple[str, str]], after: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    """Return the origins of the parts of the settings that differ. A part whose Variable or Connection was deleted has
    that as its origin."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    origins = {after.get(name, ("", ""))[0] or before.get(name, ("", ""))[0] for name in names}
    return tuple(sorted(origin or "the links file" for origin in origins))


class _Selected:
    """The topics of a source that a link selects."""

    def __init__(self, source: "Topics", settings: "LiveSettings", link: str, before: "_Selected | None") -> None:
        from strait.config.selecting import selects
        from strait.errors import StraitError
        from strait_airflow.settings import digest

        self.source = source
        self._settings = settings
        self.partitions: Mapping[str, int] = {}
        assert settings.file is not None
        topics = settings.file.links[link].topics
        try:
            self.partitions = {name: count for name, count in source.partitions.items() if selects(topics, name)}
        except StraitError as error:
            self.finding = Finding(digest(str(error)), str(error))
        else:
            self.finding = Finding(digest(self.partitions), self._text(before))

    def made_of(self, source: "Topics", settings: "LiveSettings") -> bool:
        return source is self.source and settings is self._settings

    def _text(self, before: "_Selected | None") -> str:
        """Return the differences from ``before``, as far as they are known: those of the source, and those of the
        selection."""
        if before is None:
            return "the topics that it selects have changed"
        now, then = self.partitions, before.partitions
        new, dropped = now.keys() - then.keys(), then.keys() - now.keys()
        selected, deselected = new & before.source.partitions.keys(), dropped & self.source.partitions.keys()
        grown = [
            f"{name} {then[name]} to {plural(now[name], 'partition')}"
            for name in sorted(now.keys() & then.keys())
            if now[name] != then[name]
        ]
        of_source = [*_signed("+", new - selected), *grown, *_signed("-", dropped - deselected)]
        of_selection = [*_signed("+", selected), *_signed("-", deselected)]
        parts = [
            f"{what}: {_few(changed)}"
            for what, changed in (("topics of its source", of_source), ("it selects now", of_selection))
            if changed
        ]
        return "; ".join(parts) or "its source answers"


def _signed(sign: str, names: Iterable[str]) -> list[str]:
    return [f"{sign}{name}" for name in sorted(names)]


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED_MOST} more" if len(names) > _NAMED_MOST else ""
    return f"{', '.join(names[:_NAMED_MOST])}{more}"


class _Clusters:
    """The parts that need the clusters: the link's plans and reports, and the topics of its source."""

    def __init__(self, file: "LinksFile", link: str) -> None:
        from strait.planning.status.health import Hearing
        from strait.state.link_handle import ConfiguredLink
        from strait_airflow import sources
        from strait_airflow.applications import supervisor

        of = ConfiguredLink.of(file, link)
        self._file = file
        self._link = link
        self._supervisor = supervisor(file, link)
        self._launcher = self._supervisor.launcher
        self._reader = of.state("plan", "reports")
        try:
            self._reader.catch_up(CATCH_UP_SECONDS)
        except BaseException:
            self._reader.close()
            raise
        self._hearing = Hearing(time.monotonic())
        self._found_at = time.monotonic()
        self._missing_since: dict[str, float] = {}
        self._started_at: dict[str, float] = {}  # application -> when it was last seen waiting to start
        self.silent_groups: list[str] = []
        self.source: SourceTopics = sources.join(*of.source)

    def close(self) -> None:
        from strait_airflow import sources

        sources.leave(self.source)
        self._reader.close()

    def look(self) -> "list[Trouble]":
        """Return the current problems, sorted by task group. Raises StraitError."""
        from strait.reasons import Reason

        now = time.monotonic()
        if not self._reader.plans and now - self._found_at > REOPEN_EVERY_SECONDS:
            self._found_at = now
            self._reader.catch_up(CATCH_UP_SECONDS)  # only this searches again for a state topic that did not exist
        self._reader.poll()
        found = self._troubles(now)
        if any(trouble.reason is Reason.SLOT_SILENT for trouble in found):
            self._reader.catch_up(CATCH_UP_SECONDS)  # raises if the destination does not respond
            found = self._troubles(now)
        self.silent_groups = [trouble.group for trouble in found if trouble.reason is Reason.SLOT_SILENT]
        return sorted(found, key=lambda trouble: trouble.group)

    def _troubles(self, now: float) -> "list[Trouble]":
        """Return the problems by the data read so far."""
        self._hearing.listen(self._reader.heard, now)
        return [trouble for plan in self._reader.plans.values() for trouble in self._look_at(plan, now)]

    def _look_at(self, plan: "Plan", now: float) -> "Iterator[Trouble]":
        from strait.config.naming import application_of
        from strait.launch.base import State
        from strait.planning.status.health import IN_CLUSTER, ON_THIS_HOST, Trouble, trouble_of
        from strait.reasons import Reason

        in_cluster, now_ms = self._file.links[self._link].spark.deploy_mode == "cluster", unix_ms()
        patience = IN_CLUSTER if in_cluster else ON_THIS_HOST
        silent = self._hearing.silent(plan, now, patience)
        for standby in (False, True) if self._supervisor.has_standby(plan.group) else (False,):
            name = application_of(self._link, self._file.links[self._link].pool, plan.group, standby=standby)
            found = self._launcher.state(name)
            if found is not None and found.state is State.SUBMITTED:
                self._started_at[name] = now
            running_seconds = now - self._started_at.get(name, -math.inf)
            slots = () if standby else silent
            trouble = trouble_of(plan, found, slots, now_ms, patience, running_seconds=running_seconds)
            if trouble is None and found is None and not plan.stopped:
                missing = f"application {name} was never submitted"
                trouble = Trouble(plan.group, Reason.APPLICATION_DEAD, missing)
            awaits = found is None or (not found.state.alive and found.exit_code == 0)  # it was asked to end
            if not awaits:
                self._missing_since.pop(name, None)
            elif trouble is not None and now - self._missing_since.setdefault(name, now) < SUBMITTED_WITHIN_SECONDS:
                trouble = None  # the publisher of the plan, or the restart, may be about to submit it
            if trouble is not None:
                yield replace(trouble, application=name)
