"""A real Airflow over one link between two clusters, with somebody writing to the source."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import environ
from pathlib import Path

import psutil
import yaml

from strait.demo.records import SHOP
from strait.embedded.airflow import LocalAirflow
from strait.embedded.airflow_client import AirflowClient, Json
from strait.embedded.detached import Detached
from strait.embedded.kafka import Cluster
from strait.embedded.paths import project_root
from strait.embedded.ports import free_ports
from strait.launch import processes
from strait.launch.base import Application
from strait.launch.local import LocalLauncher
from support.waiting import eventually

LINK = "shop"
ASKED = "asked"
APPROVAL = f"strait_{ASKED}_approval"
MONITOR, HEALTH, VARIABLE = f"strait_{LINK}", f"strait_{LINK}_health", f"strait_topics_{LINK}"
PARTITIONS = {topic: shop.partitions for topic, shop in SHOP.items()}
OVER = ("success", "failed")


@dataclass(frozen=True, slots=True)
class Deployment:
    """Airflow with the DAGs of one link, and the applications that it submits."""

    client: AirflowClient
    launcher: LocalLauncher
    generator: Detached

    def application(self) -> Application | None:
        """The newest submission."""
        return self.launcher.state(f"strait-{LINK}-default")

    def application_processes(self) -> list[psutil.Process]:
        found = processes.find(self.launcher.directory)
        return [process for several in found.values() for process in several]

    def application_pids(self) -> set[int]:
        """Without Spark's Python workers, which come and go with the epochs."""
        return {
            process.pid
            for process in self.application_processes()
            if "strait.spark.daemon" not in " ".join(process.cmdline())
        }

    def copy(self, *topics: str) -> None:
        """Say by the Variable what is to be copied."""
        self.client.set_variable(VARIABLE, json.dumps({"include": list(topics)}))

    def run_monitor(self) -> Json:
        """A run of the monitor from start to end."""
        run = self.client.trigger(MONITOR)
        self.client.wait_for_run(MONITOR, run, timeout_seconds=180)
        return self.client.run(MONITOR, run)

    def logs(self, dag: str, task: str) -> str:
        """What a task logged in all runs so far, the newest first."""
        runs = [run["dag_run_id"] for run in self.client.runs(dag) if run["state"] in OVER]
        ran = [run for run in runs if self.client.task_states(dag, run)[task] in OVER]
        return "\n".join(self.client.task_log(dag, run, task) for run in ran)

    def stop_writing(self) -> None:
        self.generator.stop(signal.SIGTERM, grace_seconds=30)


@contextmanager
def deployment(folder: Path, source: Cluster, destination: Cluster, *, include: list[str]) -> Iterator[Deployment]:
    """Up, with both DAGs of one link running on their schedules; another link wants to be asked, and its DAGs are
    paused. All of it is ended on leaving."""
    links_file, home = folder / "links.yaml", folder / "strait"
    # The addresses in the file are wrong: those of the Connections have to win.
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    link = {"source": "here", "destination": "there", "topics": {"include": include}, "epoch_seconds": 20}
    asked = link | {"approval": "required", "naming": {"policy": "prefix", "prefix": f"{ASKED}."}}
    clusters = {"here": nowhere, "there": nowhere}
    links_file.write_text(yaml.safe_dump({"clusters": clusters, "links": {LINK: link, ASKED: asked}}))
    airflow = LocalAirflow(
        folder / "airflow",
        project=project_root(),
        environment={"STRAIT_LINKS_FILE": str(links_file), "STRAIT_HOME": str(home)},
    )
    generator = Detached(folder / "generator.json")
    launcher = LocalLauncher(home / "applications")
    port, *log_ports = free_ports(3)
    airflow.launch(port=port, log_ports=(log_ports[0], log_ports[1]))
    try:
        generator.start(
            [
                *(sys.executable, "-m", "strait.demo.generator", "--bootstrap", source.bootstrap),
                *("--history", "20000", "--per-second", "200"),
            ],
            environment=environ,
            log=folder / "generator.log",
            directory=folder,
        )
        airflow.wait_until_healthy()
        client = airflow.client()
        for name, cluster in (("here", source), ("there", destination)):
            client.set_connection(f"strait_{name}", "kafka", json.dumps(cluster.client_properties))
        eventually(lambda: {dag["dag_id"] for dag in client.dags()} >= {MONITOR, HEALTH, APPROVAL}, what="the DAGs")
        client.unpause(MONITOR)
        client.unpause(HEALTH)
        yield Deployment(client, launcher, generator)
        client.close()
    finally:
        airflow.stop()
        generator.stop(signal.SIGTERM, grace_seconds=30)
        for application in launcher.list():
            launcher.stop(application.name)
