"""A link made by hand for the engine's own tests: topics, a published plan, and slots as processes that can be
killed."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strait.config import naming
from strait.config.app_spec import AppSpec
from strait.control.plane import GROUP
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.kafka.reading import read_topic
from strait.reasons import Reason
from strait.state.codec import decode
from strait.state.ledger_records import LedgerPart
from strait.state.reader import StateReader
from strait.state.report_records import PartitionReport
from strait.state.schema import Budget, Loss, OffsetMapping, Plan, PlannedGroupSync, TopicPolicy
from strait.state.topics import ensure_state_topics
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_copied, assert_same_records, read_all
from support.links.handmade import publish
from support.links.processes import StartsProcesses

_KEEP = {"retention.ms": "-1"}  # records here have old timestamps: retention must not eat them during a test


def replicas(cluster: Cluster) -> int:
    """As many as the cluster can hold."""
    return min(3, len(cluster.broker_ids))


@dataclass
class EngineLink(StartsProcesses):
    """One link between two clusters; ``topics``: name -> partitions, under the same name on both sides."""

    name: str
    source: Cluster
    destination: Cluster
    folder: Path
    topics: dict[str, int]
    slot_memory_bytes: int = 64 << 20
    ledger_seconds: int = 3600
    slots: int = 1
    policy: TopicPolicy = field(default_factory=TopicPolicy)
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def spec(self) -> AppSpec:
        return AppSpec(
            link=self.name,
            group=GROUP,
            source_name="source",
            source=self.source.client_properties,
            destination_name="destination",
            destination=self.destination.client_properties,
            slots=self.slots,
            slot_memory_bytes=self.slot_memory_bytes,
            ledger_seconds=self.ledger_seconds,
            ledger_dir=str(self.folder / "ledger"),
            checkpoint_dir=str(self.folder / "checkpoint"),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """A links file with this link alone, between clusters a and b."""
        return {
            "clusters": {"a": self.source.client_properties, "b": self.destination.client_properties},
            "links": {self.name: {"source": "a", "destination": "b", "topics": {"include": list(self.topics)}}},
        }

    def make_topics(
        self,
        *,
        source_configs: Mapping[str, str] | None = None,
        destination_configs: Mapping[str, str] | None = None,
        source_replicas: int | None = None,
    ) -> None:
        """Create every topic on both sides, by default with as many replicas as can be, and the state topics."""
        for cluster, end, configs, copies in (
            (self.source, "source", source_configs, source_replicas or replicas(self.source)),
            (self.destination, "destination", destination_configs, replicas(self.destination)),
        ):
            Admin(cluster.client_properties, end).create(
                [
                    NewTopic(topic, partitions, copies, _KEEP | dict(configs or {}))
                    for topic, partitions in self.topics.items()
                ]
            )
        admin = Admin(self.destination.client_properties, "destination")
        ensure_state_topics(admin, self.name, replicas(self.destination))

    def publish(
        self,
        topics: Sequence[str] | None = None,
        *,
        turn: int = 0,
        stopped: bool = False,
        policies: Mapping[str, TopicPolicy] | None = None,
        budgets: Sequence[Budget] = (),
        consumer_groups: PlannedGroupSync | None = None,
        besides: Mapping[str, Any] | None = None,
    ) -> Plan:
        """Publish a plan for these topics (default: all), spread over the slots, shifted by ``turn``."""
        chosen = {topic: self.topics[topic] for topic in (self.topics if topics is None else topics)}
        return publish(
            self.name,
            self.source,
            self.destination,
            chosen,
            slots=self.slots,
            turn=turn,
            stopped=stopped,
            policy=self.policy,
            policies=policies,
            budgets=budgets,
            consumer_groups=consumer_groups,
            besides=besides,
        )

    def start_slot(
        self,
        slot: int = 0,
        *,
        group: str = GROUP,
        changed: Mapping[str, float] | None = None,
        clock_jumps_seconds: float = 0.0,
        standby: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Run a slot in a process of its own. ``changed``: constants ("module:NAME") that have other
        values there, such as time-outs too long for a test. Its wall clock jumps that far every second, and back."""
        path = self.folder / f"spec-{time.monotonic_ns()}.json"
        self.spec.model_copy(update={"group": group, "standby": standby}).write(path)
        unlike = {"changed": dict(changed or {}), "clock_jumps_seconds": clock_jumps_seconds}
        return self.start_process("support.links.slot_process", str(path), str(slot), json.dumps(unlike))

    def copied(self) -> int:
        """Records on the destination, all topics."""
        return sum(sum(ends(self.destination, topic, partitions)) for topic, partitions in self.topics.items())

    def written(self) -> int:
        """Records on the source, all topics."""
        return sum(sum(ends(self.source, topic, partitions)) for topic, partitions in self.topics.items())

    def until_copied(self, records: int | None = None, within_seconds: float = 240.0) -> None:
        """Wait until the destination holds so many records, by default as many as the source."""
        wanted = self.written() if records is None else records
        eventually(
            lambda: self.copied() >= wanted,
            what=lambda: f"{wanted} copied: {self.log()}\n{self.waiting()[:10]}",
            within_seconds=within_seconds,
        )

    def until_seen(self, within_seconds: float = 240.0) -> None:
        """Wait until the slots say that they have seen every partition's last stable offset and copied all before it.
        For sources whose offsets do not all hold records, so that they cannot be counted from outside."""
        ends_now = {topic: ends(self.source, topic, count) for topic, count in self.topics.items()}
        wanted = {
            (topic, partition): end for topic, all_ends in ends_now.items() for partition, end in enumerate(all_ends)
        }
        with self.reports() as newest:

            def done() -> bool:
                rows = {where: newest(*where) for where in wanted}
                return all(row is not None and row.position >= wanted[where] for where, row in rows.items())

            eventually(
                done,
                what=lambda: f"all copied: {[newest(*where) for where in wanted]} {self.log()}",
                within_seconds=within_seconds,
            )

    def runs(self, topic: str, partition: int) -> tuple[OffsetMapping, ...]:
        """What the map says now."""
        with StateReader(self.destination.client_properties, "destination", self.name) as state:
            state.catch_up()
            return state.runs.get((topic, partition), ())

    def losses(self) -> tuple[Loss, ...]:
        """The loss ledger as it is now."""
        with StateReader(self.destination.client_properties, "destination", self.name, follow=("losses",)) as state:
            state.catch_up()
            return state.losses

    def told_for_the_ledger(self) -> list[LedgerPart]:
        """What the slots have said."""
        topic = naming.ledger_topic(self.name)
        return [
            decode(LedgerPart, message.key(), message.value() or b"")
            for message in read_topic(self.destination.client_properties, "destination", topic)
        ]

    def assert_same_records(self) -> None:
        """As ``assert_equal``, but for the offsets: those of the source that hold no record have none here."""
        for topic, partitions in self.topics.items():
            assert_same_records(read_all(self.source, topic, partitions), read_all(self.destination, topic, partitions))

    def assert_equal(self) -> None:
        try:
            for topic, partitions in self.topics.items():
                assert_copied(self.source, self.destination, topic, partitions)
        except AssertionError as unequal:
            unequal.add_note(self.log())
            raise

    def log(self) -> str:
        return super().log()[-2000:]

    @contextmanager
    def reports(self) -> Iterator[Callable[[str, int], PartitionReport | None]]:
        """A function (topic, partition) -> its newest report."""
        properties = self.destination.client_properties
        with StateReader(properties, "destination", self.name, follow=("reports",)) as state:
            state.catch_up()

            def newest(topic: str, partition: int) -> PartitionReport | None:
                state.poll(0.1)
                found = [
                    (report.at_ms, row)
                    for parts in state.reports.values()
                    for report in parts
                    for row in report.partitions
                    if (row.topic, row.partition) == (topic, partition)
                ]
                return max(found, key=lambda pair: pair[0])[1] if found else None

            yield newest

    def reporters(self) -> set[int]:
        """The processes that have reported within the last two seconds."""
        with StateReader(self.destination.client_properties, "destination", self.name, follow=("reports",)) as state:
            state.catch_up()
        since_ms = time.time() * 1000 - 2000
        return {report.pid for parts in state.reports.values() for report in parts if report.at_ms >= since_ms}

    def waiting(self) -> list[str]:
        """What the slots say now of partitions that wait, and why."""
        with StateReader(self.destination.client_properties, "destination", self.name, follow=("reports",)) as state:
            state.catch_up()
        newest: dict[tuple[str, int], tuple[int, PartitionReport]] = {}
        for report in (report for parts in state.reports.values() for report in parts):
            for row in report.partitions:
                key = row.topic, row.partition
                newest[key] = max(newest.get(key, (0, row)), (report.at_ms, row), key=lambda pair: pair[0])
        return [
            f"{topic}-{partition} {row.state} {row.reason} {row.detail}"
            for (topic, partition), (_, row) in sorted(newest.items())
            if row.reason is not None
        ]

    def until_waiting(
        self, topic: str, partition: int, reason: Reason, within_seconds: float = 180.0
    ) -> PartitionReport:
        """Wait until the slot says that the partition waits for this reason."""
        with self.reports() as newest:

            def look() -> PartitionReport | None:
                row = newest(topic, partition)
                return row if row is not None and row.reason == reason else None

            return eventually(
                look,
                what=lambda: f"{reason}; last {newest(topic, partition)} {self.log()}",
                within_seconds=within_seconds,
            )
