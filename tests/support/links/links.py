"""A link whose plan is made by hand, and whose application is run by the real launcher."""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow.dataset
from confluent_kafka import Producer

from strait.config.app_spec import AppSpec
from strait.config.links import Spark
from strait.control.plane import GROUP
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.launch import processes
from strait.launch.base import Application, Launcher, State
from strait.launch.local import LocalLauncher
from strait.state.schema import Plan, TopicPolicy
from strait.state.topics import ensure_state_topics
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_copied
from support.links.handmade import publish


@dataclass
class Link:
    """One link with one topic. ``spec`` and ``spark`` may be replaced before the start."""

    name: str
    source: Cluster
    destination: Cluster
    spec: AppSpec
    folder: Path
    launcher: Launcher
    spark: Spark = field(default_factory=Spark)
    partitions: int = 4

    @property
    def spec_path(self) -> Path:
        return self.folder / "spec.json"

    def make_topics(self) -> None:
        for cluster, name in ((self.source, "source"), (self.destination, "destination")):
            Admin(cluster.client_properties, name).create([NewTopic(self.name, self.partitions, 1)])
        ensure_state_topics(Admin(self.destination.client_properties, "destination"), self.name, 1)

    def publish(self, *, slots: int, stopped: bool = False, policy: TopicPolicy | None = None) -> Plan:
        """A plan that spreads the topic's partitions over so many slots."""
        topics = {self.name: self.partitions}
        plan = publish(self.name, self.source, self.destination, topics, slots=slots, stopped=stopped, policy=policy)
        self.spec = self.spec.model_copy(update={"transforms": bool(plan.transformed)})
        return plan

    def produce(self, records: int) -> None:
        producer = Producer(self.source.client_properties | {"compression.type": "lz4"})
        for number in range(records):
            producer.produce(self.name, f"value {number}".encode(), f"key {number}".encode(), number % self.partitions)
            producer.poll(0)
        assert producer.flush(30) == 0

    def compare(self) -> None:
        """Record by record, what is copied with its source."""
        assert_copied(self.source, self.destination, self.name, self.partitions)

    def copied(self) -> int:
        """Records on the destination."""
        return sum(ends(self.destination, self.name, self.partitions))

    def submit(self, **changes: Any) -> Application:
        """Write the spec, changed as told, and submit the application."""
        self.spec = self.spec.model_copy(update=changes)
        self.spec.write(self.spec_path)
        return self.launcher.submit(self.name, self.spec_path, self.spark)

    def application(self) -> Application:
        found = self.launcher.state(self.name)
        assert found is not None
        return found

    def processes(self) -> list[psutil.Process]:
        """What the launcher of this machine has started."""
        assert isinstance(self.launcher, LocalLauncher)
        return [one for some in processes.find(self.launcher.directory).values() for one in some]

    def ledger(self) -> list[dict[str, Any]]:
        """Every row of this link, the oldest first."""
        if not Path(self.spec.ledger_dir).exists():
            return []
        files = pyarrow.dataset.dataset(self.spec.ledger_dir, partitioning="hive", format="parquet")
        rows = [row for row in files.to_table().to_pylist() if row["link"] == self.name]
        return sorted(rows, key=lambda row: (row["started_at_ms"], row["partition"]))

    def ledger_files(self) -> list[Path]:
        """Of the ledger, whatever they are called."""
        return sorted(one for one in Path(self.spec.ledger_dir).rglob("*") if one.is_file())

    def assert_ledger_is_whole(self) -> None:
        """For each partition its rows tell of every record that was copied, once, one row after the other."""
        for partition, copied in enumerate(ends(self.destination, self.name, self.partitions)):
            rows = [row for row in self.ledger() if row["partition"] == partition and row["sequence_from"] >= 0]
            rows.sort(key=lambda row: (row["sequence_from"], row["sequence_to"]))
            at = 0
            for row in rows:
                assert row["sequence_from"] == at, rows
                at = row["sequence_to"]
            assert at == copied == sum(row["records"] for row in rows), rows
            assert rows[0]["source_from"] == 0 and rows[-1]["source_to"] == copied, rows

    def driver_process(self) -> psutil.Process:
        """The Python side of the driver. Waits for it: head starts copy before it runs."""
        return self._one_process(lambda one: one.name() != "java" and "--spec" in one.cmdline() and _is_python(one))

    def jvm_process(self) -> psutil.Process:
        return self._one_process(lambda one: one.name() == "java")

    def _one_process(self, wanted: Callable[[psutil.Process], bool]) -> psutil.Process:
        def found() -> psutil.Process | None:
            with suppress(psutil.NoSuchProcess):  # one of them has ended in between: look again
                return next(filter(wanted, self.processes()), None)
            return None

        process: psutil.Process = self.until(found, "the process to be killed")
        return process

    def slot_process(self) -> psutil.Process | None:
        """A worker that runs a slot."""
        return next(iter(self.slot_processes()), None)

    def slot_processes(self) -> list[psutil.Process]:
        """Spark's workers that run slots: besides head starts, they alone hold connections to brokers of both clusters."""
        ports = {int(cluster.bootstrap.rpartition(":")[2]) for cluster in (self.source, self.destination)}
        return [one for one in self.processes() if ports <= _remote_ports(one) and not is_head_start(one)]

    def kill_everything(self) -> None:
        """As a machine that loses its power."""
        self.launcher.stop(self.name, grace_seconds=0.0)

    def log(self) -> str:
        return self.launcher.log_tail(self.application())

    def until(self, look: Callable[[], Any], what: str, within_seconds: float = 180.0) -> Any:
        """Wait for something of a living application; if that ends, its log says why it never came."""

        def look_if_alive() -> Any:
            answer = look()
            application = self.application()
            assert answer or not _has_ended(application), f"{what}: {self.launcher.cause(application)}\n{self.log()}"
            return answer

        return eventually(look_if_alive, what=what, within_seconds=within_seconds)

    def until_ended(self, within_seconds: float = 180.0) -> Application:
        eventually(lambda: _has_ended(self.application()), what="the end", within_seconds=within_seconds)
        return self.application()

    def until_running(self) -> None:
        self.until(lambda: self.application().state is State.RUNNING, "the application runs")


