"""The offsets at which a link would resume the partitions of its source: from the destination's logs and the map, as
its own recovery does, but without an application."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strait.config.cluster import Cluster
from strait.engine.recovery import decision
from strait.engine.recovery.decision import Found, LogState, Refused, Scan, Unproven
from strait.engine.recovery.tail import Tail
from strait.errors import ConfigError
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs
from strait.net.producers import active_producers
from strait.state.link_handle import ConfiguredLink
from strait.state.offset_map import locate, places, wire_sequence
from strait.state.planned_pairs import replaced_topics, runs_about
from strait.state.schema import OffsetMapping, Plan, PlannedTopic

_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The resume point of one partition.

    Attributes:
        topic: as in the current plan.
        partition: of both topics.
        offset: the next source offset that the link copies; None: unknown, for the reason in ``detail``.
        exact: no record before ``offset`` is missing on the destination, and none from there on is there. If not, some
            records from there on may be there.
        written: number of the link's records in the destination partition.
        runs: the map's entries for these two topics.
    """

    topic: PlannedTopic
    partition: int
    offset: int | None
    exact: bool = False
    detail: str = ""
    written: int = 0
    runs: Sequence[OffsetMapping] = ()

    @property
    def place(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic.source, self.partition)

    @property
    def copy(self) -> TopicPartition:
        """The destination partition."""
        return TopicPartition(self.topic.destination, self.partition)


@dataclass(frozen=True, slots=True)
class Resumption:
    """All partitions of a link's plans, by topic and number. ``stopped``: in the plans, all task groups are stopped."""

    points: Sequence[ResumePoint]
    plans: Mapping[str, Plan]

    @property
    def stopped(self) -> bool:
        return all(plan.stopped for plan in self.plans.values())


def resumption(link: ConfiguredLink, source: Admin | None, destination: Admin) -> Resumption:
    """Return the resume points, determined from both clusters. Changes nothing.

    Args:
        source: None: it is lost, and not queried.

    Raises:
        ConfigError: the link has no plan.
        ClusterUnavailable, NotAuthorized, StateError
    """
    with link.state("plan") as state:
        state.catch_up()
        plans = dict(state.plans)
    planned = {
        TopicPartition(topic.source, number): (topic, plan.producer_id)
        for plan in plans.values()
        for topic in plan.topics
        for number in range(len(topic.slots))
    }
    if not planned:
        raise ConfigError(f"link {link.name}", ["has no plan with topics"], hint=f"run `strait apply {link.name}`")
    gone = replaced_topics({topic.source: topic for topic, _ in planned.values()}, source, destination)
    live = {place: item for place, item in planned.items() if place.topic not in gone}
    states = _log_states(link.destination, destination, live)
    with link.state("map") as state:  # after the logs: it is ahead
        state.catch_up()
        runs = {place: runs_about(state.runs.get(place, ()), topic) for place, (topic, _) in planned.items()}
    with PartitionLogs(*link.destination) as logs:
        points = [
            _point(place, *planned[place], states[place], runs[place], logs)
            if place in live
            else ResumePoint(planned[place][0], place.partition, None, detail=gone[place.topic])
            for place in sorted(planned)
        ]
    return Resumption(points, plans)


def _log_states(
    cluster: Cluster, destination: Admin, planned: Mapping[TopicPartition, tuple[PlannedTopic, int]]
) -> dict[TopicPartition, LogState]:
    copies = {place: TopicPartition(topic.destination, place.partition) for place, (topic, _) in planned.items()}
    before = destination.offsets(copies.values(), "end")
    producers = active_producers(*cluster, copies.values())
    end, start = destination.offsets(copies.values(), "end"), destination.offsets(copies.values(), "earliest")
    found = {}
    for place, copy in copies.items():
        ours = [item.last_sequence for item in producers[copy] if item.producer_id == planned[place][1]]
        last = ours[0] if ours and ours[0] >= 0 else None
        found[place] = LogState(before[copy], last, end[copy], end[copy], start[copy])
    return found


def _point(
    place: TopicPartition,
    topic: PlannedTopic,
    producer_id: int,
    state: LogState,
    runs: Sequence[OffsetMapping],
    logs: PartitionLogs,
) -> ResumePoint:
    """Return the resume point of one partition. Other producers may have written to the destination since, so their
    records do not make it unknown."""
    if not runs:
        return ResumePoint(topic, place.partition, None, detail="the offset map has no entry for these two topics")
    outcome: Found | Scan | Refused | Unproven = decision.from_leader(runs, state, "continue")
    if isinstance(outcome, Scan):
        copy = TopicPartition(topic.destination, place.partition)
        tail = _scanned(logs, copy, producer_id, max(outcome.start, state.log_start), state.end)
        outcome = decision.from_scan(
            runs, state.end, outcome, tail, "continue", compacted=topic.policy.source_compacted
        )
    if isinstance(outcome, Found):
        named = places(runs, outcome.sequence)
        detail = "" if len(named) == 1 else "the offset map names several places; this is the first"
        return ResumePoint(topic, place.partition, min(named), not detail, detail, outcome.sequence, runs)
    if isinstance(outcome, Unproven):
        first = locate(runs, decision.checkpoint_of(runs))
        return ResumePoint(topic, place.partition, first, detail=outcome.detail, runs=runs)
    return ResumePoint(topic, place.partition, None, detail=outcome.detail if isinstance(outcome, Refused) else "")


def _scanned(logs: PartitionLogs, copy: TopicPartition, producer_id: int, start: int, end: int) -> Tail:
    """Return the tail of the link's records in the destination's log in [``start``, ``end``)."""
    at, found = start, Tail(start)
    while at < end:
        part = logs.read(copy, at, _READ_BYTES)
        for batch in part.batches:
            if not start <= batch.base < end:
                continue
            if batch.producer_id == producer_id and not batch.control:
                last = wire_sequence(batch.sequence + batch.next - batch.base - 1)
                found = found.joined(Tail(batch.base, last, batch.next - 1, first_sequence=batch.sequence))
            else:
                found = found._replace(foreign=batch.base)
        if part.ended or part.next <= at:
            break
        at = part.next
    return found
