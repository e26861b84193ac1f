"""What each partition of a task group does and why, from its plan and its slots' reports. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from strait.model import TopicPartition
from strait.reasons import Reason
from strait.state.schema import PartitionReport, Plan, PlannedTopic, Report, Waiting

SILENT_MS = 5_000
"""A slot reports once a second; after this it is called silent. Clocks of hosts may differ by less than this."""


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One row. ``partition`` None: every partition of a topic of which not even their number is known.

    Positions are source offsets: ``position`` the next to copy, ``end`` the exclusive end; -1 where not known.
    """

    topic: str
    partition: int | None
    destination: str
    slot: int | None
    state: str
    reason: str
    detail: str
    position: int = -1
    end: int = -1
    lag_records: int = -1
    lag_seconds: float = -1.0
    records: int = 0
    """Copied in the present epoch, by whoever reported last."""


@dataclass(frozen=True, slots=True)
class SlotStatus:
    """One slot, by its newest report; ``age_ms`` None: none was ever heard. Rates are those of the newest report."""

    slot: int
    silent: bool
    age_ms: int | None
    application: str = ""
    host: str = ""
    pid: int = -1
    plan_version: int = 0
    strait_version: str = ""
    records_per_second: float = 0.0
    bytes_per_second: float = 0.0
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None
    cpu_seconds: float = 0.0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Status:
    """A task group at one moment. ``plan_version`` 0: no plan was ever published, and there are no rows."""

    link: str
    group: str
    plan_version: int
    stopped: bool
    slots: tuple[SlotStatus, ...]
    partitions: tuple[PartitionStatus, ...]

    @property
    def lag_records(self) -> int:
        """Of all partitions whose lag is known."""
        return sum(max(0, row.lag_records) for row in self.partitions)

    @property
    def records_per_second(self) -> float:
        """Of all slots that are heard."""
        return sum(slot.records_per_second for slot in self.slots if not slot.silent)

    @property
    def waiting(self) -> tuple[PartitionStatus, ...]:
        """The rows that wait for something."""
        return tuple(row for row in self.partitions if row.state == "waiting")

    def as_data(self) -> dict[str, Any]:
        """Plain data, with the totals."""
        return asdict(self) | {"lag_records": self.lag_records, "records_per_second": self.records_per_second}


def status_of(
    link: str,
    group: str,
    plan: Plan | None,
    reports: Mapping[tuple[str, int], Sequence[Report]],
    now_ms: int,
    topic: str | None = None,
) -> Status:
    """Put plan and reports together. ``topic``: only this source topic."""
    if plan is None:
        return Status(link, group, 0, False, (), ())
    of_group = {slot: parts for (name, slot), parts in reports.items() if name == group}
    slots = tuple(_slot(number, of_group.get(number, ()), now_ms) for number in range(plan.slots))
    heard = _heard(report for parts in of_group.values() for report in parts)
    silent = {slot.slot for slot in slots if slot.silent}
    rows = [row for planned in plan.topics for row in _rows(planned, plan, heard, silent)]
    known = {planned.source for planned in plan.topics}
    rows += [_unknown(item) for item in plan.waiting if item.topic not in known]
    chosen = (row for row in rows if topic is None or row.topic == topic)
    ordered = sorted(chosen, key=lambda row: (row.topic, -1 if row.partition is None else row.partition))
    return Status(link, group, plan.version, plan.stopped, slots, tuple(ordered))


def _slot(number: int, parts: Sequence[Report], now_ms: int) -> SlotStatus:
    newest = max(parts, key=lambda report: report.at_ms, default=None)
    if newest is None:
        return SlotStatus(number, silent=True, age_ms=None)
    age_ms = max(0, now_ms - newest.at_ms)
    return SlotStatus(
        slot=number,
        silent=age_ms > SILENT_MS,
        age_ms=age_ms,
        application=newest.application,
        host=newest.host,
        pid=newest.pid,
        plan_version=newest.plan_version,
        strait_version=newest.strait_version,
        records_per_second=newest.records_per_second,
        bytes_per_second=newest.bytes_per_second,
        latency_ms_p50=newest.latency_ms_p50,
        latency_ms_p99=newest.latency_ms_p99,
        cpu_seconds=newest.cpu_seconds,
        memory_bytes=newest.memory_bytes,
    )


def _heard(reports: Iterable[Report]) -> dict[TopicPartition, PartitionReport]:
    """The newest word on each partition, whoever said it: one that has just moved was last seen by another slot."""
    heard: dict[TopicPartition, PartitionReport] = {}
    for report in sorted(reports, key=lambda report: report.at_ms):
        heard.update({TopicPartition(item.topic, item.partition): item for item in report.partitions})
    return heard


def _rows(
    topic: PlannedTopic, plan: Plan, heard: Mapping[TopicPartition, PartitionReport], silent: set[int]
) -> Iterator[PartitionStatus]:
    for number, slot in enumerate(topic.slots):
        item = heard.get(TopicPartition(topic.source, number))
        positions = () if item is None else _positions(item)
        if slot is None:
            why = _why(plan, topic.source, number)
            state, reason, detail = "waiting", why.reason if why else "", why.detail if why else ""
        elif slot in silent:
            state, reason = "waiting", str(Reason.SLOT_SILENT)
            detail = f"slot {slot} has not reported for {SILENT_MS // 1000} s"
        elif item is None:
            state, reason, detail = "starting", "", f"slot {slot} has not taken it up yet"
        else:
            state, reason, detail = item.state, item.reason or "", item.detail
        yield PartitionStatus(topic.source, number, topic.destination, slot, state, reason, detail, *positions)


def _positions(item: PartitionReport) -> tuple[int, int, int, float, int]:
    return item.position, item.end, item.lag_records, item.lag_seconds, item.records


def _why(plan: Plan, topic: str, partition: int) -> Waiting | None:
    of_topic = (item for item in plan.waiting if item.topic == topic)
    return next((item for item in of_topic if not item.partitions or partition in item.partitions), None)


def _unknown(item: Waiting) -> PartitionStatus:
    return PartitionStatus(item.topic, None, "", None, "waiting", item.reason, item.detail)
