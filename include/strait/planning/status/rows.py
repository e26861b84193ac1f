"""What each partition of a task group does and why, from its plan and the newest reports. Pure.

Whoever looks again and again keeps the `Rows`: of a partition that has nothing left to copy, and of which nothing new was
said, the row is the one that was made before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from strait.model import TopicPartition
from strait.planning.history.overrun import duration
from strait.planning.history.pace import Pace
from strait.reasons import Kind, Reason
from strait.state.schema import PartitionReport, Plan, PlannedTopic, Report, Waiting
from strait.state.slot_reports import lag_seconds

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


class Heard(NamedTuple):
    """The newest word on a partition, and the report that it is of."""

    item: PartitionReport
    report: Report


class Moment(NamedTuple):
    """What rows are made of, besides the plan.

    Attributes:
        silent: the slots that do not report.
        losing: seconds until records are lost, where that is foreseen.
    """

    now_ms: int
    heard: Mapping[TopicPartition, Heard]
    silent: frozenset[int]
    losing: Mapping[TopicPartition, float]
    pace: Pace


class _Made(NamedTuple):
    """``basis``: all that the row was made of but the item, which is the same object as long as nothing new was said."""

    item: PartitionReport
    basis: tuple[Any, ...]
    row: PartitionStatus


class Rows:
    """Those of one task group, as often as they are asked for."""

    def __init__(self) -> None:
        self._made: dict[TopicPartition, _Made] = {}

    def of(self, plan: Plan, moment: Moment) -> Iterator[PartitionStatus]:
        """One for each partition of the plan that this group copies or should, and for each topic without any."""
        before, self._made = self._made, {}
        for topic in plan.topics:
            for number, slot in enumerate(topic.slots):
                place = TopicPartition(topic.source, number)
                if slot is None:
                    why = _why(plan, topic.source, number)
                    if why is None:
                        continue  # another task group copies it, and tells of it
                    yield _waiting(topic, place, why, moment)
                    continue
                heard = moment.heard.get(place)
                if heard is None or heard.item.lag_records > 0 or heard.item.held_back_records > 0:
                    yield _assigned(topic, place, slot, plan, heard, moment)
                    continue
                rate = moment.pace.records_per_second.get(place)
                basis = topic.destination, slot, slot in moment.silent, plan.stopped, rate
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


def _assigned(
    topic: PlannedTopic, place: TopicPartition, slot: int, plan: Plan, heard: Heard | None, moment: Moment
) -> PartitionStatus:
    """The row of a partition that a slot has."""
    left, pace = None, moment.pace
    if slot in moment.silent and plan.stopped:
        state, reason, detail = "waiting", str(Reason.LINK_STOPPED), "nothing is copied until it is started"
    elif slot in moment.silent:
        state, reason = "waiting", str(Reason.SLOT_SILENT)
        detail = f"slot {slot} has not reported for {SILENT_MS // 1000} s"
    elif heard is None:
        state, reason, detail = "starting", "", f"slot {slot} has not reported it yet"
    else:
        state, reason, detail = heard.item.state, heard.item.reason or "", heard.item.detail
    told = _told(heard, moment.now_ms) if heard is not None else {}
    if reason == Reason.OPEN_TRANSACTION and "held_back_seconds" in told:
        held, seconds = told["held_back_records"], told["held_back_seconds"]
        detail = f"{held:,} records held back for {duration(seconds)}: {detail}"
    if state == "copying":
        left = pace.seconds_left.get(place)
        if place in pace.throttled:
            reason, detail = str(Reason.THROTTLED), pace.throttled[place]
        else:
            detail = f"about {duration(left)} until caught up" if left is not None and left > _TELL_SECONDS else ""
    return PartitionStatus(
        *(place.topic, place.partition, topic.destination, slot, state, reason, detail),
        **told,
        seconds_to_loss=moment.losing.get(place),
        seconds_to_catch_up=left,
        records_per_second=pace.records_per_second.get(place),
    )


def _told(heard: Heard, now_ms: int) -> dict[str, Any]:
    """What a report says of positions, and of what an open transaction of the source holds back."""
    item, report = heard
    known = item.position >= 0 and item.end >= 0
    seconds = round(lag_seconds(item, report), 3)
    if item.lag_records > 0 and seconds <= 0:
        seconds = -1.0  # nothing was copied since the slot's start, or its records' times say nothing
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
