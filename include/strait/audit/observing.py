"""Plans an audit from the state of both clusters, and for a link from its state topics. Changes nothing.

The destination's ends are read first, then the source's, then the offset map. So each record of the destination comes
from a source record before the source's end, and the map describes all of them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from strait.audit.chunks import chunk_records, unknown_records
from strait.audit.link_state import Ends, LinkState, moved_in, on_record, owner_of, read_link, skipped_before
from strait.audit.plan import AuditedPartition, AuditedTopic, AuditPlan
from strait.audit.transformed import made_otherwise, of_transformed, refused_transforms
from strait.config.audit import AuditRequest
from strait.config.validation import did_you_mean
from strait.errors import ConfigError, StateError, StraitError, UnsupportedRequest
from strait.kafka.admin import Admin
from strait.model import ClusterFacts, TopicPartition
from strait.net.cluster_facts import partition_bytes
from strait.net.producers import ActiveProducer, active_producers
from strait.state.admission import Admission
from strait.state.destination_log import OwnLog, SharedLog
from strait.state.offset_map import full_sequence
from strait.state.planned_pairs import runs_about
from strait.state.reader import StateReader
from strait.state.registrations import producers_left_out
from strait.state.schema import PlannedTopic
from strait.state.translation import Translator
from strait.waiting import unix_ms

CONFIGS = ("cleanup.policy", "message.timestamp.type")


@dataclass
class Pair:
    """A topic on both sides. ``planned``: as the link's plan has it."""

    topic: str
    copy_topic: str
    planned: PlannedTopic | None = None


def plan_link(
    ends: Ends, link: str, request: AuditRequest, audit_id: str, admission: Admission | None = None
) -> AuditPlan:
    """Plan the audit of a link.

    Args:
        admission: of the audit's own spec: how a plan without the link's signature may have records transformed.

    Raises:
        ConfigError: the link has no plan, or does not replicate a named topic.
        ClusterUnavailable, NotAuthorized, StateError
    """
    there = ends.destination_properties, ends.destination
    with StateReader(*there, link, follow=("plan",)) as reader:
        reader.catch_up()
        planned = {topic.source: topic for plan in reader.plans.values() for topic in plan.topics}
    if not planned:
        raise ConfigError(f"link {link}", ["has no plan with topics"], hint=f"run `strait apply {link}`")
    for name in request.topics:
        if name not in planned:
            raise ConfigError(f"link {link}", [f"its plan has no topic {name!r}{did_you_mean(name, planned)}"])
    pairs = [
        Pair(topic.source, topic.destination, topic)
        for topic in planned.values()
        if not request.topics or topic.source in request.topics
    ]
    observed = _Observed.of(ends, pairs, request)
    state = read_link(ends, link)  # after the logs' ends, so that it describes all records before them
    producer_id = next(plan.producer_id for plan in state.plans.values())
    refused = {} if admission is None else refused_transforms(state, admission)
    partitions = [
        _of_link(observed, pair, number, state, request, producer_id, refused.get(pair.topic, ""))
        for pair in pairs
        for number in range(len(pair.planned.slots) if pair.planned else 0)
    ]
    owners = {
        str(one.producer_id): owner_of(one, link) for one in state.writers.all() if one.producer_id != producer_id
    }
    return observed.plan(audit_id, link, request, partitions, producer_id, owners)


def plan_copies(ends: Ends, names: Mapping[str, str], request: AuditRequest, audit_id: str) -> AuditPlan:
    """Plan the audit of another tool's copies. ``names``: source topic -> its name on the destination.

    Raises:
        ConfigError: a cluster lacks one of the topics.
        ClusterUnavailable, NotAuthorized
    """
    pairs = [Pair(*pair) for pair in names.items()]
    observed = _Observed.of(ends, pairs, request)
    missing = [
        f"cluster {facts.name} has no topic {name}"
        for facts, side in ((observed.source, "topic"), (observed.copy, "copy_topic"))
        for name in (getattr(pair, side) for pair in pairs)
        if name not in facts.topics
    ]
    if missing:
        raise ConfigError("audit", missing)
    partitions = [
        _of_copies(observed, pair, number, request)
        for pair in pairs
        for number in range(observed.source.topics[pair.topic].partitions)
    ]
    return observed.plan(audit_id, "", request, partitions, -1, {})


