"""Plans a check of a link's destination topics by the replication ledger. Queries the destination alone; the source may be
lost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from strait.audit.ledger_rows import LedgerRow, with_rows
from strait.audit.ledger_topic import Wanted
from strait.audit.link_state import Ends, no_plan, no_topic, not_replicated, requested
from strait.audit.plan import LOSSES, AuditedPartition, AuditedTopic, AuditPlan, OnRecord
from strait.audit.publishing import ResultLog
from strait.config.audit import AuditRequest
from strait.config.cluster import Cluster
from strait.kafka.admin import Admin
from strait.model import ClusterFacts, TopicPartition
from strait.planning.review.clusters import planned_clusters
from strait.state.reader import StateReader
from strait.state.schema import Loss, PlannedTopic
from strait.state.verified import conclusion
from strait.waiting import unix_ms

_CONFIGS = ("cleanup.policy", "compression.type", "message.timestamp.type")


Rows = Mapping[TopicPartition, Sequence[LedgerRow]]
"""The rows of each source partition."""
ReadRows = Callable[[Sequence[Wanted]], Rows]


def plan_ledger(ends: Ends, link: str, request: AuditRequest, audit_id: str, read_rows: ReadRows) -> AuditPlan:
    """Plan the check.

    Raises:
        ConfigError: the link has no plan, or does not replicate a named topic.
        ClusterUnavailable, NotAuthorized, StateError
    """
    there = Cluster(ends.destination_properties, ends.destination)
    with StateReader(*there, link, follow=("plan", "losses")) as state:
        state.catch_up()
        plans, losses = list(state.plans.values()), state.losses
    if not any(plan.topics for plan in plans):
        raise no_plan(ends, link)
    there = there.expecting(planned_clusters(plans)[1])
    topics, waiting = requested(link, plans, request.topics)
    facts, partitions = _observed(there, topics, losses)
    rows = read_rows(wanted(partitions, {topic.source: topic.destination_id for topic in topics}))
    results = ResultLog(there, link).newest()
    verified = {topic.source: conclusion(topic, results) for topic in topics}
    found = []
    for one in partitions:
        result = verified[one.topic]
        to = result.verified_to[one.partition] if result and one.partition < len(result.verified_to) else 0
        found.append(with_rows(one, rows.get(TopicPartition(one.topic, one.partition), ()), to, request))
    return AuditPlan(
        id=audit_id,
        link=link,
        request=request,
        source=ends.source,
        destination=ends.destination,
        source_cluster=next((plan.source_cluster for plan in plans if plan.source_cluster), ""),
        destination_cluster=facts.cluster_id,
        producer_id=plans[0].producer_id,
        topics=tuple(
            AuditedTopic(
                topic=topic.source,
                copy_topic=topic.destination,
                source_id=topic.source_id,
                copy_id=topic.destination_id,
            )
            for topic in topics
        ),
        partitions=tuple(sorted([*found, *not_replicated(waiting)], key=attrgetter("topic", "partition"))),
        planned_at_ms=unix_ms(),
    )


def wanted(partitions: Iterable[AuditedPartition], ids: Mapping[str, str]) -> list[Wanted]:
    """Return the rows that the check of these partitions needs. ``ids``: of the destination topic, by source topic."""
    return [
        Wanted(TopicPartition(one.topic, one.partition), one.copy_topic, ids.get(one.topic, ""), one.copy_start)
        for one in partitions
        if not one.problem
    ]


def _observed(
    cluster: Cluster, topics: Sequence[PlannedTopic], losses: Iterable[Loss]
) -> tuple[ClusterFacts, list[AuditedPartition]]:
    admin = Admin(*cluster)
    facts = admin.observe({topic.destination for topic in topics}.__contains__, _CONFIGS)
    places = [
        TopicPartition(topic.destination, number)
        for topic in topics
        if topic.destination in facts.topics
        for number in range(facts.topics[topic.destination].partitions)
    ]
    ends = {"copy_end": admin.offsets_each(places, "latest"), "copy_start": admin.offsets_each(places, "earliest")}
    lost: dict[TopicPartition, list[OnRecord]] = {}
    for loss in losses:
        if loss.side == "destination":
            entry = OnRecord(side="destination", first=loss.from_offset, end=loss.to_offset, cause=LOSSES + loss.cause)
            lost.setdefault(TopicPartition(loss.topic, loss.partition), []).append(entry)
    found = []
    for topic in topics:
        for number in range(len(topic.slots)):
            here, place = TopicPartition(topic.source, number), TopicPartition(topic.destination, number)
            one = AuditedPartition(topic=topic.source, partition=number, copy_topic=topic.destination)
            failures = [failure.message for it in ends.values() if (failure := it.failures.get(place)) is not None]
            problem = _problem(facts, topic, number) or "; ".join(failures)
            offsets = {} if problem else {name: it.results[place] for name, it in ends.items()}
            changes = {"problem": problem, "on_record": tuple(lost.get(here, ())), **offsets}
            found.append(one.model_copy(update=changes))
    return facts, found


def _problem(facts: ClusterFacts, topic: PlannedTopic, number: int) -> str:
    """Return the reason why the brokers' log of a partition is not as it was sent; "" if there is none."""
    copy = facts.topics.get(topic.destination)
    if copy is None:
        return no_topic(facts.name, topic.destination)
    if copy.topic_id not in ("", topic.destination_id):
        return f"topic {topic.destination} of {facts.name} is not the one that the link replicates"
    if number >= copy.partitions:
        return f"topic {topic.destination} of cluster {facts.name} has no partition {number}"
    if "compact" in copy.configs.get("cleanup.policy", ""):
        return f"topic {topic.destination} is compacted, so its batches are not as they were sent: compare it with the source"
    for name, as_sent in (("compression.type", "producer"), ("message.timestamp.type", "CreateTime")):
        if copy.configs.get(name, as_sent) != as_sent:
            return f"topic {topic.destination} has {name}={copy.configs[name]}, so its brokers rebuild batches"
    return ""
