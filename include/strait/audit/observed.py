"""The state of both clusters when an audit is planned: facts about the topics, and the offsets of all partitions."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from strait.audit.chunks import chunk_records
from strait.audit.link_state import Ends, no_topic
from strait.audit.plan import AuditedPartition, AuditedTopic, AuditPlan
from strait.config.audit import AuditRequest
from strait.config.route_names import topic_of
from strait.errors import NotAuthorized, StraitError, UnsupportedRequest
from strait.kafka.admin import Admin
from strait.model import ClusterFacts, TopicPartition
from strait.net.cluster_facts import partition_bytes
from strait.net.producers import ActiveProducer, active_producers
from strait.planning.topics.routes import under_names
from strait.state.schema import PlannedTopic
from strait.waiting import unix_ms

CONFIGS = ("cleanup.policy", "message.timestamp.type")


@dataclass
class Pair:
    """A topic on both sides. ``planned``: as the link's plan has it."""

    topic: str
    copy_topic: str
    planned: PlannedTopic | None = None

    @property
    def is_itself(self) -> bool:
        return self.topic == self.copy_topic


@dataclass
class Observed:
    """Facts about both clusters, and the offsets of all partitions at one moment."""

    ends: Ends
    source: ClusterFacts
    copy: ClusterFacts
    offsets: Mapping[str, Mapping[TopicPartition, int]]
    failures: Mapping[str, Mapping[TopicPartition, StraitError]]
    sizes: Mapping[TopicPartition, int]
    producers: Mapping[TopicPartition, Sequence[ActiveProducer]]

    @classmethod
    def of(cls, ends: Ends, pairs: Sequence[Pair], request: AuditRequest, *, whole: bool = False) -> "Observed":
        source, copy = Admin(ends.source_properties, ends.source), Admin(ends.destination_properties, ends.destination)
        names = {pair.topic for pair in pairs}
        here = under_names(source.observe({*map(topic_of, names)}.__contains__, CONFIGS), names)
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
            "source_after": source.offsets_each(sources, "end"),
            "source_start": source.offsets_each(sources, "earliest"),
        }
        for name, time_ms in (("since", request.since_ms), ("until", request.until_ms)):
            if time_ms is not None:
                asked[f"source_{name}"] = source.offsets_since_each(dict.fromkeys(sources, time_ms))
                asked[f"copy_{name}"] = copy.offsets_since_each(dict.fromkeys(copies, time_ms))
        if whole:
            for one in asked.values():
                one.unless_away()
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

    def partitions(self, pair: Pair) -> int:
        """Return how many partitions the plan or the source has, whichever are more."""
        source = self.source.topics.get(pair.topic)
        return max(len(pair.planned.slots) if pair.planned else 0, source.partitions if source else 0)

    def partition(self, pair: Pair, number: int, request: AuditRequest) -> AuditedPartition:
        """Return a partition with its offsets, or with the problem that keeps it from being compared. Its tail is that after
        an open transaction's first record."""
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
                "tail": max(0, found["source_after"] - found["source_end"]),
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
                return no_topic(facts.name, place.topic)
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
    """Return the active producers of each partition; none if the brokers lack the request. Of a topic that this principal may
    not read there are none either: reading it then fails and names the permission, and the other topics are compared."""
    try:
        return active_producers(ends.destination_properties, ends.destination, copies)
    except UnsupportedRequest:
        return {}
    except NotAuthorized:
        topics = sorted({one.topic for one in copies})
        if len(topics) == 1:
            return {}
        parts = (_producers(ends, [one for one in copies if one.topic == topic]) for topic in topics)
        return {place: found for part in parts for place, found in part.items()}


def _places(facts: ClusterFacts, names: Iterable[str]) -> list[TopicPartition]:
    return [
        TopicPartition(name, number)
        for name in dict.fromkeys(names)
        if name in facts.topics
        for number in range(facts.topics[name].partitions)
    ]
