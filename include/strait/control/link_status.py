"""The state of a link at one moment, all its task groups together: from its plans, its reports, and the source's
topics.

Read-only. Each link is queried separately, so that an unavailable cluster hides no other link.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from strait.config.route_names import is_meant
from strait.config.routes import routes_of
from strait.config.validation import did_you_mean
from strait.control.group_status import group_status
from strait.control.needs import Needs
from strait.control.quarantine import Quarantine
from strait.errors import ClusterError, ConfigError
from strait.model import TopicPartition
from strait.planning.plan.pauses import pauses_of
from strait.planning.plan.stopping import stopped_by
from strait.planning.status.explaining import explained, nearly_selected
from strait.planning.status.needs import Need
from strait.planning.status.notes import with_quarantined
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status
from strait.planning.status.summary import LinkSummary, summary_of
from strait.planning.topics.routes import with_routes
from strait.planning.topics.selection import Selection, select
from strait.state.group_sync_records import GroupSyncReport
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.schema import Pause
from strait.text import plural

_POLL_SECONDS = 0.2
_FIGURES = (
    "badge",
    "lag_known",
    "lag_unknown",
    "lag_records",
    "lag_seconds",
    "held_back_records",
    "records_per_second",
    "seconds_to_loss",
)
_NAMED = 10  # partitions with a problem that are named
_LOSSES_READ = 10_000  # the newest entries of the loss log
QUARANTINE_READ = 1_000
"""Offsets of the quarantine topic that are read to count its records."""


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """The state of one link.

    Attributes:
        groups: one for each task group that has a plan; none before the first plan.
        pauses: the pauses that operators have set.
        needs: the actions of an operator that it needs, as far as they show in its state. Applications that exit again and
            again are only known to Airflow and `strait run`.
        stopped_by: by whom, when and why it was stopped, as text; "": it is not stopped.
        left_out: topics of the source that the link names or matches and does not copy.
        source_trouble: why the source could not be queried for those; "" if it was.
        quarantines: a rule quarantines rejected records of some topic.
        quarantine_unread: number of older offsets of the quarantine topic that were not read and may hold unresolved
            records, which are not counted.
        consumer_groups: the latest report on their synchronization; None: not synchronized, or by no application now.
    """

    link: str
    source: str
    destination: str
    groups: tuple[Status, ...]
    pauses: tuple[Pause, ...]
    left_out: tuple[PartitionStatus, ...] = ()
    source_trouble: str = ""
    quarantines: bool = False
    quarantine_unread: int = 0
    consumer_groups: GroupSyncReport | None = None
    stopped_by: str = ""
    needs: tuple[Need, ...] = ()

    @property
    def rows(self) -> list[PartitionStatus]:
        """Rows of all task groups, by topic and partition."""
        rows = (row for group in self.groups for row in group.partitions)
        return sorted(rows, key=lambda row: (row.topic, -1 if row.partition is None else row.partition))

    @property
    def stopped(self) -> bool:
        """Whether every task group is stopped, according to its plan."""
        return bool(self.groups) and all(group.stopped for group in self.groups)

    @property
    def healthy(self) -> bool:
        """Whether it has a plan, no partition needs a decision, and every slot reports."""
        return bool(self.groups) and all(group.healthy for group in self.groups)

    def problems(self, topics: Collection[str] = ()) -> list[str]:
        """Return why data of these topics, by default of all, may not flow, one line each. Pauses are no problem."""
        if not self.groups:
            return ["it has no plan yet"]
        if self.stopped:
            return [f"it is stopped: {self.stopped_by}" if self.stopped_by else "it is stopped"]
        silent = [f"{g.group}/{slot.slot}" for g in self.groups if not g.stopped for slot in g.slots if slot.silent]
        stuck = [
            (topic, number, why)
            for group in self.groups
            for (topic, number), why in group.stuck.items()
            if not topics or any(is_meant(given, topic) for given in topics)
        ]
        found = [f"slots that do not report: {', '.join(silent)}"] if silent else []
        known = {row.topic for row in self.rows}
        found += [
            f"topic {topic}: not in its plan" for topic in topics if not any(is_meant(topic, name) for name in known)
        ]
        found += [f"{topic if number is None else f'{topic}-{number}'}: {why}" for topic, number, why in stuck[:_NAMED]]
        found += [f"and {plural(len(stuck) - _NAMED, 'partition')} more"] if len(stuck) > _NAMED else []
        return found + ([] if topics else [need.text for need in self.needs])

    @property
    def summary(self) -> LinkSummary:
        """Its key figures and its state as operators see it."""
        return summary_of(self.link, self.source, self.destination, self.groups, self.pauses, self.needs)

    def as_data(self) -> dict[str, Any]:
        """Return the same, machine-readable; rows and slots name their task group."""
        groups, summary = [group.as_data() for group in self.groups], self.summary.as_data()
        return {
            "link": self.link,
            "source": self.source,
            "destination": self.destination,
            "plan_version": max((group.plan_version for group in self.groups), default=0),
            "stopped": self.stopped,
            "stopped_by": self.stopped_by,
            "healthy": self.healthy,
            **{key: summary[key] for key in _FIGURES},
            "groups": [{key: each[key] for key in each if key not in ("slots", "partitions")} for each in groups],
            "slots": [{"group": each["group"], **slot} for each in groups for slot in each["slots"]],
            "partitions": [{"group": each["group"], **row} for each in groups for row in each["partitions"]],
            "consumer_groups": None if self.consumer_groups is None else self.consumer_groups.model_dump(),
            "pauses": [item.model_dump() for item in self.pauses],
            "needs": [need.as_data() for need in self.needs],
            "left_out": [{"topic": row.topic, "reason": row.reason, "detail": row.detail} for row in self.left_out],
            "source_trouble": self.source_trouble,
            "quarantine_unread": self.quarantine_unread,
        }


def link_status(link: ConfiguredLink, topic: str | None = None) -> LinkStatus:
    """Return the state of one link and of its source's topics.

    Args:
        topic: only this source topic, whether or not it is copied.

    Raises:
        ConfigError: neither the link's plans nor its source have such a topic.
        ClusterUnavailable, NotAuthorized: the destination does not answer; or the source, if only it has the answer.
        StateError: the link's state cannot be read.
    """
    found = _with_quarantined(link_groups(link, needs=True), link)
    if topic is None:
        return _with_left_out(found, link)
    known = {row.topic for row in found.rows}
    if not any(is_meant(topic, name) for name in known):
        return replace(found, groups=(), left_out=(_why_not(link, topic, known),))
    return replace(found, groups=tuple(_only(group, topic) for group in found.groups))


def link_groups(link: ConfiguredLink, *, listen_seconds: float = 0.0, needs: bool = False) -> LinkStatus:
    """Return the state of one link without querying its source. Raises as `link_status`.

    Args:
        listen_seconds: most time to listen to slots that seem silent by the clock here; those that report meanwhile are
            not silent.
        needs: determine the actions of an operator, for which past reports are read if partitions are late.
    """
    with link.state("plan", "reports", "losses", most_losses=_LOSSES_READ) as state:
        state.catch_up()
        groups = tuple(group_status(link, group, state) for group in sorted(state.plans))
        quiet = {(group.group, slot.slot) for group in groups for slot in group.slots if slot.silent}
        if listen_seconds and (heard := _heard(state, quiet, listen_seconds)):
            groups = tuple(group_status(link, group, state, heard=heard) for group in sorted(state.plans))
        pauses = pauses_of(state.plans.values())
        quarantines = any(
            topic.policy.on_refused == "quarantine" for plan in state.plans.values() for topic in plan.topics
        )
        return LinkStatus(
            *(link.name, link.source.name, link.destination.name, groups, pauses),
            quarantines=quarantines,
            consumer_groups=state.group_sync,
            stopped_by=stopped_by(state.plans.values()),
            needs=Needs(link).of(state, groups) if needs else (),
        )


def _heard(state: StateReader, quiet: Set[tuple[str, int]], seconds: float) -> Set[tuple[str, int]]:
    """Return the slots of these that report within this time; return early if all have."""

    def newest(slot: tuple[str, int]) -> int:
        return max((report.at_ms for report in state.reports.get(slot, ())), default=-1)

    before = {slot: newest(slot) for slot in quiet}
    heard: set[tuple[str, int]] = set()
    deadline = time.monotonic() + seconds
    while heard != quiet and time.monotonic() < deadline:
        state.poll(_POLL_SECONDS)
        heard |= {slot for slot in quiet if newest(slot) > before[slot]}
    return heard


def _with_quarantined(found: LinkStatus, link: ConfiguredLink) -> LinkStatus:
    """Add unresolved records in quarantine. Reads the records after the resolved ones, at most `QUARANTINE_READ` offsets, and
    only if a rule quarantines records."""
    if not found.quarantines:
        return found
    quarantine = Quarantine(link, keeps_settled=False)
    quarantine.skip_settled(QUARANTINE_READ)
    quarantined = Counter(TopicPartition(entry.topic, entry.partition) for entry in quarantine.contents().entries())
    unread = quarantine.unread
    groups = tuple(with_quarantined(group, quarantined, all_read=not unread) for group in found.groups)
    return replace(found, groups=groups, quarantine_unread=unread)


def _only(group: Status, topic: str) -> Status:
    return replace(group, partitions=tuple(row for row in group.partitions if is_meant(topic, row.topic)))


def _with_left_out(found: LinkStatus, link: ConfiguredLink) -> LinkStatus:
    try:
        rows = nearly_selected(_selection(link))
    except ClusterError as error:
        return replace(found, source_trouble=str(error))
    planned = {row.topic for row in found.rows}
    return replace(found, left_out=tuple(row for row in rows if row.topic not in planned))


def _why_not(link: ConfiguredLink, topic: str, known: Iterable[str]) -> PartitionStatus:
    wanted: Sequence[str] = sorted({*link.settings.topics.include, *known})
    topic = next((one.name for one in routes_of(link.settings.topics, topic)), topic)
    row = explained(topic, _selection(link), wanted)
    if row is None:
        near = did_you_mean(
            topic, [*wanted, link.name]
        )  # a misspelt link is taken for a topic if the file has one link
        problem = f"neither its plan nor cluster {link.source.name} has a topic {topic!r}{near}"
        raise ConfigError(f"link {link.name}", [problem])
    return row


def _selection(link: ConfiguredLink) -> Selection:
    source = link.admin("source").observe(lambda _: False)
    shared = source.cluster_id if link.source.properties == link.destination.properties else None
    topics = with_routes(source, link.settings.topics, ()).topics
    return select(link.name, link.settings, topics, shared_cluster_id=shared)
