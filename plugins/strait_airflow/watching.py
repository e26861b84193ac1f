"""What the health trigger looks at: the plan, the reports and the applications of one link. Blocking, and brief."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strait.config.links import LinksFile
    from strait.planning.status.health import Trouble
    from strait.state.schema import Plan


class LinkWatch:
    """One link from its opening to its closing. Not for two threads at once."""

    def __init__(self, file: "LinksFile", link: str) -> None:
        from strait.planning.status.health import Hearing
        from strait.state.reader import StateReader
        from strait_airflow.applications import launcher

        destination = file.links[link].destination
        self._file = file
        self._link = link
        self._launcher = launcher(file.links[link].spark)
        self._reader = StateReader(file.clusters[destination], destination, link, follow=("plan", "reports"))
        self._reader.catch_up()
        self._hearing = Hearing(time.monotonic())

    def look(self) -> "list[Trouble]":
        """What is wrong now, by group."""
        self._reader.poll()
        now = time.monotonic()
        self._hearing.listen(self._reader.reports, now)
        found = [trouble for plan in self._reader.plans.values() for trouble in self._look_at(plan, now)]
        return sorted(found, key=lambda trouble: trouble.group)

    def _look_at(self, plan: "Plan", now: float) -> "Iterator[Trouble]":
        from strait.config.naming import application_name
        from strait.planning.status.health import trouble_of
        from strait_airflow.applications import has_standby

        silent, now_ms = self._hearing.silent(plan, now), time.time_ns() // 1_000_000
        for standby in (False, True) if has_standby(self._file, self._link, plan.group) else (False,):
            found = self._launcher.state(application_name(self._link, plan.group, standby=standby))
            trouble = trouble_of(plan, found, () if standby else silent, now_ms)
            if trouble is not None:
                yield trouble

    def close(self) -> None:
        self._reader.close()
