"""What does Airflow cost while nothing happens, and how soon does it act on what does?

A real Airflow over many links between two clusters. Their applications are slots without Spark, so that what is measured
is Airflow. First nothing happens for some minutes; then one thing after the other does, some times each.

    python benchmarks/control_loop.py [--links 20] [--minutes 10] [--times 3]

Appends a table to results-control-loop.md. On a machine that is busy otherwise, trust the CPU seconds and not the
latencies.
"""

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psutil
import yaml

from measuring import append_table
from strait.config.home import project_root
from strait.embedded.airflow import LocalAirflow
from strait.embedded.airflow_client import AirflowClient, Json
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.launch import processes
from strait.launch.local import LocalLauncher
from strait.state.reader import StateReader
from support.fixtures.airflow import launch
from support.reaper import leave_nothing

RESULTS = Path(__file__).parent / "results-control-loop.md"
TOPICS_OF_OTHERS = 100
SETTLE_SECONDS = 90.0
STAND_IN = """#!/bin/sh
# --properties-file P JOB --spec S: a slot without Spark.
exec {python} -m support.links.slot_process "$5" 0 '{{"changed": {{}}, "clock_jumps_seconds": 0}}'
"""


@dataclass
class Loop:
    """Airflow over links, and what it takes to disturb it."""

    airflow: LocalAirflow
    client: AirflowClient
    launcher: LocalLauncher
    source: Cluster
    destination: Cluster
    links_file: Path
    links: list[str]

    def plan(self, link: str) -> int:
        with StateReader(self.destination.client_properties, "there", link, follow=("plan",)) as state:
            state.catch_up()
            return sum(plan.version for plan in state.plans.values())

    def copies(self, link: str) -> set[str]:
        with StateReader(self.destination.client_properties, "there", link, follow=("plan",)) as state:
            state.catch_up()
            return {topic.source for plan in state.plans.values() for topic in plan.topics}

    def new_runs(self, link: str, since: set[str]) -> list[Json]:
        return [run for run in self.client.runs(f"strait_{link}") if run["dag_run_id"] not in since]

    def run_ids(self, link: str) -> set[str]:
        return {run["dag_run_id"] for run in self.client.runs(f"strait_{link}")}


def until(happened: Callable[[], bool], within_seconds: float = 120.0) -> float:
    """Seconds until it has."""
    began = time.monotonic()
    while not happened():
        if time.monotonic() - began > within_seconds:
            raise TimeoutError(f"did not happen within {within_seconds:g} s")
        time.sleep(0.1)
    return time.monotonic() - began


@contextmanager
def loop(
    folder: Path,
    links: Mapping[str, Json],
    *,
    users: Mapping[str, str] = MappingProxyType({}),
    project: Path | None = None,
) -> Iterator[Loop]:
    """Airflow over links from `here` to `there`, each with topics of its own.

    Args:
        links: name -> settings besides those.
        users: of the destination.
        project: where Airflow finds DAGs and plugins.
    """
    stand_in = folder / "stand-in" / "pyspark" / "bin" / "spark-submit"
    stand_in.parent.mkdir(parents=True)
    (stand_in.parents[1] / "__init__.py").touch()
    stand_in.write_text(STAND_IN.format(python=sys.executable), encoding="utf-8")
    stand_in.chmod(0o700)
    path = (folder / "stand-in", project_root() / "include", project_root() / "tests")
    with (
        Cluster(folder / "source", heap_mib=256) as source,
        Cluster(folder / "destination", heap_mib=256, users=users) as destination,
    ):
        Admin(source.client_properties, "here").create(
            [NewTopic(f"{link}.orders", 2, 1) for link in links]
            + [NewTopic(f"others.{number}", 1, 1) for number in range(TOPICS_OF_OTHERS)]
        )
        links_file = folder / "links.yaml"
        clusters = {"here": source.client_properties, "there": destination.client_properties}
        each = {
            link: {"source": "here", "destination": "there", "topics": {"regex": [rf"{link}\..*"]}} | more
            for link, more in links.items()
        }
        links_file.write_text(yaml.safe_dump({"clusters": clusters, "links": each}), encoding="utf-8")
        airflow = LocalAirflow(
            folder / "airflow",
            project=project or project_root(),
            environment={
                "STRAIT_LINKS_FILE": str(links_file),
                "STRAIT_HOME": str(folder / "home"),
                "PYTHONPATH": os.pathsep.join(map(str, path)),
            },
        )
        launcher = LocalLauncher(folder / "home" / "applications")
        launch(airflow)
        try:
            airflow.wait_until_healthy()
            client = airflow.client()
            until(lambda: {f"strait_{link}" for link in links} <= {dag["dag_id"] for dag in client.dags()})
            for link in links:
                client.unpause(f"strait_{link}")
            yield Loop(airflow, client, launcher, source, destination, links_file, list(links))
            client.close()
        finally:
            airflow.stop()
            for application in launcher.list():
                launcher.stop(application.name, grace_seconds=0)


def by_component(airflow: LocalAirflow) -> dict[str, tuple[float, int]]:
    """Component -> CPU seconds so far of what lives, with its ended children, and PSS in bytes."""
    found: dict[str, tuple[float, int]] = {}
    for process in airflow.processes():
        try:
            times, memory, name = process.cpu_times(), process.memory_full_info().pss, _component(process)
        except psutil.NoSuchProcess:
            continue
        cpu, pss = found.get(name, (0.0, 0))
        found[name] = cpu + times.user + times.system + times.children_user + times.children_system, pss + memory
    return found


