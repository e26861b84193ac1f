"""Determines which actions of an operator a link needs: one list for `strait status`, the page and runs in Airflow. Pure.

Everything that Strait resolves automatically is absent: an empty list means that no action is needed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from strait.model import TopicPartition, ranges
from strait.planning.history.lag_growth import Growth
from strait.planning.history.overrun import WARN_SECONDS
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status
from strait.reasons import Kind, Reason
from strait.text import duration, plural, without_numbers


class Need(NamedTuple):
    """One action that is needed.

    Attributes:
        topic: which has the problem; "": it is not one of a topic.
        kind: `halted`, `source_missing`, `selection`, `loss`, `lag` or `application`.
        subject: the topic with its reason, or the application with the cause of its exit.
        text: the observation, as one line.
        remedy: the action.
    """

    kind: str
    subject: str
    text: str
    remedy: str
    topic: str = ""

    @property
    def id(self) -> str:
        """Identity of the incident. It stays the same while more partitions of a topic are affected."""
        return f"{self.kind} {self.subject}"

    @property
    def line(self) -> str:
        return f"{self.text}. {self.remedy}"

    def as_data(self) -> dict[str, Any]:
        return self._asdict()


class Dying(NamedTuple):
    """An application that restarting does not help. ``text``: how often it exited, why, and the path of its log, as one line.
    ``cause``: why it exited last."""

    text: str
    cause: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Facts that the status of a link does not contain.

    Attributes:
        include: topics that the link's settings name.
        may_be_empty: the settings permit that the link selects no topic.
        growing: partitions whose lag only grows.
        dying: applications that restarting does not help.
    """

    include: Collection[str] = ()
    may_be_empty: bool = True
    growing: Mapping[TopicPartition, Growth] = field(default_factory=dict)
    dying: Mapping[str, Dying] = field(default_factory=dict)


ONLY_AN_OPERATOR = frozenset(
    {
        Reason.BATCH_TOO_LARGE,
        Reason.CORRUPT_BATCH,
        Reason.SOURCE_DENIED,
        Reason.DESTINATION_DENIED,
        Reason.SOURCE_OTHER_CLUSTER,
        Reason.DESTINATION_OTHER_CLUSTER,
        Reason.SOURCE_UNSUPPORTED,
        Reason.DESTINATION_UNSUPPORTED,
        Reason.DESTINATION_LOG_APPEND_TIME,
    }
)
"""Reasons that end automatically, but only after an operator has changed something. Any other reason that lasts shows as a
lag that only grows."""


def needs_of(statuses: Sequence[Status], known: Circumstances) -> tuple[Need, ...]:
    """Return the actions that a link needs, most urgent first, then by subject."""
    rows = [row for status in statuses for row in status.partitions]
    found = [
        *_applications(known.dying),
        *_losses(rows),
        *_halted(rows),
        *_growing(rows, known.growing),
        *_missing(rows, known.include),
    ]
    copies = any(not status.stopped for status in statuses)
    if copies and not rows and not known.may_be_empty:
        text = "its settings select no topic, so nothing is copied"
        found.append(Need("selection", "topics", text, _SELECTION))
    return tuple(found)


def late_topics(needs: Iterable[Need]) -> frozenset[str]:
    """Return the topics of which any partition that is not replicated needs an operator."""
    return frozenset(need.topic for need in needs if need.kind in ("lag", "source_missing"))


_SELECTION = "Correct `topics`, stop the link with `strait stop`, or set `topics.allow_empty: true`"
_LAG = "Read the reason in `strait status LINK TOPIC`; raise `slots`, `max_slots` or `topics.budget`"
_LOSS = "Raise `retention.ms` or `retention.bytes` of the source topic, then remove the cause of the lag"
_APPLICATION = "Correct the cause, then restart the task group: the button Restart on the page, or the DAG's `restart`"


def _applications(dying: Mapping[str, Dying]) -> Iterator[Need]:
    for name, one in sorted(dying.items()):
        subject = f"{name} {without_numbers(one.cause)}"
        yield Need("application", subject, f"application {name} {one.text}", _APPLICATION)


def _losses(rows: Sequence[PartitionStatus]) -> Iterator[Need]:
    near: dict[str, list[PartitionStatus]] = defaultdict(list)
    for row in rows:
        if near_loss(row):
            near[row.topic].append(row)
    for topic, some in sorted(near.items()):
        left = min(row.seconds_to_loss for row in some if row.seconds_to_loss is not None)
        text = f"{_place(topic, some)}: retention deletes unreplicated records in {duration(left)}"
        yield Need("loss", topic, text, _LOSS, topic)


def near_loss(row: PartitionStatus) -> bool:
    """Return whether retention deletes unreplicated records within a day, before the partition has caught up."""
    left, needed = row.seconds_to_loss, row.seconds_to_catch_up
    return left is not None and left < WARN_SECONDS and (needed is None or needed >= left)


def _halted(rows: Sequence[PartitionStatus]) -> Iterator[Need]:
    waiting: dict[tuple[str, str], list[PartitionStatus]] = defaultdict(list)
    for row in rows:
        if is_halted(row):
            waiting[row.topic, row.reason].append(row)
    for (topic, reason), some in sorted(waiting.items()):
        text = f"{_place(topic, some)}: {reason}: {some[0].detail}"
        yield Need("halted", f"{topic} {reason}", text.rstrip(": ."), Reason(reason).remedy.rstrip("."), topic)


def is_halted(row: PartitionStatus) -> bool:
    """Return whether the partition waits until an operator acts."""
    return row.needs_decision or (row.state == "waiting" and row.reason in ONLY_AN_OPERATOR)


def _growing(rows: Sequence[PartitionStatus], growing: Mapping[TopicPartition, Growth]) -> Iterator[Need]:
    late: dict[str, list[PartitionStatus]] = defaultdict(list)
    for row in rows:
        grows = row.partition is not None and TopicPartition(row.topic, row.partition) in growing
        if grows and not is_halted(row) and not _skipped(row.reason):
            late[row.topic].append(row)
    for topic, some in sorted(late.items()):
        grown = [growing[TopicPartition(topic, row.partition or 0)] for row in some]
        before, now = sum(one.before for one in grown), sum(one.now for one in grown)
        why = f", {some[0].reason}: {some[0].detail}" if some[0].reason else ""
        text = f"{_place(topic, some)}: the lag only grows: {before:,} to {plural(now, 'record')} in half an hour{why}"
        yield Need("lag", topic, text.rstrip(": ."), _LAG, topic)


def _skipped(reason: str) -> bool:
    return reason in set(Reason) and Reason(reason).kind is Kind.SKIPPED


def _missing(rows: Sequence[PartitionStatus], include: Collection[str]) -> Iterator[Need]:
    missing = {row.topic: row for row in rows if row.reason == Reason.SOURCE_MISSING and row.topic in include}
    for topic, row in sorted(missing.items()):
        text = f"topic {topic}: {row.reason}: {row.detail}"
        yield Need("source_missing", topic, text.rstrip(": ."), Reason.SOURCE_MISSING.remedy.rstrip("."), topic)


def _place(topic: str, rows: Sequence[PartitionStatus]) -> str:
    partitions = sorted({row.partition for row in rows if row.partition is not None})
    return f"topic {topic} {ranges(partitions)}" if partitions else f"topic {topic}"
