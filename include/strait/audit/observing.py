"""Plans an audit from the state of both clusters, and for a link from its state topics. Changes nothing.

The destination's ends are read first, then the source's, then the offset map. So each record of the destination comes
from a source record before the source's end, and the map describes all of them.
"""

from collections.abc import Mapping
from operator import attrgetter

from strait.audit.chunks import unknown_records
from strait.audit.link_state import (
    Ends,
    LinkState,
    moved_in,
    no_plan,
    no_topic,
    not_replicated,
    on_record,
    owner_of,
    read_link,
    requested,
    require_known_copies,
    skipped_before,
)
from strait.audit.observed import Observed, Pair
from strait.audit.plan import AuditedPartition, AuditPlan
from strait.audit.transformed import made_otherwise, of_transformed, refused_transforms
from strait.config.audit import AuditRequest
from strait.config.route_names import topic_of
from strait.errors import ConfigError, StateError
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.planning.review.clusters import planned_clusters
from strait.state.admission import Admission
from strait.state.destination_log import OwnLog, SharedLog
from strait.state.offset_map import full_sequence
from strait.state.planned_pairs import runs_about
from strait.state.reader import StateReader
from strait.state.registrations import producers_left_out
from strait.state.schema import PlannedTopic
from strait.state.translation import Translator


def plan_link(
    ends: Ends,
    link: str,
    request: AuditRequest,
    audit_id: str,
    admission: Admission | None = None,
    *,
    whole: bool = False,
) -> AuditPlan:
    """Plan the audit of a link.

    Args:
        admission: of the audit's own spec: how a plan without the link's signature may have records transformed.
        whole: raise ClusterUnavailable if a broker does not answer; otherwise its partitions are not compared, and have the reason.

    Raises:
        ConfigError: the link has no plan, or does not replicate a named topic.
        StateError: a record of the link's state cannot be read, or one of the source's `strait.producers` if the link skips copies.
        ClusterUnavailable, NotAuthorized
    """
    there = ends.destination_properties, ends.destination
    with StateReader(*there, link, follow=("plan",)) as reader:
        reader.catch_up()
        plans = tuple(reader.plans.values())
    if not any(plan.topics for plan in plans):
        raise no_plan(ends, link)
    ends = ends.expecting(*planned_clusters(plans))
    planned, waiting = requested(link, plans, request.topics)
    pairs = [Pair(topic.source, topic.destination, topic) for topic in planned]
    observed = Observed.of(ends, pairs, request, whole=whole)
    state = read_link(ends, link)  # after the logs' ends, so that it describes all records before them
    require_known_copies(state, planned, ends.source)
    producer_id = next(plan.producer_id for plan in state.plans.values())
    refused = {} if admission is None else refused_transforms(state, admission)
    partitions = [
        _of_link(observed, pair, number, state, request, producer_id, refused.get(pair.topic, ""))
        for pair in pairs
        for number in range(observed.partitions(pair))
    ]
    partitions += not_replicated(waiting)
    owners = {
        str(one.producer_id): owner_of(one, link) for one in state.writers.all() if one.producer_id != producer_id
    }
    return observed.plan(audit_id, link, request, partitions, producer_id, owners)


def plan_copies(
    ends: Ends, names: Mapping[str, str], request: AuditRequest, audit_id: str, *, whole: bool = False
) -> AuditPlan:
    """Plan the audit of another tool's copies. ``names``: source topic -> its name on the destination; ``whole``: as for
    `plan_link`.

    Raises:
        ConfigError: a cluster lacks one of the topics.
        ClusterUnavailable, NotAuthorized
    """
    pairs = [Pair(*pair) for pair in names.items()]
    observed = Observed.of(ends, pairs, request, whole=whole)
    missing = [
        no_topic(facts.name, name)
        for facts, side in ((observed.source, "topic"), (observed.copy, "copy_topic"))
        for name in (getattr(pair, side) for pair in pairs)
        if name not in facts.topics
    ]
    if missing:
        raise ConfigError("audit", missing)
    if observed.source.cluster_id == observed.copy.cluster_id and (same := [one for one in pairs if one.is_itself]):
        where = f"clusters {ends.source} and {ends.destination}"
        problems = [f"are the same cluster, so topic {one.topic} would be compared with itself" for one in same]
        raise ConfigError(where, problems, hint="correct the addresses, or name the copy with --copy-name")
    partitions = [
        _of_copies(observed, pair, number, request)
        for pair in pairs
        for number in range(observed.source.topics[pair.topic].partitions)
    ]
    return observed.plan(audit_id, "", request, partitions, -1, {})


def require_same_topics(ends: Ends, plan: AuditPlan) -> None:
    """Raise StateError if a topic was deleted or recreated since the audit was planned: its results would be of two
    topics. A check by the ledger queries the destination alone. Raise OtherCluster if one of the clusters is not the
    audited one: brokers before 2.8 have no topic IDs."""
    ends = ends.expecting(plan.source_cluster, plan.destination_cluster)
    for properties, cluster, side in (
        (ends.source_properties, ends.source, ("topic", "source_id")),
        (ends.destination_properties, ends.destination, ("copy_topic", "copy_id")),
    )[plan.request.relation == "ledger" :]:
        before = {topic_of(getattr(one, side[0])): getattr(one, side[1]) for one in plan.topics}
        now = Admin(properties, cluster).observe(before.__contains__).topics
        for name, topic_id in before.items():
            if topic_id and (name not in now or now[name].topic_id != topic_id):
                raise StateError(
                    f"audit {plan.id}: topic {name} of cluster {cluster} was deleted or recreated meanwhile",
                    hint="start a new audit",
                )