def require_same_topics(ends: Ends, plan: AuditPlan) -> None:
    """Raise StateError if a topic was deleted or recreated since the audit was planned: its results would be of two
    topics. A check by the ledger queries the destination alone."""
    for properties, cluster, side in (
        (ends.source_properties, ends.source, ("topic", "source_id")),
        (ends.destination_properties, ends.destination, ("copy_topic", "copy_id")),
    )[plan.request.relation == "ledger" :]:
        before = {getattr(one, side[0]): getattr(one, side[1]) for one in plan.topics}
        now = Admin(properties, cluster).observe(before.__contains__).topics
        for name, topic_id in before.items():
            if topic_id and (name not in now or now[name].topic_id != topic_id):
                raise StateError(
                    f"audit {plan.id}: topic {name} of cluster {cluster} was deleted or recreated meanwhile",
                    hint="start a new audit",
                )


@dataclass
class _Observed:
    """Facts about both clusters, and the offsets of all partitions at one moment."""

    ends: Ends
    source: ClusterFacts
    copy: ClusterFacts
    offsets: Mapping[str, Mapping[TopicPartition, int]]
    failures: Mapping[str, Mapping[TopicPartition, StraitError]]
    sizes: Mapping[TopicPartition, int]
    producers: Mapping[TopicPartition, Sequence[ActiveProducer]]

    @classmethod
    def of(cls, ends: Ends, pairs: Sequence[Pair], request: AuditRequest) -> "_Observed":
        source, copy = Admin(ends.source_properties, ends.source), Admin(ends.destination_properties, ends.destination)
        here = source.observe({pair.topic for pair in pairs}.__contains__, CONFIGS)
        there = copy.observe({pair.copy_topic for pair in pairs}.__contains__, CONFIGS)
        sources, copies = (
            _places(here, [pair.topic for pair in pairs]),
            _places(there, [pair.copy_topic for pair in pairs]),
        )
        copy_end = copy.offsets_each(copies, "latest")
        producers = _producers(ends, copies) if request.relation == "map" else {}
        asked = {
            "copy_end": copy_end,
            "copy_after": copy.offsets_each(copies, "end"),
            "copy_start": copy.offsets_each(copies, "earliest"),
            "source_end": source.offsets_each(sources, "latest"),
            "source_start": source.offsets_each(sources, "earliest"),
        }
        for name, time_ms in (("since", request.since_ms), ("until", request.until_ms)):
            if time_ms is not None:
                asked[f"source_{name}"] = source.offsets_since_each(dict.fromkeys(sources, time_ms))
                asked[f"copy_{name}"] = copy.offsets_since_each(dict.fromkeys(copies, time_ms))
        return cls(
            ends,
            here,
            there,
            {name: one.results for name, one in asked.items()},
            {name: one.failures for name, one in asked.items()},
            partition_bytes(ends.source_properties, ends.source, sources),
            producers,
        )

    def plan(
        self,
        audit_id: str,
        link: str,
        request: AuditRequest,
        partitions: Sequence[AuditedPartition],
        producer_id: int,
        owners: dict[str, str],
    ) -> AuditPlan:
        names = dict.fromkeys((one.topic, one.copy_topic) for one in partitions)
        transforms = {one.topic: one.transform.digest for one in partitions if one.transform is not None}
        topics = [
            AuditedTopic(
                topic=topic,
                copy_topic=copy,
                source_id=self.source.topics[topic].topic_id if topic in self.source.topics else "",
                copy_id=self.copy.topics[copy].topic_id if copy in self.copy.topics else "",
                transform=transforms.get(topic, ""),
            )
            for topic, copy in names
        ]
        return AuditPlan(
            id=audit_id,
            link=link,
            request=request,
            source=self.ends.source,
            destination=self.ends.destination,
            source_cluster=self.source.cluster_id,
            destination_cluster=self.copy.cluster_id,
            producer_id=producer_id,
            owners=owners,
            topics=tuple(topics),
            partitions=tuple(sorted(partitions, key=lambda one: (one.topic, one.partition))),
            planned_at_ms=unix_ms(),
        )

    def partition(self, pair: Pair, number: int, request: AuditRequest) -> AuditedPartition:
        """Return a partition with its offsets, or with the problem that keeps it from being compared."""
        here, there = TopicPartition(pair.topic, number), TopicPartition(pair.copy_topic, number)
        one = AuditedPartition(topic=pair.topic, partition=number, copy_topic=pair.copy_topic)
        if problem := self._problem(pair, here, there):
            return one.model_copy(update={"problem": problem})
        found = {name: places[here if name.startswith("source") else there] for name, places in self.offsets.items()}
        records = max(0, found["source_end"] - found["source_start"])
        configs = self.source.topics[pair.topic].configs, self.copy.topics[pair.copy_topic].configs
        return one.model_copy(
            update={
                **{name: found[name] for name in ("source_start", "source_end", "copy_start", "copy_end")},
                "chunk_records": chunk_records(request.chunk_bytes, self.sizes.get(here, 0), records),
                "timed": configs[1].get("message.timestamp.type") != "LogAppendTime",
                "source_compacted": "compact" in configs[0].get("cleanup.policy", ""),
                "copy_compacted": "compact" in configs[1].get("cleanup.policy", ""),
            }
        )

    def since(self, side: str, place: TopicPartition, name: str, otherwise: int) -> int:
        """Return the offset at the requested time, within the log."""
        found = self.offsets.get(f"{side}_{name}", {}).get(place, otherwise)
        return otherwise if found < 0 else found

    def _problem(self, pair: Pair, here: TopicPartition, there: TopicPartition) -> str:
        for facts, place, side in ((self.source, here, "source"), (self.copy, there, "destination")):
            topic = facts.topics.get(place.topic)
            if topic is None:
                return f"cluster {facts.name} has no topic {place.topic}"
            if place.partition >= topic.partitions:
                return f"topic {place.topic} of cluster {facts.name} has no partition {place.partition}"
            planned = pair.planned and getattr(pair.planned, f"{side}_id")
            if planned and topic.topic_id not in ("", planned):
                return f"topic {place.topic} of {facts.name} is not the one that the link replicates"
        for failures in self.failures.values():
            if error := failures.get(here) or failures.get(there):
                return error.message
        return ""


