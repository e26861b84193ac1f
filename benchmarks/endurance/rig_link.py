"""A link as users make it, `strait apply` and all, whose slots are processes that can be killed and measured."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Producer

from endurance import processes
from strait.config import naming
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.kafka.reading import read_topic
from strait.model import TopicFacts
from strait.state.reader import StateReader
from strait.state.report_records import PartitionReport
from support.fixtures.waiting import eventually
from support.kafka.log_ends import LogEnds
from support.links.far import FarLink

STATE_TOPICS = {
    "plan": naming.plan_topic,
    "map": naming.map_topic,
    "reports": naming.reports_topic,
    "history": naming.history_topic,
    "ledger": naming.ledger_topic,
    "losses": naming.losses_topic,
}
_KEEP = {"retention.ms": "-1"}
_PATIENCE_SECONDS = 600.0
_ATTEMPTS = 5
_ASKED_AT_ONCE = 2_000


@dataclass
class RigLink(FarLink):
    """Topics have the same names on both sides. ``more``: further settings of the link."""

    more: dict[str, Any] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        found = super().settings
        found["links"][self.name] |= {"replication_factor": 1, "groups": {"default": {"slots": self.slots}}}
        found["links"][self.name] |= self.more or {}
        return found

    @property
    def links_file(self) -> Path:
        return self.folder / f"links-{self.name}.json"

    def begin(self) -> list[processes.Cost]:
        """Create the source's topics and run `strait apply`, which does the rest, until it succeeds: what each of its
        runs cost. Returns when brokers serve the topics: they create the logs later than the controller says so."""
        admin = Admin(self.source.client_properties, "source")
        admin.create([NewTopic(topic, count, 1, _KEEP) for topic, count in self.topics.items()])
        self.links_file.write_text(json.dumps(self.settings), encoding="utf-8")
        _until_served(self.source, self.topics)
        applied = [self.strait("apply")]
        while applied[-1].code and len(applied) < _ATTEMPTS:  # brokers that are busy serve too late what they created
            applied.append(self.strait("apply"))
        applied[-1].check()
        _until_served(self.destination, self.topics)
        return applied

    def strait(self, command: str) -> processes.Cost:
        """Run a command on this link."""
        return processes.strait(self.folder, command, self.name, "-f", str(self.links_file))

    def module(self, name: str, *more: str) -> processes.Cost:
        """Run a module of this benchmark on this link."""
        return processes.module(name, self.folder, str(self.links_file), self.name, *more)

    def run_slot(self, slot: int = 0) -> psutil.Process:
        """Start a slot."""
        return psutil.Process(self.start_slot(slot).pid)

    def write(self, records: int = 1, *, tag: str, topics: Sequence[str] | None = None) -> int:
        """So many records into each partition, each unlike all others if ``tag`` is new; returns how many in all."""
        producer = Producer(
            self.source.client_properties | {"queue.buffering.max.messages": 1_000_000, "linger.ms": 50}
        )
        chosen = [(topic, number) for topic in topics or self.topics for number in range(self.topics[topic])]
        for turn in range(records):
            for topic, partition in chosen:
                producer.produce(topic, f"{tag} {turn} {topic} {partition}".encode(), partition=partition)
                producer.poll(0)
        if left := producer.flush(_PATIENCE_SECONDS):
            raise TimeoutError(f"{left} records were not taken")
        return records * len(chosen)

    def seconds_until_copied(self, began: float) -> float:
        """Wait until the destination holds as many records as the source; seconds since ``began`` (monotonic)."""
        with closing(LogEnds(self.source, self.topics)) as source:
            left = dict(zip(source.partitions, source.now(), strict=True))
        with closing(LogEnds(self.destination, {})) as to:

            def all_there() -> bool:
                """Ask for some of those that were not there yet, since an answer about all takes the brokers a while."""
                asked = list(left)[:_ASKED_AT_ONCE]
                for place, end in zip(asked, to.of(asked), strict=True):
                    if end >= left[place]:
                        del left[place]
                return not left

            eventually(
                all_there, what=lambda: f"{len(left)} lack records: {self.log()}", within_seconds=_PATIENCE_SECONDS
            )
        return time.monotonic() - began

    def seconds_until_first_record(self, began: float) -> float:
        """Write one record, and wait for it."""
        topic = next(iter(self.topics))
        with closing(LogEnds(self.destination, {topic: 1})) as ends:
            (before,) = ends.now()
            producer = Producer(self.source.client_properties)
            producer.produce(topic, b"the first", partition=0)
            producer.flush(_PATIENCE_SECONDS)
            eventually(lambda: ends.now()[0] > before, what=lambda: f"the first record: {self.log()}",
                       within_seconds=_PATIENCE_SECONDS)  # fmt: skip
        return time.monotonic() - began

    def seconds_until(self, began: float, holds: Callable[[PartitionReport], bool]) -> float:
        """Wait until slots that run now report this of all partitions."""
        wanted = sum(self.topics.values())
        alive = {process.pid for process in self._running if process.poll() is None}
        follow = StateReader(self.destination.client_properties, "destination", self.name, follow=("reports",))
        with follow as state:
            state.catch_up(60.0)

            def count() -> int:
                state.poll(0.2)
                reports = (report for parts in state.reports.values() for report in parts if report.pid in alive)
                return sum(holds(row) for report in reports for row in report.partitions)

            eventually(lambda: count() >= wanted, what=lambda: f"{count()} of {wanted}: {self.log()}",
                       within_seconds=_PATIENCE_SECONDS)  # fmt: skip
        return time.monotonic() - began

    def observe_destination(self) -> Mapping[str, TopicFacts]:
        """The link's topics there."""
        found = Admin(self.destination.client_properties, "it").observe(self.topics.__contains__).topics
        return {name: topic for name, topic in found.items() if name in self.topics}

    def state_bytes(self, kind: str) -> int:
        """What a state topic takes on the disks of the destination, indexes too."""
        name = STATE_TOPICS[kind](self.name)
        files = (file for log in self.destination.directory.glob(f"**/{name}-0") for file in log.iterdir())
        return sum(_disk_bytes(file) for file in files)

    def state_records(self, kind: str) -> int:
        """Records that a reader of the whole topic gets."""
        name = STATE_TOPICS[kind](self.name)
        return sum(1 for _ in read_topic(self.destination.client_properties, "destination", name))


def _until_served(cluster: Cluster, topics: Mapping[str, int]) -> None:
    with closing(LogEnds(cluster, topics)) as ends:
        ends.now(_PATIENCE_SECONDS)


def _disk_bytes(file: Path) -> int:
    try:
        return file.stat().st_blocks * 512
    except FileNotFoundError:  # a segment that was deleted meanwhile
        return 0