def _of_copies(observed: Observed, pair: Pair, number: int, request: AuditRequest) -> AuditedPartition:
    one = observed.partition(pair, number, request)
    if one.problem:
        return one
    here, there = TopicPartition(pair.topic, number), TopicPartition(pair.copy_topic, number)
    source_from = max(one.source_start, observed.since("source", here, "since", one.source_start))
    source_to = min(one.source_end, observed.since("source", here, "until", one.source_end))
    copy_from = max(one.copy_start, observed.since("copy", there, "since", one.copy_start))
    copy_to = min(one.copy_end, observed.since("copy", there, "until", one.copy_end))
    if request.relation == "order":
        ranges = {"source_start": source_from, "source_end": source_to, "copy_start": copy_from, "copy_end": copy_to}
        return one.model_copy(update={**ranges, "first": source_from, "end": max(source_to, source_from + 1)})
    first = max(source_from, copy_from)
    end = max(first, copy_to if request.until_ms is None else min(source_to, copy_to))
    deleted = abs(one.source_start - one.copy_start) if request.since_ms is None else 0
    tail = one.tail + max(0, one.source_end - one.copy_end) if request.until_ms is None else 0
    return one.model_copy(update={"first": first, "end": end, "deleted": deleted, "tail": tail})


def _of_link(
    observed: Observed,
    pair: Pair,
    number: int,
    state: LinkState,
    request: AuditRequest,
    producer_id: int,
    refused: str,
) -> AuditedPartition:
    one = observed.partition(pair, number, request)
    topic = pair.planned
    if one.problem or topic is None:
        return one
    if number >= len(topic.slots):
        return one.model_copy(update={"problem": "not replicated: the link's plan does not have this partition yet"})
    if refused:
        return one.model_copy(update={"problem": refused})
    here, there = TopicPartition(pair.topic, number), TopicPartition(pair.copy_topic, number)
    runs = runs_about(state.runs.get(here, ()), topic)
    if not runs:
        return one.model_copy(update={"problem": "the offset map has no entry for these two topics"})
    if problem := made_otherwise(runs, topic.policy.transform_digest):
        return one.model_copy(update={"problem": problem})
    log = OwnLog(runs)
    written, after = (
        log.records_before(offset).number for offset in (one.copy_end, observed.offsets["copy_after"][there])
    )
    producers = observed.producers.get(there, ())
    last = next((it.last_sequence for it in producers if it.producer_id == producer_id), -1)
    known = written if last < 0 else full_sequence(last, near=written) + 1
    shared = not written <= known <= after or any(run.shared for run in runs)
    if shared and any(it.open_since >= 0 for it in producers):  # which hides records after it
        points = SharedLog(sorted(runs, key=attrgetter("sequence_base")), one.copy_end).checkpoints()
        written = max([number for _, number in points], default=runs[0].sequence_base)
    elif shared:
        written = known
        one = one.model_copy(update={"copy_end": observed.offsets["copy_after"][there]})
    translator = Translator(runs, written, shared=shared, compacted=topic.policy.source_compacted)
    base, _ = translator.first
    first = max(base, translator.records_before(max(one.source_start, 0)).number)
    if not shared:
        first = max(first, log.records_before(one.copy_start).number)
    deleted = first - base
    end = written
    if request.since_ms is not None:
        since = observed.since("source", here, "since", one.source_end)
        first = max(first, translator.records_before(since).number)
    if request.until_ms is not None:
        until = observed.since("source", here, "until", one.source_end)
        end = min(end, translator.records_before(until).number)
    end = max(first, end)
    ids = observed.source.cluster_id, observed.copy.cluster_id
    by_time = request.since_ms is not None
    skipped = producers_left_out(topic.policy.copies, state.source_writers.all(), *ids)
    behind = one.tail if _end(one, topic) == one.source_end else 0
    found = one.model_copy(
        update={
            "first": first,
            "end": end,
            "whole": shared,
            "deleted": max(0, deleted),
            "tail": behind + max(0, _end(one, topic) - translator.next_at_source(written).number),
            "moved_in": None if by_time else moved_in(topic, number, state, runs, ids),
            "skipped": 0 if by_time else skipped_before(topic, one, state, runs, ids),
            "skipped_producers": tuple(sorted(skipped)),
            "on_record": tuple(on_record(state.losses.get(here, ()), state.quarantined.get(here, ()))),
            "on_foreign": "" if topic.policy.on_foreign == "halt" else f"on_foreign: {topic.policy.on_foreign}",
        }
    )
    found = found.model_copy(update={"unknown": unknown_records(found, translator)})
    if topic.policy.transform is None:
        return found
    since = 0 if request.since_ms is None else observed.since("source", here, "since", one.source_end)
    until = min(observed.since("source", here, "until", one.source_end), _end(one, topic))
    found = found.model_copy(update={"tail": behind})  # the records before are evaluated, and counted if they are kept
    return of_transformed(found, topic.policy.transform, runs, translator, (since, until))


def _end(one: AuditedPartition, topic: PlannedTopic) -> int:
    """Return the source offset before which the link copies the partition."""
    until = topic.policy.end_of(one.partition)
    return one.source_end if until < 0 else min(one.source_end, until)
