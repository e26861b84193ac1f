"""What each partition of a task group does and why, from its plan and its slots' reports. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from strait.config.validation import did_you_mean
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.planning.history.overrun import duration, observations, seconds_to_loss
from strait.planning.history.pace import Pace
from strait.reasons import Kind, Reason
from strait.state.schema import PartitionReport, Plan, PlannedTopic, Report, Waiting
from strait.state.slot_reports import lag_seconds, said_at

SILENT_MS = 5_000
"""A slot reports once a second; after this it is called silent. Clocks of hosts may differ by less than this."""


_TELL_SECONDS = 5.0  # what catches up sooner is as good as caught up


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One row. ``partition`` None: every partition of a topic of which not even their number is known.

    Positions are source offsets: ``position`` the next to copy, ``end`` the last stable offset, up to which records can
    be read; -1 where not known.
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
    """Copied since the slot's start, by whoever reported last."""
    log_start: int = -1
    """First offset that the source still holds."""
    written: int = -1
    """Records that the link has ever written to the copy, whichever task group wrote them; -1: not known."""
    seconds_to_loss: float | None = None
    """How soon retention reaches what is not copied, if the partition stood still; None: not foreseen."""
    seconds_to_catch_up: float | None = None
    """At the present pace; None: it has caught up, comes no nearer, or is not known."""
    records_per_second: float | None = None
    """Copied lately; None: not known."""
    high_watermark: int = -1
    """Of the source: up to where there are records, in open transactions or not."""
    held_back_records: int = -1
    """From ``end`` up to it: they wait for an open transaction to end. Not part of the lag."""
    held_back_seconds: float = -1.0
    """Since when; 0 if none are."""
    quarantined: int = 0
    """Records of it in quarantine and not settled. Counted where a rule says that refused records go there."""

    @property
    def needs_decision(self) -> bool:
        """It waits until an operator decides."""
        known = self.state == "waiting" and self.reason in set(Reason)
        return known and Reason(self.reason).kind is Kind.NEEDS_DECISION


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
    heartbeat_age_ms: int | None = None
    """Since the newest heartbeat was written that the destination has; None: none, or not copied by this slot."""
    heartbeat_latency_ms: float | None = None
    """What that one took."""
    heartbeat_trouble: str = ""
    """Why this slot could not write the last one."""


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
    def held_back_records(self) -> int:
        """By open transactions, of all partitions where that is known."""
        return sum(max(0, row.held_back_records) for row in self.partitions)

    @property
    def records_per_second(self) -> float:
        """Of all slots that are heard."""
        return sum(slot.records_per_second for slot in self.slots if not slot.silent)

    @property
    def latency_ms_p50(self) -> float | None:
        """Of the slot that takes longest, of those that are heard; None: no data."""
        return _longest(slot.latency_ms_p50 for slot in self.slots if not slot.silent)

    @property
    def latency_ms_p99(self) -> float | None:
        """Of the slot that takes longest, of those that are heard; None: no data."""
        return _longest(slot.latency_ms_p99 for slot in self.slots if not slot.silent)

    @property
    def heartbeat(self) -> SlotStatus | None:
        """The slot that knows the newest heartbeat, be it silent; None where this group copies none."""
        found = (slot for slot in self.slots if slot.heartbeat_age_ms is not None or slot.heartbeat_trouble)
        return min(
            found, key=lambda slot: inf if slot.heartbeat_age_ms is None else slot.heartbeat_age_ms, default=None
        )

    @property
    def waiting(self) -> tuple[PartitionStatus, ...]:
        """The rows that wait for something."""
        return tuple(row for row in self.partitions if row.state == "waiting")

    @property
    def stuck(self) -> dict[tuple[str, int | None], str]:
        """What is not copied and nobody has paused, with why; nothing of a stopped group."""
        rows = [] if self.stopped else [row for row in self.partitions if row.state in ("waiting", "starting")]
        return {(row.topic, row.partition): row.reason or row.state for row in rows if row.reason != Reason.PAUSED}

    @property
    def lag_known(self) -> bool:
        """Of every partition."""
        return all(row.lag_records >= 0 for row in self.partitions)

    @property
    def healthy(self) -> bool:
        """No partition needs a decision, and every slot reports unless the group is stopped."""
        decisions = any(row.needs_decision for row in self.partitions)
        return not decisions and (self.stopped or not any(slot.silent for slot in self.slots))

    def as_data(self) -> dict[str, Any]:
        """Plain data, with the totals."""
        return asdict(self) | {
            "lag_records": self.lag_records,
            "held_back_records": self.held_back_records,
            "records_per_second": self.records_per_second,
            "latency_ms_p50": self.latency_ms_p50,
            "latency_ms_p99": self.latency_ms_p99,
        }


