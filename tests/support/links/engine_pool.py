"""Links made by hand that share the tasks of a pool, each task a process that can be killed."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from strait.config.app_spec import AppSpec, PoolSpec
from strait.config.pools import Pool
from strait.control.plane import GROUP
from strait.planning.assignment.pools import pool_spec
from strait.planning.status.status import Status, status_of
from strait.state.reader import StateReader
from strait.state.report_records import Report
from strait.waiting import unix_ms
from support.links.engine_link import EngineLink
from support.links.processes import StartsProcesses


@dataclass
class EnginePool(StartsProcesses):
    """One pool; `host` says which links it runs."""

    folder: Path
    tasks: int = 1
    spec: PoolSpec | None = None
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.folder / "pool.json"

    @property
    def standby_path(self) -> Path:
        return self.folder / "standby.json"

    def host(self, *members: EngineLink | AppSpec) -> None:
        """Run these links from now on."""
        specs = [one if isinstance(one, AppSpec) else one.spec for one in members]
        self.spec = pool_spec(
            "test", Pool(slots=self.tasks), specs, self.spec, str(self.folder), measured={}, runs=self.spec is not None,
            balance=False,
        )  # fmt: skip
        self.spec.write(self.path)
        self.spec.as_standby(str(self.folder / "standby")).write(self.standby_path)

    def start(self, task: int = 0, *, poisoned: str = "", standby: bool = False) -> subprocess.Popen[bytes]:
        """Run a task in a process of its own."""
        path = self.standby_path if standby else self.path
        return self.start_process("support.links.pool_process", str(path), str(task), poisoned)


def newest_reports(links: Sequence[EngineLink]) -> dict[str, Report]:
    """Link -> the newest report of its first slot."""
    found = {}
    for link in links:
        with StateReader(link.destination.client_properties, "destination", link.name, follow=("reports",)) as state:
            state.catch_up()
            every = [report for reports in state.reports.values() for report in reports]
        if every:
            found[link.name] = max(every, key=lambda report: report.at_ms)
    return found


def status(link: EngineLink) -> Status:
    """As `strait status` shows it."""
    with StateReader(link.destination.client_properties, "destination", link.name, follow=("plan", "reports")) as state:
        state.catch_up()
        return status_of(link.name, GROUP, state.plans[GROUP], state.reports, unix_ms(), failures=state.failures)
