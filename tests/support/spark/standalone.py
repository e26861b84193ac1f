"""A Spark Standalone cluster of real daemons on this machine, whose parts a test may kill and start again."""

import base64
import importlib.util
import json
import os
import runpy
import secrets
import subprocess
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from strait.config.home import project_root
from strait.embedded.ports import free_ports
from support.fixtures.running import Running, look_at
from support.fixtures.waiting import eventually

_UP_SECONDS = 180.0
_HEAP = "192m"
_QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


class Standalone:
    """A master and its workers, on 127.0.0.1. The master keeps what runs in a folder and is as it was after a restart.

    A worker that finds no master tries again after five to fifteen seconds, an application after twenty; so each is
    started when the one before is there.

    Args:
        folder: for logs, work, and what the master keeps.
        workers: how many. They are numbered from 0.
        cores: of each worker.
        recovers: the master keeps what runs.
        filtered: the REST server takes only requests that carry a signed token; `token_file` holds one.
    """

    def __init__(
        self, folder: Path, *, workers: int = 2, cores: int = 2, recovers: bool = True, filtered: bool = False
    ) -> None:
        self.folder = folder
        self._cores = cores
        self._ports = dict(zip(("master", "page", "rest", *range(workers)), free_ports(3 + workers), strict=True))
        self.url = f"spark://127.0.0.1:{self._ports['master']}"
        self.rest_url = f"http://127.0.0.1:{self._ports['rest']}"
        self.web_url = f"http://127.0.0.1:{self._ports['page']}"
        self.token_file = folder / "token"
        options = {"spark.master.rest.host": "127.0.0.1", "spark.master.rest.port": str(self._ports["rest"])}
        options["spark.master.rest.enabled"] = "true"
        options["spark.deploy.appTimeoutMs"] = "5000"
        if recovers:
            options |= {
                "spark.deploy.recoveryMode": "FILESYSTEM",
                "spark.deploy.recoveryDirectory": str(folder / "recovery"),
            }
        if filtered:
            options |= self._filter()
        self._options = options
        self.running: dict[str | int, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start everything, and wait until the master knows every worker."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.start_master()
        workers = [name for name in self._ports if isinstance(name, int)]
        for worker in workers:
            self.start_worker(worker)
        self.until_workers(len(workers))

    def start_master(self) -> None:
        port, page = (str(self._ports[name]) for name in ("master", "page"))
        options = " ".join(f"-D{name}={value}" for name, value in self._options.items())
        arguments = ["--host", "127.0.0.1", "--port", port, "--webui-port", page]
        self._start("master", "deploy.master.Master", arguments, {"SPARK_MASTER_OPTS": f"{_QUICK} {options}"})
        eventually(
            lambda: self.page().get("status") == "ALIVE", what=self._log_of("master"), within_seconds=_UP_SECONDS
        )

    def start_worker(self, worker: int) -> None:
        """Does not wait until the master knows it."""
        work, page = self.folder / f"work-{worker}", str(self._ports[worker])
        arguments = [self.url, "--host", "127.0.0.1", "--cores", str(self._cores), "--memory", "2g"]
        arguments += ["--webui-port", page, "--work-dir", str(work)]
        local = {"SPARK_LOCAL_DIRS": str(self.folder / f"local-{worker}"), "SPARK_WORKER_OPTS": _QUICK}
        self._start(worker, "deploy.worker.Worker", arguments, local)

    def until_workers(self, count: int) -> None:
        """Wait until the master knows so many."""
        wanted = lambda: self.page().get("aliveworkers") == count  # noqa: E731
        eventually(wanted, what=lambda: f"{self.page()} {self._log_of(0)()}", within_seconds=_UP_SECONDS)

    def kill(self, name: str | int) -> None:
        """As the loss of its process; what runs below a worker goes on until it notices.

        Args:
            name: "master", or a worker's number.
        """
        process = self.running.pop(name)
        process.kill()
        process.wait(30)

    def worker_of(self, process: psutil.Process) -> int:
        """The number of the worker that a driver or executor runs on."""
        above = {one.pid for one in process.parents()}
        return next(name for name, one in self.running.items() if isinstance(name, int) and one.pid in above)

    def processes(self) -> list[Running]:
        """Everything that runs below the workers."""
        workers = [one.pid for name, one in self.running.items() if isinstance(name, int)]
        return list(look_at(child for pid in workers for child in psutil.Process(pid).children(recursive=True)))

    def page(self) -> Mapping[str, Any]:
        """What the master says of itself; empty while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.web_url}/json/", timeout=10) as reply:  # noqa: S310
                return dict(json.load(reply))
        except (OSError, ValueError):  # it is not up yet, or answers with an empty page
            return {}

    def stop(self) -> None:
        """End everything; workers first, so that they end what they run."""
        for name in sorted(self.running, key=lambda one: one == "master"):
            self.running[name].terminate()
        for process in self.running.values():
            process.wait(60)
        self.running.clear()

    def _start(self, name: str | int, main: str, arguments: list[str], more: Mapping[str, str]) -> None:
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None and spec.submodule_search_locations is not None
        home = Path(spec.submodule_search_locations[0])
        daemon = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": _HEAP}
        inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [home / "bin" / "spark-class", f"org.apache.spark.{main}", *arguments]
            self.running[name] = subprocess.Popen(
                command, env=inherited | daemon | dict(more), stdout=log, stderr=log, start_new_session=True
            )

    def _log_of(self, name: str | int) -> Any:
        return lambda: f"{name}: {(self.folder / f'{name}.log').read_text()[-2000:]}"

    def _filter(self) -> dict[str, str]:
        """As docker-compose.yaml's master has it."""
        auth = runpy.run_path(str(project_root() / "docker" / "spark_auth.py"))
        key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.token_file.write_text(auth["token"](key))
        properties = dict(line.split() for line in auth["master"](key).splitlines())
        return {name: value for name, value in properties.items() if auth["FILTER"] in name + value}
