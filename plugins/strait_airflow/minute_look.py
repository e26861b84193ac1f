"""The slow part of a link's watch, about once per minute: plan, to determine whether a run would change anything, and
send the gauges. Blocks, for seconds if there is much to plan."""

import time
from typing import TYPE_CHECKING

from strait_airflow.noticing import Finding

if TYPE_CHECKING:
    from strait.control.plane import Control
    from strait.state.reader import StateReader
    from strait.state.schema import Report
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
        self._earlier: dict[tuple[str, int], tuple[Report, ...]] = {}

    def look(self, plan: bool) -> Finding | None:
        """Send the gauges. With ``plan``, return the work for a run, with an empty value if there is none; else return
        None.

        Raises:
            StraitError: the work could not be determined, or the metrics not be read. Open connections were closed.
        """
        began = time.monotonic()
        try:
            self._send_gauges()
            return self._pending() if plan else None
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

    def _send_gauges(self) -> None:
        from strait.state.reader import StateReader
        from strait_airflow import gauges

        file = self.settings.file
        if file is None:
            return
        destination = file.links[self._link].destination
        self._reader = self._reader or StateReader(
            file.clusters[destination], destination, self._link, follow=("plan", "map", "reports")
        )
        self._reader.catch_up()
        gauges.connect()
        gauges.measure(file, self._link, self._reader, self._earlier)
        self._earlier = dict(self._reader.reports)
