"""Status of a task group at one moment: its slots and partitions, from its plan and its slots' reports. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, TypeVar

from strait.config.hours import clock
from strait.config.route_names import is_meant
from strait.config.validation import did_you_mean
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.planning.history.overrun import losses_ahead
from strait.planning.history.pace import Pace
from strait.planning.status.health import STARTING_SECONDS
from strait.planning.status.rows import SILENT_MS, Heard, Moment, PartitionStatus, Rows
from strait.reasons import INTENDED
from strait.state.report_changes import REPEAT_SECONDS, FailureReport
from strait.state.report_records import Report
from strait.state.schema import Plan
from strait.state.slot_reports import said_at
from strait.text import duration

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class SlotStatus:
    """One slot, by its newest report; ``age_ms`` None: no report was read. Rates are those of the newest report."""

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
    """Time since the newest heartbeat on the destination was written; None: there is none, or this slot does not
    replicate heartbeats."""
    heartbeat_latency_ms: float | None = None
    """Latency of that heartbeat, from its timestamp to the acknowledgement."""
    heartbeat_trouble: str = ""
    """Why this slot could not write the last heartbeat; empty: no error."""
    failure: str = ""
    """Why it failed, if it has not reported anything since; it is started again."""
    starting: bool = False
    """It has not reported yet, and its plan is so new that its application may still be starting."""

    @property
    def silence(self) -> str:
        """Why it does not report, or for how long, as text."""
        if self.failure:
            return f"slot {self.slot} failed and is started again: {self.failure}"
        if self.age_ms is not None:
            return f"slot {self.slot} has not reported for {duration(self.age_ms / 1000)}"
        if self.starting:
            return f"slot {self.slot} has not reported yet; its plan is less than {duration(STARTING_SECONDS)} old"
        return f"slot {self.slot} has not reported for more than {duration(REPEAT_SECONDS)}, or ever"


@dataclass(frozen=True, slots=True)
class Opening:
    """Whether a task group with hours copies now, and the Unix time at which that changes; None: never."""

    open: bool
    changes_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Status:
    """A task group at one moment. ``plan_version`` 0: no plan was ever published, and there are no rows."""

    link: str
    group: str
    plan_version: int
    stopped: bool
    slots: tuple[SlotStatus, ...]
    partitions: tuple[PartitionStatus, ...]
    limits: str = ""
    """Of the backfill task group, as text."""
    opening: Opening | None = None
    """None: it has no hours."""

    @property
    def lag_records(self) -> int | None:
        """Total of the partitions whose lag is known; None: there are partitions, and it is known of none."""
        return known_total((row.lag_records for row in self.partitions), empty=0)

    @property
    def lag_unknown(self) -> int:
        """Number of partitions whose lag is unknown: the lag of all may exceed ``lag_records``."""
        return sum(row.lag_records < 0 for row in self.partitions)

    @property
    def held_back_records(self) -> int | None:
        """Records held back by open transactions; total as ``lag_records``."""
        return known_total((row.held_back_records for row in self.partitions), empty=0)

    @property
    def records_per_second(self) -> float | None:
        """Total of the slots that report; None: no slot reports."""
        return known_total(slot.records_per_second for slot in self.slots if not slot.silent)

    @property
    def bytes_per_second(self) -> float | None:
        """The same in bytes, compressed."""
        return known_total(slot.bytes_per_second for slot in self.slots if not slot.silent)

    @property
    def latency_ms_p50(self) -> float | None:
        """Maximum of the slots that report; None: no data."""
        return _longest(slot.latency_ms_p50 for slot in self.slots if not slot.silent)

    @property
    def latency_ms_p99(self) -> float | None:
        """Maximum of the slots that report; None: no data."""
        return _longest(slot.latency_ms_p99 for slot in self.slots if not slot.silent)

    @property
    def heartbeat(self) -> SlotStatus | None:
        """The slot with the newest heartbeat, even if it is silent; None if this task group replicates none."""
        found = (slot for slot in self.slots if slot.heartbeat_age_ms is not None or slot.heartbeat_trouble)
        return min(
            found, key=lambda slot: inf if slot.heartbeat_age_ms is None else slot.heartbeat_age_ms, default=None
        )

    @property
    def waiting(self) -> tuple[PartitionStatus, ...]:
        """The rows of partitions that wait."""
        return tuple(row for row in self.partitions if row.state == "waiting")

    @property
    def stuck(self) -> dict[tuple[str, int | None], str]:
        """Partitions that are not replicated although they should be: (topic, partition) -> reason or state.

        Empty for a stopped task group.
        """
        rows = [] if self.stopped else [row for row in self.partitions if row.state in ("waiting", "starting")]
        return {(row.topic, row.partition): row.reason or row.state for row in rows if row.reason not in INTENDED}

    @property
    def lag_known(self) -> bool:
        """Whether the lag of every partition is known."""
        return not self.lag_unknown

    @property
    def healthy(self) -> bool:
        """Whether no partition needs a decision, and every slot reports unless the task group is stopped."""
        decisions = any(row.needs_decision for row in self.partitions)
        return not decisions and (self.stopped or not any(slot.silent for slot in self.slots))

    def as_data(self) -> dict[str, Any]:
        """Return plain data, with the totals."""
        return asdict(self) | {
            "lag_records": self.lag_records,
            "lag_unknown": self.lag_unknown,
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
    rows: Rows | None = None,
    just_heard: Collection[int] = (),
    failures: Mapping[tuple[str, int], FailureReport] | None = None,
) -> Status:
    """Combine a plan and reports into the status of a task group.

    Args:
        topic: only this source topic.
        earlier: reports of some hours ago, from which losses are predicted.
        pace: how fast partitions catch up.
        rows: those of the previous calls, for a caller that polls.
        just_heard: slots that have just reported, regardless of clocks.
        failures: those of slots that have not reported anything since.

    Raises:
        ConfigError: the plan has no such topic.
    """
    if plan is None:
        return Status(link, group, 0, False, (), ())
    if topic is not None:
        _check_known(link, plan, topic)
    of_group = {slot: parts for (name, slot), parts in reports.items() if name == group}
    slots = tuple(
        _failed(
            _slot(number, of_group.get(number, ()), plan, now_ms, just_heard=number in just_heard),
            (failures or {}).get((group, number)),
        )
        for number in range(plan.slots)
    )
    opening = _opening(plan, now_ms)
    hours = None if plan.backfill is None else plan.backfill.opening
    moment = Moment(
        now_ms,
        _heard(report for parts in of_group.values() for report in parts),
        {slot.slot: slot.silence for slot in slots if slot.silent},
        losses_ahead(group, earlier or {}, reports),
        pace or Pace(),
        _closed(plan, opening),
        float if hours is None else hours.elapsing(now_ms),
    )
    chosen = (row for row in (rows or Rows()).of(plan, moment) if topic is None or is_meant(topic, row.topic))
    ordered = sorted(chosen, key=lambda row: (row.topic, -1 if row.partition is None else row.partition))
    limits = "" if plan.backfill is None else plan.backfill.described
    return Status(link, group, plan.version, plan.stopped, slots, tuple(ordered), limits, opening)


def _opening(plan: Plan, now_ms: int) -> Opening | None:
    hours = None if plan.backfill is None else plan.backfill.opening
    return None if hours is None else Opening(hours.is_open(now_ms), hours.next_change(now_ms))


def _closed(plan: Plan, opening: Opening | None) -> str:
    """Return when the task group copies again, as text; "" if it is not outside of its hours."""
    hours = None if plan.backfill is None else plan.backfill.opening
    if hours is None or opening is None or opening.open or opening.changes_at_ms is None:
        return ""
    return f"continues at {clock(opening.changes_at_ms, hours.zone)}; task group {plan.group} copies only {hours}"


def _check_known(link: str, plan: Plan, topic: str) -> None:
    known = {planned.source for planned in plan.topics} | {item.topic for item in plan.waiting}
    if not any(is_meant(topic, name) for name in known):
        problem = f"its plan has no topic {topic!r}{did_you_mean(topic, known)}"
        raise ConfigError(f"link {link}", [problem], hint="`strait plan` lists the topics that are left out")


def _slot(number: int, parts: Sequence[Report], plan: Plan, now_ms: int, *, just_heard: bool) -> SlotStatus:
    newest = max(parts, key=lambda report: report.at_ms, default=None)
    if newest is None:
        is_new = not plan.stopped and now_ms - plan.published_at_ms < STARTING_SECONDS * 1000
        return SlotStatus(number, silent=True, age_ms=None, starting=is_new)
    age_ms = 0 if just_heard else max(0, now_ms - newest.at_ms)
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


def known_total(values: Iterable[Number | None], empty: Number | None = None) -> Number | None:
    """Return the total of the known values; None if none is known. None and negative values are unknown.

    Args:
        empty: the result if there are no values.
    """
    found = list(values)
    known = [value for value in found if value is not None and value >= 0]
    return sum(known[1:], start=known[0]) if known else None if found else empty


def _failed(slot: SlotStatus, failure: FailureReport | None) -> SlotStatus:
    """Return the slot's status with its failure, after which it does not report."""
    if failure is None:
        return slot
    return replace(slot, silent=True, starting=False, application=failure.application, failure=failure.failure)


def _longest(times: Iterable[float | None]) -> float | None:
    return max((time for time in times if time is not None), default=None)


def _heard(reports: Iterable[Report]) -> dict[TopicPartition, Heard]:
    """Return the newest report of each partition, from any slot.

    A partition that has just moved was last reported by another slot.
    """
    heard: dict[TopicPartition, Heard] = {}
    for report in sorted(reports, key=lambda report: report.at_ms):
        for item in report.partitions:
            place = TopicPartition(item.topic, item.partition)
            other = heard.get(place)
            if other is None or said_at(*other) <= said_at(item, report):
                heard[place] = Heard(item, report)
    return heard
