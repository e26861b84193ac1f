"""State of each partition of a task group, with the reason, from its plan and the newest reports. Pure.

A caller that polls keeps the `Rows`: the row of a partition that has nothing left to replicate, and that was not
reported again, is reused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from strait.model import TopicPartition
from strait.planning.history.pace import Pace
from strait.reasons import Kind, Reason
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Plan, PlannedTopic, Waiting
from strait.state.slot_reports import lag_seconds
from strait.text import duration, plural

SILENT_MS = 5_000
"""A slot reports once per second; after this time without a report it is silent. Clocks of hosts may differ by less
than this."""

_TELL_SECONDS = 5.0  # a shorter time until caught up is not shown


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One row. ``partition`` None: all partitions of a topic, whose number is unknown.

    Of a slot that does not report, ``position`` is the last reported one; its ``end`` and lag are unknown.

    Positions are source offsets: ``position`` is the next to replicate, ``end`` the last stable offset, up to which
    records can be read; -1: unknown.
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
    """Replicated since the slot's start, by the slot that reported last."""
    log_start: int = -1
    """First offset that the source still holds."""
    written: int = -1
    """Records that the link has ever written to the destination partition, by any task group; -1: unknown."""
    seconds_to_loss: float | None = None
    """Time until retention reaches unreplicated records, if the partition made no progress; None: not foreseen."""
    seconds_to_catch_up: float | None = None
    """Time at the current pace; None: it has caught up, does not get closer, or the time is unknown."""
    records_per_second: float | None = None
    """Current replication rate; None: unknown."""
    high_watermark: int = -1
    """The source's high watermark, which includes records of open transactions."""
    held_back_records: int = -1
    """Offsets from ``end`` to the high watermark: they wait for an open transaction to end. Not part of the lag."""
    held_back_seconds: float = -1.0
    """How long they have been held back; 0 if there are none."""
    quarantined: int = 0
    """Unresolved records in quarantine. Counted if a rule sends rejected records there."""

    @property
    def needs_decision(self) -> bool:
        """Whether it waits until an operator makes a decision."""
        known = self.state == "waiting" and self.reason in set(Reason)
        return known and Reason(self.reason).kind is Kind.NEEDS_DECISION


class Heard(NamedTuple):
    """The newest report of a partition, and the slot's report that contains it."""

    item: PartitionReport
    report: Report


class Moment(NamedTuple):
    """Input of the rows besides the plan.

    Attributes:
        silent: slots that do not report -> for how long, or their failure, as text.
        losing: partition -> seconds until records are lost, if that is foreseen.
        closed: when the task group copies again, as text, if it is outside of its hours; else "".
        elapsed: converts seconds of copying to all seconds that pass meanwhile.
    """

    now_ms: int
    heard: Mapping[TopicPartition, Heard]
    silent: Mapping[int, str]
    losing: Mapping[TopicPartition, float]
    pace: Pace
    closed: str = ""
    elapsed: Callable[[float], float] = float


class _Made(NamedTuple):
    """``basis``: everything that the row was made from except the item.

    The item is the same object until the partition is reported again.
    """

    item: PartitionReport
    basis: tuple[Any, ...]
    row: PartitionStatus


class Rows:
    """Rows of one task group, reused between calls."""

    def __init__(self) -> None:
        self._made: dict[TopicPartition, _Made] = {}

    def of(self, plan: Plan, moment: Moment) -> Iterator[PartitionStatus]:
        """Yield a row for each partition of the plan that this task group replicates or should replicate.

        A waiting topic without planned partitions has a row as well.
        """
        before, self._made = self._made, {}
        for topic in plan.topics:
            for number, slot in enumerate(topic.slots):
                place = TopicPartition(topic.source, number)
                if slot is None:
                    why = _why(plan, topic.source, number)
                    if why is None:
                        continue  # another task group replicates it and has its row
                    finished = why.reason == Reason.FINISHED
                    yield _finished(topic, place, why, moment) if finished else _waiting(topic, place, why, moment)
                    continue
                heard = moment.heard.get(place)
                if heard is None or heard.item.lag_records > 0 or heard.item.held_back_records > 0:
                    yield _assigned(topic, place, slot, plan, heard, moment)
                    continue
                rate = moment.pace.records_per_second.get(place)
                basis = topic.destination, slot, moment.silent.get(slot), plan.stopped, rate, moment.closed
                made = before.get(place)
                if made is None or made.item is not heard.item or made.basis != basis:
                    made = _Made(heard.item, basis, _assigned(topic, place, slot, plan, heard, moment))
                self._made[place] = made
                yield made.row
        known = {planned.source for planned in plan.topics}
        for item in plan.waiting:
            if item.topic not in known:
                yield from _unplanned(item)


def _waiting(topic: PlannedTopic, place: TopicPartition, why: Waiting, moment: Moment) -> PartitionStatus:
    heard = moment.heard.get(place)
    told = _told(heard, moment.now_ms) if heard is not None else {}
    return PartitionStatus(
        *(place.topic, place.partition, topic.destination, None, "waiting", why.reason, why.detail),
        **told,
        records_per_second=moment.pace.records_per_second.get(place),
        seconds_to_loss=moment.losing.get(place),
    )