def link_of(
    name: str, clusters: Any, folder: Path, launcher: Launcher, *, spark: Spark | None = None, **changes: Any
) -> Link:
    """A link called so, with its topics, without a plan.

    Args:
        folder: for its spec, ledger and checkpoint.
        changes: of its spec.
    """
    spark = spark or Spark()
    ledger_dir, checkpoint_dir = spark.directories(str(folder / "ledger"), str(folder / "checkpoint"))
    spec = AppSpec(
        link=name,
        group=GROUP,
        source_name="source",
        source=clusters.source.client_properties,
        destination_name="destination",
        destination=clusters.destination.client_properties,
        slots=1,
        slot_memory_bytes=16 << 20,
        ledger_seconds=300,
        ledger_dir=ledger_dir,
        checkpoint_dir=checkpoint_dir,
    ).model_copy(update=changes)
    link = Link(name, clusters.source, clusters.destination, spec, folder, launcher, spark)
    link.make_topics()
    return link


def _has_ended(application: Application) -> bool:
    return not application.state.alive and application.state is not State.UNKNOWN


def _is_python(process: psutil.Process) -> bool:
    return process.cmdline()[0] == sys.executable


def is_head_start(process: psutil.Process) -> bool:
    """Whether the process copies only until Spark does."""
    try:
        return "strait.spark.head_start" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def _remote_ports(process: psutil.Process) -> set[int]:
    try:
        return {connection.raddr.port for connection in process.net_connections("tcp") if connection.raddr}
    except psutil.NoSuchProcess:
        return set()
