"""Prometheus and promtool: those on PATH, else Debian's, unpacked once below `.strait/prometheus`."""

import fcntl
import json
import shutil
import subprocess
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from strait.config.home import home
from strait.embedded.ports import free_ports
from support.fixtures.waiting import eventually


def program(name: str) -> Path:
    """``prometheus`` or ``promtool``; skips the test where neither PATH nor Debian has it, which fails it in CI."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    folder = home() / "prometheus"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "usr" / "bin" / name).exists():
            _unpack(folder)
    return folder / "usr" / "bin" / name


def _unpack(folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        pytest.skip("no Prometheus: it is not on PATH, and there is no apt-get to download it with")
    with tempfile.TemporaryDirectory(dir=folder) as here:
        for command in (
            ["apt-get", "update", "-qq"],
            ["apt-get", "download", "-qq", "prometheus"],
        ):
            done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=300, check=False)
            if command[1] == "download" and done.returncode:
                pytest.skip(f"no Prometheus: it is not on PATH, and {' '.join(command)} failed: {done.stderr.strip()}")
        package = next(Path(here).glob("prometheus_*.deb"))
        unpacked = Path(here) / "unpacked"
        subprocess.run(["dpkg", "-x", package, unpacked], check=True, timeout=120)
        shutil.rmtree(folder / "usr", ignore_errors=True)
        (unpacked / "usr").replace(folder / "usr")


class Prometheus:
    """One that runs."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[Any]:
        """The instant vector's samples now.

        Raises:
            urllib.error.HTTPError: it is not PromQL.
        """
        text = urllib.parse.urlencode({"query": expression})
        return list(self._get(f"query?{text}")["result"])

    def alerts(self) -> dict[str, list[dict[str, Any]]]:
        """Name -> those that fire."""
        firing: dict[str, list[dict[str, Any]]] = {}
        for alert in self._get("alerts")["alerts"]:
            if alert["state"] == "firing":
                firing.setdefault(alert["labels"]["alertname"], []).append(alert)
        return firing

    def ever_fired(self) -> set[str]:
        """Names of alerts that fire or fired."""
        found = self.query('count by (alertname) (last_over_time(ALERTS{alertstate="firing"}[1h]))')
        return {sample["metric"]["alertname"] for sample in found}

    def _get(self, path: str) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this host
        with opener.open(f"{self._url}/api/v1/{path}", timeout=30) as reply:
            return json.load(reply)["data"]


@contextmanager
def running(folder: Path, target: str, rules: dict[str, Any]) -> Iterator[Prometheus]:
    """It scrapes ``target`` (host:port) as the job "strait" once a second, and looks at the rules as often."""
    (folder / "rules.yml").write_text(json.dumps(rules), encoding="utf-8")
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "strait", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")
    (port,) = free_ports(1)
    log = folder / "prometheus.log"
    command = [
        program("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    try:
        server = Prometheus(f"http://127.0.0.1:{port}")

        def answers() -> bool:
            assert process.poll() is None, log.read_text(encoding="utf-8")[-2000:]
            try:
                server.query("1")
            except OSError:
                return False
            return True

        eventually(answers, what="Prometheus answers")
        yield server
    finally:
        process.terminate()
        process.wait(30)
