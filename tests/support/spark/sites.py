"""Where applications may run, each as the contract of launchers needs it: tests/spark/launchers/test_contract.py."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

import psutil

from strait.config.links import Spark, Yarn
from strait.launch import processes
from strait.launch.base import Launcher
from strait.launch.local import LocalLauncher
from strait.launch.spark_home import find_spark_submit
from strait.launch.standalone.launcher import StandaloneLauncher
from strait.launch.yarn.commands import Commands
from strait.launch.yarn.launcher import YarnLauncher
from support.fixtures.running import Running, look_at
from support.fixtures.waiting import eventually
from support.spark.standalone import Standalone
from support.spark.yarn import YarnCluster


class Site(Protocol):
    """One way of running applications, with everything that it needs running.

    Attributes:
        folder: of specs, ledgers and checkpoints; drivers and executors see it.
        spark: what a link says to run there.
        restarts: whether the cluster itself starts a driver again that was killed.
        found_without_directory: whether what runs is found after the submitting host and its files are lost.
    """

    folder: Path
    spark: Spark
    restarts: bool
    found_without_directory: bool

    def start(self) -> None:
        """Start what it needs."""

    def stop(self) -> None:
        """End it."""

    def launcher(self, directory: str = "applications") -> Launcher:
        """A new launcher as the link's settings ask for it. Launchers of one directory share what they know."""

    def kill_driver(self, name: str) -> None:
        """Kill -9 the driver of an application."""

    def left_behind(self, name: str) -> Sequence[str]:
        """What is still there of an application that has ended, a line for each: processes, files, entries."""


S = TypeVar("S", bound=Site)


@contextmanager
def started(site: S) -> Iterator[S]:
    """A site from its start to its end."""
    try:
        site.start()
        yield site
    finally:
        site.stop()


class LocalSite:
    """This machine, without any cluster."""

    restarts = False
    found_without_directory = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spark = Spark()

    def start(self) -> None:
        """Nothing is needed."""

    def stop(self) -> None:
        """Nothing was started."""

    def launcher(self, directory: str = "applications") -> Launcher:
        return LocalLauncher(self.folder / directory)

    def kill_driver(self, name: str) -> None:
        next(one for one in self._processes(name) if one.name == "java").process.kill()

    def left_behind(self, name: str) -> Sequence[str]:
        return [*_lines(self._processes(name)), *_files(self.folder)]

    def _processes(self, name: str) -> Iterator[Running]:
        return look_at(chain.from_iterable(processes.find(self.folder / "applications" / name).values()))


class StandaloneSite:
    """A Spark Standalone cluster of two workers, whose REST server asks for a token. `folder` is what hosts share."""

    restarts = True
    found_without_directory = False  # other directories are other installations

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "shared"
        self.cluster = Standalone(folder / "cluster", filtered=True)
        own = {name: getattr(self.cluster, name) for name in ("rest_url", "web_url")}
        self.spark = Spark.model_validate(
            {
                "master": self.cluster.url,
                "deploy_mode": "cluster",
                "standalone": own | {"token_file": str(self.cluster.token_file)},
            }
        )

    def start(self) -> None:
        self.cluster.start()

    def stop(self) -> None:
        """A driver's Python outlives its JVM for some seconds."""
        self.cluster.stop()
        applications = self.folder / "applications"
        eventually(lambda: not processes.find(applications), what=lambda: str(processes.find(applications)))

    def launcher(self, directory: str = "applications") -> Launcher:
        return StandaloneLauncher(self.spark, self.folder / directory)

    def drivers(self, name: str) -> dict[int, psutil.Process]:
        """Pid -> the JVM of each driver."""
        found = look_at(chain.from_iterable(processes.find(self.folder / "applications" / name).values()))
        return {one.process.pid: one.process for one in found if one.name == "java"}

    def kill_driver(self, name: str) -> None:
        for driver in self.drivers(name).values():
            driver.kill()

    def left_behind(self, name: str) -> Sequence[str]:
        page = self.cluster.page()
        drivers = [f"driver {one['id']} {one['state']}" for one in page["activedrivers"]]
        applications = [f"application {one['name']}" for one in page["activeapps"] if one["name"] == name]
        return [*_lines(self.cluster.processes()), *drivers, *applications, *_files(self.folder)]


class YarnSite:
    """A YARN cluster whose file system is this machine's or HDFS. `folder` is what hosts share of this machine's."""

    restarts = True
    found_without_directory = True

    def __init__(self, folder: Path, *, nodes: int = 1, hdfs: bool = False) -> None:
        self.folder = folder / "files"
        self.cluster = YarnCluster(folder / "cluster", nodes=nodes, hdfs=hdfs)
        settings = {
            "directory": f"{self.cluster.files}{'' if hdfs else self.folder}/hadoop",
            "hadoop_conf_dir": str(self.cluster.conf),
        }
        if not hdfs:
            settings["spark_jars"] = f"local:{find_spark_submit().parents[1]}/jars/*"
        self.yarn = Yarn.model_validate(settings)
        self.spark = Spark(master="yarn", yarn=self.yarn)

    def start(self) -> None:
        self.cluster.start()

    def stop(self) -> None:
        self.cluster.stop()

    def launcher(self, directory: str = "applications") -> YarnLauncher:
        return YarnLauncher(self.spark, self.yarn, self.folder / directory)

    def driver(self, name: str) -> psutil.Process:
        """The JVM of the driver."""
        return self._jvm(name, "deploy.yarn.ApplicationMaster")

    def executor(self, name: str) -> psutil.Process:
        """The JVM of an executor."""
        return self._jvm(name, "YarnCoarseGrainedExecutorBackend")

    def _jvm(self, name: str, main: str) -> psutil.Process:
        """Not the shell that started it, which has the same words in its command line."""
        found = (one for one in self.processes(name) if one.name() == "java")
        return next(one for one in found if main in str(one.cmdline()))

    def kill_driver(self, name: str) -> None:
        self.driver(name).kill()

    def left_behind(self, name: str) -> Sequence[str]:
        return [*_lines(look_at(self.processes(name))), *self.staged(), *self.cluster.containers()]

    def staged(self) -> list[str]:
        """What submissions have in the cluster's file system."""
        done = Commands(self.yarn).hadoop_fs("listing", "-ls", "-C", f"{self.yarn.directory}/*/.sparkStaging/")
        return done.output.decode().split()

    def processes(self, name: str) -> list[psutil.Process]:
        """Those in the containers of its submissions."""
        ids = [one.id.removeprefix("application_") for one in self.launcher().history(name)]
        found = psutil.process_iter()
        return [one for one in found if any(f"_{id_}_" in _variable(one, "CONTAINER_ID") for id_ in ids)]


def _variable(process: psutil.Process, name: str) -> str:
    """Of its environment; "" where it has ended or is another user's."""
    try:
        return process.environ().get(name, "")
    except psutil.Error:
        return ""


def _files(folder: Path) -> list[str]:
    """What Spark needs only while it runs, and the checkpoints."""
    scratch = folder.glob("applications/*/*/scratch/*")
    return [str(path) for path in (*scratch, *folder.glob("checkpoint/*"))]


def _lines(found: Iterable[Running]) -> list[str]:
    return [f"process {one.process.pid} {' '.join(one.command)[:200]}" for one in found]
