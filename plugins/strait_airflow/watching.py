"""What the health trigger looks at: the plan, the reports and the applications of one link. Blocking, and brief."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strait.config.links import LinksFile
    from strait.planning.status.health import Trouble


class LinkWatch:
    """One link from its opening to its closing. Not for two threads at once."""

    def __init__(self, file: "LinksFile", link: str) -> None:
        from strait.planning.status.health import Hearing
        from strait.state.reader import StateReader
        from strait_airflow.applications import launcher

        destination = file.links[link].destination
        self._link = link
        self._launcher = launcher()
        self._reader = StateReader(file.clusters[destination], destination, link, follow=("plan", "reports"))
        self._reader.catch_up()
        self._hearing = Hearing(time.monotonic())

    def look(self) -> "list[Trouble]":
        """What is wrong now, by group."""
        from strait.config.naming import application_name
        from strait.planning.status.health import trouble_of

        self._reader.poll()
        now = time.monotonic()
        self._hearing.listen(self._reader.reports, now)
        found = [
            trouble_of(
                plan,
                self._launcher.state(application_name(self._link, group)),
                self._hearing.silent(plan, now),
                time.time_ns() // 1_000_000,
            )
            for group, plan in sorted(self._reader.plans.items())
        ]
        return [trouble for trouble in found if trouble is not None]

    def close(self) -> None:
        self._reader.close()
