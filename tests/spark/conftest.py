"""A link of each test's own, and its application run by the real launcher."""

import importlib.util
import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strait.config.app_spec import AppSpec
from strait.control.plane import GROUP
from strait.embedded.ports import free_ports
from strait.launch.local import LocalLauncher
from support.fixtures.waiting import eventually
from support.links.links import Link


@pytest.fixture
def link(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[Link]:
    """Its topics are there, its plan is not. Its application is ended after the test."""
    name = topic_name.replace(".", "-")[-60:]
    spec = AppSpec(
        link=name,
        group=GROUP,
        source_name="source",
        source=clusters.source.client_properties,
        destination_name="destination",
        destination=clusters.destination.client_properties,
        slots=1,
        slot_memory_bytes=16 << 20,
        epoch_seconds=300,
        ledger_dir=str(tmp_path / "ledger"),
        checkpoint_dir=str(tmp_path / "checkpoint"),
    )
    launcher = LocalLauncher(tmp_path / "applications")
    link = Link(name, clusters.source, clusters.destination, spec, tmp_path, launcher)
    link.make_topics()
    yield link
    launcher.stop(name, grace_seconds=0.0)


@pytest.fixture
def standalone_master(tmp_path: Path) -> Iterator[str]:
    """The URL of a Spark Standalone master with one worker of one core, which it knows. A worker that finds no master
    tries again after five to fifteen seconds, an application after twenty; so each is started when the one before is
    there."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.submodule_search_locations is not None
    home = Path(spec.submodule_search_locations[0])
    port, master_page, worker_page = map(str, free_ports(3))
    url = f"spark://127.0.0.1:{port}"
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_LOCAL_DIRS": str(tmp_path / "spark"),
    }
    master = ["deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", master_page]
    worker = ["deploy.worker.Worker", url, "--cores", "1", "--memory", "1g", "--webui-port", worker_page]
    page = f"http://127.0.0.1:{master_page}/json/"
    running = []
    try:
        for number, (name, *arguments) in enumerate((master, [*worker, "--work-dir", str(tmp_path / "work")])):
            path = tmp_path / f"standalone-{number}.log"
            with path.open("ab") as log:
                command = [home / "bin" / "spark-class", f"org.apache.spark.{name}", *arguments]
                running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            eventually(
                lambda wanted=number: _workers(page) == wanted,
                what=lambda path=path: f"{path.name}: {path.read_text()[-2000:]}",
                within_seconds=180.0,
            )
        yield url
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(30)


def _workers(page: str) -> int | None:
    """How many workers the master knows; None while it does not answer."""
    try:
        with urllib.request.urlopen(page, timeout=10) as reply:  # noqa: S310  a page of this test's own
            return int(json.load(reply)["aliveworkers"])
    except (OSError, ValueError):  # it is not up yet, or answers with an empty page
        return None