def _component(process: psutil.Process) -> str:
    while process is not None:
        words = " ".join(process.cmdline())
        for name in ("scheduler", "triggerer", "dag-processor", "api-server", "api_server"):
            if name in words:
                return name.replace("_", "-")
        process = process.parent()
    return "standalone"


def task_rows(airflow: LocalAirflow) -> int:
    with sqlite3.connect(f"file:{airflow.home / 'airflow.db'}?mode=ro", uri=True) as database:
        (rows,) = database.execute("select count(*) from task_instance").fetchone()
    return int(rows)


def idle(running: Loop, minutes: float) -> tuple[list[str], int]:
    """A line for each component, and the task rows that came."""
    rows, before, began = task_rows(running.airflow), by_component(running.airflow), time.monotonic()
    time.sleep(minutes * 60)
    after, seconds = by_component(running.airflow), time.monotonic() - began
    lines = []
    total_cpu = total_pss = 0.0
    for name, (cpu, pss) in sorted(after.items()):
        share = (cpu - before.get(name, (0.0, 0))[0]) / seconds
        total_cpu, total_pss = total_cpu + share, total_pss + pss
        lines.append(f"| idle: {name} | {100 * share:.1f} % of a core, {pss / 2**20:.0f} MiB PSS |")
    lines.append(
        f"| **idle: all of Airflow** | **{100 * total_cpu:.1f} % of a core, {total_pss / 2**30:.2f} GiB PSS** |"
    )
    return lines, task_rows(running.airflow) - rows


def reactions(running: Loop, times: int) -> list[str]:
    link = running.links[1]
    measured = {
        "a Variable is edited: its topic is in the plan": edits,
        "a new topic: it is in the plan": new_topics,
        "a wrong Variable: a red run": wrong_edits,
        "a run is triggered by hand: it has ended": manual_runs,
        "an application is killed: it is submitted again": kills,  # last: from the third on, each run is red
    }
    lines = []
    for what, measure in measured.items():
        seconds, rows = [], []
        for number in range(times):
            before, cpu = task_rows(running.airflow), total_cpu(running.airflow)
            seconds.append(measure(running, link, number))
            rows.append((task_rows(running.airflow) - before, total_cpu(running.airflow) - cpu))
        print(what, " ".join(f"{one:.1f}" for one in seconds), rows, flush=True)
        lines.append(f"| {what} | {median(seconds):.1f} s, at most {max(seconds):.1f} s |")
        cost = f"{median(some for some, _ in rows):.0f} task rows, {median(cpu for _, cpu in rows):.1f} CPU-s"
        lines.append(f"| – all runs for it, with what is idle meanwhile | {cost} |")
    return lines


def total_cpu(airflow: LocalAirflow) -> float:
    return sum(cpu for cpu, _ in by_component(airflow).values())


def edits(running: Loop, link: str, number: int) -> float:
    topic = f"others.{number}"
    variable = {"regex": [rf"{link}\..*"], "include": [topic]}
    running.client.set_variable(f"strait_topics_{link}", json.dumps(variable))
    seconds = until(lambda: topic in running.copies(link))
    time.sleep(20)
    return seconds


def new_topics(running: Loop, link: str, number: int) -> float:
    topic = f"{link}.new{number}"
    Admin(running.source.client_properties, "here").create([NewTopic(topic, 1, 1)])
    seconds = until(lambda: topic in running.copies(link))
    time.sleep(20)
    return seconds


def kills(running: Loop, link: str, _: int) -> float:
    name = f"strait-{link}-default"
    first = running.launcher.state(name)
    assert first is not None
    for process in (one for some in processes.find(running.launcher.directory / name).values() for one in some):
        process.kill()
    seconds = until(lambda: running.launcher.state(name).id != first.id)
    time.sleep(30)  # and no more than four within ten minutes: the fifth is held back
    return seconds


def wrong_edits(running: Loop, link: str, number: int) -> float:
    before = running.run_ids(link)
    right = json.dumps({"regex": [rf"{link}\..*"], "include": [f"others.{number}"]})
    running.client.set_variable(f"strait_topics_{link}", json.dumps({"includ": [str(number)]}))
    seconds = until(lambda: any(run["state"] == "failed" for run in running.new_runs(link, before)))
    time.sleep(60)
    failed = [run for run in running.new_runs(link, before) if run["state"] == "failed"]
    assert len(failed) == 1, f"{len(failed)} runs for one wrong edit"
    running.client.set_variable(f"strait_topics_{link}", right)
    until(lambda: any(run["state"] == "success" for run in running.new_runs(link, before)))
    time.sleep(10)
    return seconds


def manual_runs(running: Loop, link: str, _: int) -> float:
    run = running.client.trigger(f"strait_{link}")
    seconds = until(lambda: running.client.run(f"strait_{link}", run)["state"] == "success")
    time.sleep(5)
    return seconds


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--links", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--times", type=int, default=3, help="of each event; 0: what is idle only")
    asked = parser.parse_args()
    links: dict[str, Json] = {f"link{number:02}": {} for number in range(asked.links)}
    with tempfile.TemporaryDirectory() as name, loop(Path(name), links) as running:
        seconds = until(lambda: all(running.plan(link) for link in running.links), within_seconds=600)
        print(f"all links planned after {seconds:.0f} s", flush=True)
        time.sleep(SETTLE_SECONDS)
        lines, rows = idle(running, asked.minutes)
        print("\n".join(lines), rows, flush=True)
        lines.append(f"| task rows while idle | {rows} in {asked.minutes:g} minutes |")
        if asked.times:
            lines += reactions(running, asked.times)
    append_table(RESULTS, f"{asked.links} links.", ("what", "measured"), lines)


if __name__ == "__main__":
    main()
