"""The slow part of a link's watch, about once per minute: determine whether an operator is needed, send the gauges, and
plan, to determine whether a run would change anything. Blocks, for seconds if there is much to plan."""

import time
from typing import TYPE_CHECKING

from strait_airflow.noticing import ATTENTION, HOURS, WORK, Finding
from strait_airflow.verdict import attention_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strait.control.hours import LinkHours
    from strait.control.needs import Needs
    from strait.control.plane import Control
    from strait.planning.status.needs import Need
    from strait.state.reader import StateReader
    from strait.state.report_records import Report
    from strait_airflow.settings import LiveSettings

EVERY_SECONDS = 60.0
_SHARE = 20
"""The pause after a pass is at least this many times its duration, up to `_LONGEST_PAUSE_SECONDS`."""

_LONGEST_PAUSE_SECONDS = 300.0


class MinuteLook:
    """The periodic pass for one link, while its settings stay unchanged. Not thread-safe."""

    def __init__(self, settings: "LiveSettings", link: str) -> None:
        self.settings = settings
        self.due_at = 0.0
        """Time of the next pass, in seconds of `time.monotonic`."""

        self._link = link
        self._control: Control | None = None
        self._reader: StateReader | None = None
        self._needs: Needs | None = None
        self._earlier: dict[tuple[str, int], tuple[Report, ...]] = {}
        self._known: dict[str, Need] = {}
        self._hours: LinkHours | None = None

    def look(self, plan: bool, next_hours: "Mapping[str, int]") -> dict[str, Finding]:
        """Send the gauges. Return the actions of an operator that the link needs, the hours of topics that are replicated, and
        with ``plan`` the work for a run; each has an empty value if there is none.

        Args:
            next_hours: topic -> start of its first hour without an event, in ms since 1970; absent: unknown.

        Raises:
            StraitError: the work could not be determined, or the metrics not be read. Open connections were closed.
        """
        began = time.monotonic()
        try:
            found = {} if (needs := self._measure()) is None else {ATTENTION: _attention(needs)}
            found |= self._complete(next_hours)
            return found | {WORK: self._pending()} if plan else found
        except BaseException:
            self.close()
            raise
        finally:
            now = time.monotonic()
            self.due_at = now + max(EVERY_SECONDS, min(_SHARE * (now - began), _LONGEST_PAUSE_SECONDS))

    def close(self) -> None:
        for one in (self._control, self._reader):
            if one is not None:
                one.close()
        self._control = self._reader = None

    def _pending(self) -> Finding:
        from strait.control.plane import Control
        from strait.planning.review.text import proposal_text
        from strait_airflow.settings import digest

        if self.settings.error is not None or self.settings.file is None:
            return Finding("", "")
        self._control = self._control or Control(self.settings.file, self._link)
        proposal = self._control.propose()
        if not self._control.has_work(proposal):
            return Finding("", "")
        text = proposal_text(proposal)
        first = next((line for line in text.splitlines() if line.startswith("plan ")), text.splitlines()[0])
        return Finding(digest(text), f"work to do: {first}")

    def _complete(self, next_hours: "Mapping[str, int]") -> dict[str, Finding]:
        from strait.control.hours import LinkHours, hours_text, hours_value
        from strait.state.link_handle import ConfiguredLink
        from strait.waiting import unix_ms

        file = self.settings.file
        if file is None or self._reader is None or not (hourly := file.links[self._link].assets.hourly):
            return {}
        if unknown := set(hourly) - next_hours.keys():
            return {HOURS: Finding(f"first {' '.join(sorted(unknown))}", "hours of topics are to be followed")}
        self._hours = self._hours or LinkHours(ConfiguredLink.of(file, self._link))
        complete = self._hours.complete(self._reader, {topic: next_hours[topic] for topic in hourly}, unix_ms())
        return {HOURS: Finding(hours_value(complete), f"hours are replicated: {hours_text(complete)}")}

    def _measure(self) -> "tuple[Need, ...] | None":
        """Send the gauges. Return the actions that are needed; None: unknown."""
        from strait.control.needs import Needs
        from strait.state.link_handle import ConfiguredLink
        from strait_airflow import gauges
        from strait_airflow.applications import supervisor

        file = self.settings.file
        if file is None:
            return None
        link = ConfiguredLink.of(file, self._link)
        self._reader = self._reader or link.state("plan", "map", "reports")
        self._reader.catch_up()
        gauges.connect()
        measured = gauges.measure(file, self._link, self._reader, self._earlier)
        self._earlier = dict(self._reader.reports)
        self._needs = self._needs or Needs(link)
        dying = supervisor(file, self._link).dying(self._reader.plans.values())
        if not self._reader.plans:
            return None
        found = {need.id: need for need in self._needs.of(self._reader, measured.statuses, dying)}
        # A need of a partition that its slot does not report yet is not over: its application may just have been restarted.
        self._known = self._known | found if measured.partial else found
        return tuple(self._known.values())


def _attention(needs: "tuple[Need, ...]") -> Finding:
    if not needs:
        return Finding("", "no operator is needed any more")
    more = f", and {len(needs) - 1} more" if len(needs) > 1 else ""
    return Finding(attention_of(need.id for need in needs), f"an operator is needed: {needs[0].text}{more}")