def _producers(ends: Ends, copies: Collection[TopicPartition]) -> Mapping[TopicPartition, Sequence[ActiveProducer]]:
    """Return the active producers of each partition; none if the brokers lack the request."""
    try:
        return active_producers(ends.destination_properties, ends.destination, copies)
    except UnsupportedRequest:
        return {}


def _places(facts: ClusterFacts, names: Iterable[str]) -> list[TopicPartition]:
    return [
        TopicPartition(name, number)
        for name in dict.fromkeys(names)
        if name in facts.topics
        for number in range(facts.topics[name].partitions)
    ]


def _of_copies(observed: _Observed, pair: Pair, number: int, request: AuditRequest) -> AuditedPartition:
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
    tail = max(0, one.source_end - one.copy_end) if request.until_ms is None else 0
    return one.model_copy(update={"first": first, "end": end, "deleted": deleted, "tail": tail})


def _of_link(
    observed: _Observed,
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
    found = one.model_copy(
        update={
            "first": first,
            "end": end,
            "whole": shared,
            "deleted": max(0, deleted),
            "tail": max(0, _end(one, topic) - translator.next_at_source(written).number),
            "moved_in": None if by_time else moved_in(topic, number, state, runs, ids),
            "skipped": 0 if by_time else skipped_before(topic, one, state, runs, ids),
            "skipped_producers": tuple(sorted(skipped)),
            "on_record": tuple(on_record(here, state)),
            "on_foreign": "" if topic.policy.on_foreign == "halt" else f"on_foreign: {topic.policy.on_foreign}",
        }
    )
    found = found.model_copy(update={"unknown": unknown_records(found, translator)})
    if topic.policy.transform is None:
        return found
    since = 0 if request.since_ms is None else observed.since("source", here, "since", one.source_end)
    until = min(observed.since("source", here, "until", one.source_end), _end(one, topic))
    return of_transformed(found, topic.policy.transform, runs, translator, (since, until))


def _end(one: AuditedPartition, topic: PlannedTopic) -> int:
    """Return the source offset before which the link copies the partition."""
    until = topic.policy.end_of(one.partition)
    return one.source_end if until < 0 else min(one.source_end, until)
