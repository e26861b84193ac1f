"""Links between several clusters under the same names, each with its real control plane and slots as processes."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from strait.config import links
from strait.config.links import LinksFile
from strait.control.link_status import link_groups
from strait.control.pausing import set_stopped
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.report_records import PartitionReport
from strait.state.schema import OffsetMapping
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import Record, read_all
from support.links.far import FarCluster


@dataclass
class Mesh:
    """``links``: pairs of names in ``clusters``. The topic is on every cluster; whoever writes there writes what
    `born` made. ``rule``: of the topic; ``topics``: more for the links' blocks of that name;
    ``settings``: more for the links."""

    clusters: Mapping[str, Cluster]
    links: Iterable[tuple[str, str]]
    topic: str
    folder: Path
    copies: str | None = None
    rule: Mapping[str, Any] = field(default_factory=lambda: {"on_foreign": "expect"})
    topics: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    partitions: int = 2
    ledger_seconds: int = 3600
    born: dict[str, int] = field(default_factory=dict)
    _slots: dict[tuple[str, str], subprocess.Popen[bytes]] = field(default_factory=dict)

    def name(self, link: tuple[str, str]) -> str:
        return f"{link[0]}-{link[1]}-{self.topic[-8:]}"

    @property
    def file(self) -> LinksFile:
        return links.parse(self.contents, where="test")

    @property
    def contents(self) -> dict[str, Any]:
        """Of the links file. Clusters behind a proxy are reached through it."""
        topics = {"include": [self.topic], "rules": [{"match": ".*", **self.rule}], **self.topics}
        settings: dict[str, Any] = {"topics": topics, "ledger_seconds": self.ledger_seconds, **self.settings}
        if self.copies is not None:
            settings["copies"] = self.copies
        every = {self.name(link): settings | {"source": link[0], "destination": link[1]} for link in self.links}
        clusters = {
            name: dict(cluster.far_properties if isinstance(cluster, FarCluster) else cluster.client_properties)
            for name, cluster in self.clusters.items()
        }
        return {"clusters": clusters, "links": every}

    def handle(self, link: tuple[str, str]) -> ConfiguredLink:
        return ConfiguredLink.of(self.file, self.name(link))

    def make_topics(self) -> None:
        for name, cluster in self.clusters.items():
            Admin(cluster.client_properties, name).create([NewTopic(self.topic, self.partitions, 1)])

    def start(self, link: tuple[str, str], changed: Mapping[str, float] | None = None) -> None:
        """Plan the link, if that was not done, and run its slot. ``changed``: as `slot_process` has it."""
        spec_path = self.folder / f"{self.name(link)}.json"
        if not spec_path.exists():
            with Control(self.file, self.name(link)) as control:
                plan = control.apply().plan
                assert plan.waiting == ()
                spec = control.spec(plan, ledger_dir=self.folder / "ledger", checkpoint_dir=self.folder / "checkpoint")
                spec.write(spec_path)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        unlike = json.dumps({"changed": dict(changed or {}), "clock_jumps_seconds": 0.0})
        self._slots[link] = subprocess.Popen(
            [sys.executable, "-m", "support.links.slot_process", str(spec_path), "0", unlike],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "slots.log").open("ab"),
            start_new_session=True,  # with a share of a busy machine of its own, as brokers and Spark have
        )

    def kill(self, link: tuple[str, str]) -> None:
        """End its slot as a crash would."""
        self._slots[link].send_signal(signal.SIGKILL)
        self._slots.pop(link).wait(10)

    def restart(self, link: tuple[str, str]) -> None:
        """After a failover: `strait start`, and its slot, which has ended."""
        set_stopped(self.handle(link), stopped=False, by="a test")
        self._slots.pop(link).wait(60)
        self.start(link)

    def stop(self) -> None:
        for link in list(self._slots):
            self.kill(link)

    def write(self, name: str, records: int) -> None:
        """Records that say where they were born and in which order, from a producer of their own."""
        producer = Producer(self.clusters[name].client_properties | {"linger.ms": 1, "enable.idempotence": True})
        for _ in range(records):
            number = self.born.get(name, 0)
            self.born[name] = number + 1
            producer.produce(self.topic, f"{name} {number}".encode(), partition=number % self.partitions)
            producer.poll(0)
        assert producer.flush(60) == 0

    @contextmanager
    def writing(self, rounds: int, records: int, pause_seconds: float) -> Iterator[None]:
        """Everybody writes at once, round after round, each with a new producer."""

        def work(name: str) -> None:
            for _ in range(rounds):
                self.write(name, records)
                time.sleep(pause_seconds)

        threads = [threading.Thread(target=work, args=(name,)) for name in self.clusters]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for thread in threads:
                thread.join(120)

    def until_ready(self, link: tuple[str, str]) -> None:
        """Its slot reports, and every partition is copied."""
        eventually(
            lambda: (
                (rows := link_groups(self.handle(link)).rows)
                and all(row.state in ("copying", "caught_up") for row in rows)
            ),
            what=lambda: f"the link copies: {link_groups(self.handle(link)).rows} {self.log()}",
        )

    def until_everywhere(self) -> None:
        """Wait until every cluster holds as many records as were born in all of them."""
        wanted = sum(self.born.values())

        def held() -> dict[str, int]:
            return {name: sum(ends(one, self.topic, self.partitions)) for name, one in self.clusters.items()}

        eventually(
            lambda: all(count >= wanted for count in held().values()),
            what=lambda: f"{wanted} everywhere, not {held()}: {self.log()}",
            within_seconds=180,
        )

    def assert_each_once(self) -> None:
        """Every record in every cluster, once, unchanged, and those of one cluster in the order of their writing."""
        for name, cluster in self.clusters.items():
            for partition, records in enumerate(read_all(cluster, self.topic, self.partitions)):
                for born_in, count in self.born.items():
                    found = [number for where, number in map(_origin, records) if where == born_in]
                    assert found == list(range(partition, count, self.partitions)), f"of {born_in} in {name}"
                assert {record.headers for record in records} <= {()}

    def reports(self, link: tuple[str, str]) -> list[PartitionReport]:
        """The newest of each of its partitions."""
        with self._state(link) as state:
            return [row for parts in state.reports.values() for report in parts for row in report.partitions]

    def runs(self, link: tuple[str, str]) -> dict[int, tuple[OffsetMapping, ...]]:
        """What its map says."""
        with self._state(link) as state:
            return {partition: state.runs[topic, partition] for topic, partition in state.runs}

    @contextmanager
    def _state(self, link: tuple[str, str]) -> Iterator[StateReader]:
        properties = self.clusters[link[1]].client_properties
        with StateReader(properties, link[1], self.name(link), follow=("map", "reports")) as state:
            state.catch_up()
            yield state

    def log(self) -> str:
        path = self.folder / "slots.log"
        return path.read_text()[-2000:] if path.exists() else ""


def _origin(record: Record) -> tuple[str, int]:
    name, number = (record.value or b"").decode().split()
    return name, int(number)