def _finished(topic: PlannedTopic, place: TopicPartition, why: Waiting, moment: Moment) -> PartitionStatus:
    """Return the row of a partition that was copied up to its end, so that no slot has it any more."""
    heard, end = moment.heard.get(place), topic.policy.end_of(place.partition)
    told: dict[str, Any] = {} if heard is None else {"records": heard.item.records, "written": heard.item.written}
    return PartitionStatus(
        *(place.topic, place.partition, topic.destination, None, "caught_up", why.reason, why.detail),
        **told,
        position=end,
        end=end,
        lag_records=0,
        lag_seconds=0.0,
        high_watermark=end,
        held_back_records=0,
        held_back_seconds=0.0,
    )


def _assigned(
    topic: PlannedTopic, place: TopicPartition, slot: int, plan: Plan, heard: Heard | None, moment: Moment
) -> PartitionStatus:
    """Return the row of a partition that is assigned to a slot."""
    left, pace, losing = None, moment.pace, moment.losing.get(place)
    if slot in moment.silent and plan.stopped:
        state, reason, detail = "waiting", str(Reason.LINK_STOPPED), "nothing is copied until it is started"
    elif slot in moment.silent:
        state, reason, detail = "waiting", str(Reason.SLOT_SILENT), moment.silent[slot]
    elif heard is None:
        state, reason, detail = "starting", "", f"slot {slot} has not reported it yet"
    else:
        state, reason, detail = heard.item.state, heard.item.reason or "", heard.item.detail
        if state in ("starting", "copying") and moment.closed:
            state, reason, detail = "waiting", str(Reason.OUTSIDE_HOURS), moment.closed
    told = _told(heard, moment.now_ms) if heard is not None else {}
    if slot in moment.silent and heard is not None:
        told |= _UNKNOWN
        losing = None if losing is None else max(0.0, losing - (moment.now_ms - heard.report.at_ms) / 1000)
    if reason == Reason.OPEN_TRANSACTION and "held_back_seconds" in told:
        held, seconds = told["held_back_records"], told["held_back_seconds"]
        detail = f"{plural(held, 'record')} held back for {duration(seconds)}: {detail}"
    if state == "copying":
        left = pace.seconds_left.get(place)
        left = None if left is None else moment.elapsed(left)
        if place in pace.throttled:
            reason, detail = str(Reason.THROTTLED), pace.throttled[place]
        else:
            detail = f"about {duration(left)} until caught up" if left is not None and left > _TELL_SECONDS else ""
    return PartitionStatus(
        *(place.topic, place.partition, topic.destination, slot, state, reason, detail),
        **told,
        seconds_to_loss=losing,
        seconds_to_catch_up=left,
        records_per_second=None if slot in moment.silent else pace.records_per_second.get(place),
    )


def longest_lag(rows: Iterable[PartitionStatus]) -> float | None:
    """Return the maximum lag in seconds of those whose lag is known; None: unknown. It is never 0 while the lag of any
    partition is unknown."""
    return _longest([row.lag_seconds for row in rows])


def longest_held_back(rows: Iterable[PartitionStatus]) -> float | None:
    """Return the longest time in seconds for which a transaction has held back records; unknown as `longest_lag`."""
    return _longest([row.held_back_seconds for row in rows])


def _longest(seconds: Sequence[float]) -> float | None:
    known = max((value for value in seconds if value >= 0), default=None)
    return known or (None if any(value < 0 for value in seconds) else known)


_UNKNOWN: Mapping[str, Any] = {
    "end": -1,
    "lag_records": -1,
    "lag_seconds": -1.0,
    "high_watermark": -1,
    "held_back_records": -1,
    "held_back_seconds": -1.0,
}
"""Figures that change while a slot does not report: the last reported ones would be wrong."""


def _told(heard: Heard, now_ms: int) -> dict[str, Any]:
    """Return the positions of a report, and the records that an open transaction on the source holds back."""
    item, report = heard
    known = item.position >= 0 and item.end >= 0
    seconds = round(lag_seconds(item, report), 3)
    if item.lag_records > 0 and seconds <= 0:
        seconds = -1.0  # nothing was replicated since the slot's start, or record timestamps do not show the lag
    told: dict[str, Any] = {
        "position": item.position,
        "end": item.end,
        "lag_records": item.lag_records if known else -1,
        "lag_seconds": seconds if known else -1.0,
        "records": item.records,
        "log_start": item.log_start,
        "written": item.written,
    }
    if item.end >= 0:
        held_ms = max(0, now_ms - item.held_since_ms) if item.held_since_ms >= 0 else 0
        told |= {
            "high_watermark": item.end + item.held_back_records,
            "held_back_records": item.held_back_records,
            "held_back_seconds": round(held_ms / 1000, 3),
        }
    return told


def _why(plan: Plan, topic: str, partition: int) -> Waiting | None:
    of_topic = (item for item in plan.waiting if item.topic == topic)
    return next((item for item in of_topic if not item.partitions or partition in item.partitions), None)


def _unplanned(item: Waiting) -> Iterator[PartitionStatus]:
    for number in item.partitions or (None,):
        yield PartitionStatus(item.topic, number, "", None, "waiting", item.reason, item.detail)