def status_of(
    link: str,
    group: str,
    plan: Plan | None,
    reports: Mapping[tuple[str, int], Sequence[Report]],
    now_ms: int,
    topic: str | None = None,
    earlier: Mapping[tuple[str, int], Sequence[Report]] | None = None,
    pace: Pace | None = None,
) -> Status:
    """Put plan and reports together.

    Args:
        topic: only this source topic.
        earlier: reports of some hours ago, to foresee losses from.
        pace: how fast partitions catch up.

    Raises:
        ConfigError: the plan knows no such topic.
    """
    if plan is None:
        return Status(link, group, 0, False, (), ())
    if topic is not None:
        _check_known(link, plan, topic)
    of_group = {slot: parts for (name, slot), parts in reports.items() if name == group}
    slots = tuple(_slot(number, of_group.get(number, ()), now_ms) for number in range(plan.slots))
    heard = _heard(report for parts in of_group.values() for report in parts)
    silent = {slot.slot for slot in slots if slot.silent}
    losing = seconds_to_loss(observations(group, earlier or {}), observations(group, reports))
    found = (row for planned in plan.topics for row in _rows(planned, plan, heard, silent, losing, now_ms))
    rows = [_paced(row, pace or Pace()) for row in found]
    known = {planned.source for planned in plan.topics}
    rows += [row for item in plan.waiting if item.topic not in known for row in _unplanned(item)]
    chosen = (row for row in rows if topic is None or row.topic == topic)
    ordered = sorted(chosen, key=lambda row: (row.topic, -1 if row.partition is None else row.partition))
    return Status(link, group, plan.version, plan.stopped, slots, tuple(ordered))


def with_quarantined(status: Status, quarantined: Mapping[TopicPartition, int]) -> Status:
    """The same with how many records of each partition are quarantined; a partition that nothing else is wrong with says
    so."""
    return replace(status, partitions=tuple(_with_quarantined(row, quarantined) for row in status.partitions))


def _with_quarantined(row: PartitionStatus, quarantined: Mapping[TopicPartition, int]) -> PartitionStatus:
    count = 0 if row.partition is None else quarantined.get(TopicPartition(row.topic, row.partition), 0)
    if not count:
        return row
    told = "; ".join(filter(None, (row.detail, f"{count:,} records in quarantine")))
    return replace(row, quarantined=count, detail=told, reason=row.reason or str(Reason.QUARANTINED))


def _check_known(link: str, plan: Plan, topic: str) -> None:
    known = {planned.source for planned in plan.topics} | {item.topic for item in plan.waiting}
    if topic not in known:
        problem = f"its plan has no topic {topic!r}{did_you_mean(topic, known)}"
        raise ConfigError(f"link {link}", [problem], hint="`strait plan` lists the topics that are left out")


def _slot(number: int, parts: Sequence[Report], now_ms: int) -> SlotStatus:
    newest = max(parts, key=lambda report: report.at_ms, default=None)
    if newest is None:
        return SlotStatus(number, silent=True, age_ms=None)
    age_ms = max(0, now_ms - newest.at_ms)
    beat = newest.heartbeat
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
        heartbeat_age_ms=None if beat is None or beat.arrived_ms < 0 else max(0, now_ms - beat.arrived_ms),
        heartbeat_latency_ms=None if beat is None else beat.latency_ms,
        heartbeat_trouble="" if beat is None else beat.trouble,
    )


def _longest(times: Iterable[float | None]) -> float | None:
    return max((time for time in times if time is not None), default=None)


