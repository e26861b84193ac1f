"""Brings the demo up, step by step: clusters, data, Airflow, the link, and waits until its copy has caught up."""

import fcntl
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strait.demo.figures import Figures, TopicFigures, caught_up
from strait.demo.folder import (
    DESTINATION,
    LINK,
    LOCK,
    SOURCE,
    TOPICS,
    DemoFolder,
    Ports,
    bootstrap,
)
from strait.demo.parts import Parts
from strait.demo.steps import Steps
from strait.demo.waiting import wait_for
from strait.embedded.airflow_client import AirflowClient
from strait.embedded.jars import kafka_jars
from strait.embedded.kafka import Cluster
from strait.errors import SetupError
from strait.launch.java import find_java

HISTORY_RECORDS = 100_000
RECORDS_PER_SECOND = 500
MONITOR = f"strait_{LINK}"
_HEAP_MIB = 256


def bring_up(folder: DemoFolder, ports: Ports, steps: Steps) -> None:
    """Start all of it, and return once what was written is copied. Nothing of it may run, or have left files.

    Raises:
        StraitError: a step failed. What was started until then is ended; its logs stay.
    """
    with steps.step("Java and Kafka's jars"):
        find_java()
        kafka_jars()
    try:
        _start(folder, ports, steps)
    except BaseException:
        Parts(folder).stop(lambda _: None)
        raise


@contextmanager
def alone(folder: DemoFolder) -> Iterator[None]:
    """Only one process at a time brings the demo up or down. Raises SetupError while another one does."""
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
    for name, port in ((SOURCE, ports.source), (DESTINATION, ports.destination)):
        with steps.step(f"Kafka cluster {name} at {bootstrap(port)}"):
            Cluster(folder.cluster_folder(name), ports=[port], heap_mib=_HEAP_MIB, detached=True).start()
    with steps.step(f"Generator of {', '.join(TOPICS)}"):
        _start_generator(folder, ports)
    with steps.step(f"Airflow at {folder.airflow.url}"):
        folder.airflow.wait_until_healthy()
    client = folder.airflow.client()
    try:
        with steps.step("Connections, Variable and DAGs in Airflow"):
            _configure(client, ports)
        with steps.step(f"DAG {MONITOR}: plan, topics, Spark application"):
            _first_run(client)
    finally:
        client.close()
    with steps.step("Copying what is there") as status:
        _wait_until_copied(folder, status.update)


def _start_generator(folder: DemoFolder, ports: Ports) -> None:
    folder.generator.start(
        [
            *(sys.executable, "-m", "strait.demo.generator"),
            *("--bootstrap", bootstrap(ports.source)),
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
    client.set_variable(
        f"strait_topics_{LINK}",
        json.dumps({"include": list(TOPICS)}),
        f"Which topics the link {LINK} copies: include, regex, exclude. Read by every run of {MONITOR}.",
    )
    wait_for("Airflow: reading the DAGs", 60, lambda: _has_dags(client))


def _has_dags(client: AirflowClient) -> bool:
    """Raises SetupError where Airflow could not read them."""
    if errors := client.import_errors():
        raise SetupError(f"Airflow: reading the DAGs: {errors[0]['stack_trace'].strip().splitlines()[-1]}")
    return MONITOR in {dag["dag_id"] for dag in client.dags()}


def _first_run(client: AirflowClient) -> None:
    client.unpause(MONITOR)
    # Its schedule starts one at once, for the hour that has begun.
    run = wait_for(f"Airflow: starting {MONITOR}", 90, lambda: client.runs(MONITOR))[-1]["dag_run_id"]
    state = client.wait_for_run(MONITOR, run, timeout_seconds=120)
    if state != "success":
        raise SetupError(
            f"Airflow: first run of {MONITOR}: {_why_failed(client, run)}", hint="`strait demo logs` tells more"
        )


def _why_failed(client: AirflowClient, run: str) -> str:
    """The last error of each failed task, at its second attempt or at its first and only one."""
    failed = [task for task, state in client.task_states(MONITOR, run).items() if state == "failed"]
    errors = {
        task: client.task_errors(MONITOR, run, task, 2) or client.task_errors(MONITOR, run, task, 1) for task in failed
    }
    return "; ".join(f"task {task}: {lines[-1] if lines else 'no error in its log'}" for task, lines in errors.items())


def _wait_until_copied(folder: DemoFolder, tell: Callable[[str], None]) -> None:
    topics: list[TopicFigures] = []

    def copied() -> bool:
        if folder.generator.pid is None:
            raise SetupError("demo: the generator of data ended", hint=f"read {folder.generator_log}")
        topics[:] = figures.read()
        there = sum(topic.source_records for topic in topics)
        tell(f"Copying what is there: {sum(topic.copied_records for topic in topics):,} of {there:,} records")
        return caught_up(topics, within_records=2 * RECORDS_PER_SECOND)

    def behind() -> str:
        return ", ".join(f"{topic.topic} lacks {topic.lag_records:,} records" for topic in topics) or "(no plan yet)"

    with Figures(folder.clusters) as figures:
        wait_for("demo: copying", 180, copied, so_far=behind, hint="`strait demo logs application` tells more")
