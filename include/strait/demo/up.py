"""Starts the demo step by step: clusters, data, Airflow and links. Then waits until the links have caught up."""

import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from strait.demo.figures import Figures, TopicFigures, caught_up
from strait.demo.folder import (
    DESTINATION,
    LINKS,
    LOCK,
    SOURCE,
    DemoFolder,
    Ports,
    bootstrap,
    topics,
)
from strait.demo.parts import Parts
from strait.demo.steps import Steps
from strait.embedded.airflow_client import AirflowClient
from strait.embedded.jars import kafka_jars
from strait.embedded.kafka import Cluster
from strait.embedded.waiting import wait_for
from strait.errors import SetupError
from strait.launch.java import find_java
from strait.text import plural

HISTORY_RECORDS = 100_000
RECORDS_PER_SECOND = 500
MONITORS = {link: f"strait_{link}" for link in LINKS}
"""Link -> its monitor DAG, which keeps it running."""

_SUBMIT, _VERDICT = "submit[0]", "verdict"
_ENDED = ("success", "failed", "upstream_failed")
_HEAP_MIB = 256


def bring_up(folder: DemoFolder, ports: Ports, steps: Steps) -> None:
    """Start all parts, and return once the existing records are copied. No part may be running or have left files.

    Raises:
        StraitError: a step failed. The parts that were started are stopped; their logs stay.
    """
    with steps.step("Java and Kafka's jars"):
        folder.airflow.check_installed()
        find_java()
        kafka_jars()
    try:
        _start(folder, ports, steps)
    except BaseException:
        Parts(folder).stop(lambda _: None)
        raise


@contextmanager
def alone(folder: DemoFolder) -> Iterator[None]:
    """Let only one process at a time start or stop the demo. Raises SetupError if another one is doing so."""
    folder.root.mkdir(parents=True, exist_ok=True)
    with (folder.root / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SetupError("demo: another `strait demo` is bringing it up or down", hint="wait for it") from None
        yield


def _start(folder: DemoFolder, ports: Ports, steps: Steps) -> None:
    folder.lay_out(ports)
    # Airflow takes longest, so everything else is started while it comes up.
    folder.airflow.launch(port=ports.airflow, log_ports=(ports.task_logs, ports.trigger_logs))
    at = {SOURCE: ports.source, DESTINATION: ports.destination}
    with steps.step("Kafka clusters " + " and ".join(f"{name} at {bootstrap(port)}" for name, port in at.items())):
        clusters = [
            Cluster(folder.cluster_folder(name), ports=[port], heap_mib=_HEAP_MIB, detached=True)
            for name, port in at.items()
        ]
        with ThreadPoolExecutor(len(clusters)) as pool:
            list(pool.map(Cluster.start, clusters))
    with steps.step("Producers and consumers of a shop"):
        _start_generator(folder, ports)
    with steps.step(f"Airflow at {folder.airflow.url}"):
        folder.airflow.wait_until_healthy()
    client = folder.airflow.client()
    try:
        with steps.step("Connections, Variables and DAGs in Airflow"):
            _configure(client, ports)
        with steps.step(f"DAGs {', '.join(MONITORS.values())}: plans, topics, Spark applications"):
            _first_runs(client)
    finally:
        client.close()
    with steps.step("Copying existing records") as status:
        _wait_until_copied(folder, status.update)


def _start_generator(folder: DemoFolder, ports: Ports) -> None:
    folder.generator.start(
        [
            *(sys.executable, "-m", "strait.demo.generator"),
            *("--source", bootstrap(ports.source), "--destination", bootstrap(ports.destination)),
            *("--history", str(HISTORY_RECORDS), "--per-second", str(RECORDS_PER_SECOND)),
        ],
        environment=os.environ,
        log=folder.generator_log,
        directory=folder.root,
    )


def _configure(client: AirflowClient, ports: Ports) -> None:
    for name, port in ((SOURCE, ports.source), (DESTINATION, ports.destination)):
        client.set_connection(
            f"strait_{name}",
            "kafka",
            json.dumps({"bootstrap.servers": bootstrap(port)}),
            f"The demo's {name} cluster: librdkafka properties, over those in the links file.",
        )
    for link, dag in MONITORS.items():
        client.set_variable(
            f"strait_topics_{link}",
            json.dumps(topics(link), indent=2),
            f"Which topics the link {link} copies, and how. Read by every run of {dag}.",
        )
    wait_for("Airflow: reading the DAGs", 60, lambda: _has_dags(client))


def _has_dags(client: AirflowClient) -> bool:
    """Return whether Airflow has loaded the DAGs. Raises SetupError if it could not import one."""
    if errors := client.import_errors():
        raise SetupError(f"Airflow: reading the DAGs: {errors[0]['stack_trace'].strip().splitlines()[-1]}")
    return set(MONITORS.values()) <= {dag["dag_id"] for dag in client.dags()}


def _first_runs(client: AirflowClient) -> None:
    for dag in MONITORS.values():
        client.unpause(dag)
    for dag in MONITORS.values():
        _first_run(client, dag)


def _first_run(client: AirflowClient, dag: str) -> None:
    """Wait until the first run has published the plan and submitted the application, but not for its later tasks."""
    # The schedule starts a run immediately, for the current hour.
    run = wait_for(f"Airflow: starting {dag}", 90, lambda: client.runs(dag))[-1]["dag_run_id"]

    def acted() -> str | None:
        states = client.task_states(dag, run)
        return next((states[task] for task in (_SUBMIT, _VERDICT) if states.get(task) in _ENDED), None)

    if wait_for(f"Airflow: first run of {dag}", 120, acted) != "success":
        raise SetupError(
            f"Airflow: first run of {dag}: {_why_failed(client, dag, run)}", hint="read `strait demo logs`"
        )


def _why_failed(client: AirflowClient, dag: str, run: str) -> str:
    """Return the last error of the run's verdict, or else of the submission."""
    tasks = [task for task in (_VERDICT, _SUBMIT) if client.attempts(dag, run).get(task)]
    lines = [line for task in reversed(tasks) for line in client.task_errors(dag, run, task)]
    return lines[-1] if lines else "no error in its logs"


def _wait_until_copied(folder: DemoFolder, tell: Callable[[str], None]) -> None:
    found: list[TopicFigures] = []

    def copied() -> bool:
        if folder.generator.pid is None:
            raise SetupError("demo: the generator of data ended", hint=f"read {folder.generator_log}")
        found[:] = figures.read()
        tell(f"Copying existing records: {sum(topic.copied_records for topic in found):,}")
        ready = any(one.in_sync for one in figures.groups())
        return caught_up(found, within_records=2 * RECORDS_PER_SECOND) and ready

    def behind() -> str:
        return (
            ", ".join(f"{topic.topic} lacks {plural(topic.lag_records, 'record')}" for topic in found)
            or "(no plan yet)"
        )

    with Figures(folder.clusters) as figures:
        wait_for("demo: copying", 180, copied, so_far=behind, hint="read `strait demo logs`")