def _heard(reports: Iterable[Report]) -> dict[TopicPartition, tuple[PartitionReport, Report]]:
    """The newest word on each partition, whoever said it: one that has just moved was last seen by another slot."""
    heard: dict[TopicPartition, tuple[PartitionReport, Report]] = {}
    for report in sorted(reports, key=lambda report: report.at_ms):
        for item in report.partitions:
            place = TopicPartition(item.topic, item.partition)
            other = heard.get(place)
            if other is None or said_at(*other) <= said_at(item, report):
                heard[place] = item, report
    return heard


def _rows(
    topic: PlannedTopic,
    plan: Plan,
    heard: Mapping[TopicPartition, tuple[PartitionReport, Report]],
    silent: set[int],
    losing: Mapping[TopicPartition, float],
    now_ms: int,
) -> Iterator[PartitionStatus]:
    for number, slot in enumerate(topic.slots):
        item, report = heard.get(TopicPartition(topic.source, number), (None, None))
        positions = () if item is None or report is None else _positions(item, report)
        if slot is None:
            why = _why(plan, topic.source, number)
            if why is None:
                continue  # another task group copies it, and tells of it
            state, reason, detail = "waiting", why.reason, why.detail
        elif slot in silent and plan.stopped:
            state, reason, detail = "waiting", str(Reason.LINK_STOPPED), "nothing is copied until it is started"
        elif slot in silent:
            state, reason = "waiting", str(Reason.SLOT_SILENT)
            detail = f"slot {slot} has not reported for {SILENT_MS // 1000} s"
        elif item is None:
            state, reason, detail = "starting", "", f"slot {slot} has not reported it yet"
        else:
            state, reason, detail = item.state, item.reason or "", item.detail
        row = PartitionStatus(topic.source, number, topic.destination, slot, state, reason, detail, *positions)
        row = replace(row, seconds_to_loss=losing.get(TopicPartition(topic.source, number)))
        yield row if item is None else _with_held_back(row, item, now_ms)


def _with_held_back(row: PartitionStatus, item: PartitionReport, now_ms: int) -> PartitionStatus:
    """With what an open transaction of the source holds back; one that is the reason says how much and for how long."""
    if item.end < 0:
        return row
    seconds = max(0, now_ms - item.held_since_ms) / 1000 if item.held_since_ms >= 0 else 0.0
    row = replace(
        row,
        high_watermark=item.end + item.held_back_records,
        held_back_records=item.held_back_records,
        held_back_seconds=round(seconds, 3),
    )
    if row.reason != Reason.OPEN_TRANSACTION:
        return row
    return replace(row, detail=f"{item.held_back_records:,} records held back for {duration(seconds)}: {row.detail}")


def _paced(row: PartitionStatus, pace: Pace) -> PartitionStatus:
    """A partition that copies says how long it will, and what holds it back."""
    where = TopicPartition(row.topic, row.partition or 0)
    if row.partition is not None:
        row = replace(row, records_per_second=pace.records_per_second.get(where))
    if row.state != "copying":
        return row
    left = pace.seconds_left.get(where)
    if where in pace.throttled:
        return replace(row, reason=str(Reason.THROTTLED), detail=pace.throttled[where], seconds_to_catch_up=left)
    detail = f"about {duration(left)} until caught up" if left is not None and left > _TELL_SECONDS else ""
    return replace(row, detail=detail, seconds_to_catch_up=left)


def _positions(item: PartitionReport, report: Report) -> tuple[int, int, int, float, int, int, int]:
    known = item.position >= 0 and item.end >= 0
    seconds = round(lag_seconds(item, report), 3)
    if item.lag_records > 0 and seconds <= 0:
        seconds = -1.0  # nothing was copied since the slot's start, or its records' times say nothing
    lag = (item.lag_records, seconds) if known else (-1, -1.0)
    return item.position, item.end, *lag, item.records, item.log_start, item.written


def _why(plan: Plan, topic: str, partition: int) -> Waiting | None:
    of_topic = (item for item in plan.waiting if item.topic == topic)
    return next((item for item in of_topic if not item.partitions or partition in item.partitions), None)


def _unplanned(item: Waiting) -> Iterator[PartitionStatus]:
    for number in item.partitions or (None,):
        yield PartitionStatus(item.topic, number, "", None, "waiting", item.reason, item.detail)
