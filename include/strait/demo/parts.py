"""The parts of a running demo. Any process can find them from its directory, and stop them so that none is left."""

import contextlib
import signal
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import psutil

from strait.config.naming import application_name
from strait.demo.folder import DESTINATION, LINK, LINKS, SOURCE, DemoFolder
from strait.embedded.kafka import Cluster
from strait.errors import SetupError
from strait.launch import processes
from strait.launch.local import LocalLauncher

APPLICATIONS = {f"application-{link}": application_name(link, "default") for link in LINKS}
"""Part -> name of its Spark application."""


class Parts:
    """The demo's parts. None of them needs to be running, or to have been started."""

    def __init__(self, folder: DemoFolder) -> None:
        self._folder = folder

    def running(self) -> dict[str, bool]:
        """Return part -> whether it runs."""
        states = {part: self._launcher().state(name) for part, name in APPLICATIONS.items()}
        return {
            SOURCE: self._cluster_runs(SOURCE),
            DESTINATION: self._cluster_runs(DESTINATION),
            "generator": self._folder.generator.pid is not None,
            "airflow": self._folder.airflow.pid is not None,
            **{part: found is not None and found.state.alive for part, found in states.items()},
        }

    def processes(self) -> list[psutil.Process]:
        """Return every process of every part."""
        found = [*self._folder.airflow.processes(), *self._folder.generator.members()]
        for name in (SOURCE, DESTINATION):
            cluster = self._cluster(name)
            pids = [cluster.pid(broker) for broker in cluster.broker_ids] if cluster else []
            found += [psutil.Process(pid) for pid in pids if pid is not None]
        return found + [process for several in self.applications().values() for process in several]

    def applications(self) -> dict[str, list[psutil.Process]]:
        """Return the name of each running Spark application -> all its processes."""
        found: dict[str, list[psutil.Process]] = defaultdict(list)
        for submission, several in processes.find(self._folder.applications.resolve()).items():
            found[submission.parent.name] += several
        return dict(found)

    def kill_application(self) -> list[int]:
        """Kill the application from source to destination. Return its process IDs; empty: none was running."""
        mine = self.applications().get(application_name(LINK, "default"), [])
        for process in mine:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        return sorted(process.pid for process in mine)

    def stop(self, tell: Callable[[str], None]) -> None:
        """Stop every part; before each one, call ``tell`` with its name. The files of the parts stay.

        Raises:
            SetupError, LaunchError: a part could not be stopped.
        """
        # Airflow first, so that it does not restart the applications that are stopped next.
        tell("Airflow")
        self._folder.airflow.stop()
        tell("the applications")
        for application in self._launcher().list():
            self._launcher().stop(application.name)
        tell("the generator")
        self._folder.generator.stop(signal.SIGTERM, grace_seconds=10)
        for name in (SOURCE, DESTINATION):
            tell(f"the {name} cluster")
            if cluster := self._cluster(name):
                cluster.stop()
        if left := self.processes():
            raise SetupError(f"demo: ending it: processes {sorted(process.pid for process in left)} are still there")

    def logs(self) -> dict[str, Path]:
        """Return part -> its log file, for each part that has one."""
        logs = {"generator": self._folder.generator_log, "airflow": self._folder.airflow.log}
        for part, name in APPLICATIONS.items():
            if (application := self._launcher().state(name)) is not None:
                logs[part] = Path(application.log)
        for name in (SOURCE, DESTINATION):
            if cluster := self._cluster(name):
                logs[name] = cluster.log(1)
        return {name: path for name, path in logs.items() if path.exists()}

    def _launcher(self) -> LocalLauncher:
        return LocalLauncher(self._folder.applications)

    def _cluster(self, name: str) -> Cluster | None:
        try:
            return Cluster.attach(self._folder.cluster_folder(name))
        except SetupError:
            return None  # it was never started

    def _cluster_runs(self, name: str) -> bool:
        cluster = self._cluster(name)
        return cluster is not None and cluster.running
