"""Administration of one cluster: facts in, actions out, every error one of Strait's."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from confluent_kafka import OFFSET_INVALID, ConsumerGroupState, ConsumerGroupTopicPartitions, IsolationLevel, KafkaError
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka import admin as kafka_admin

from strait.config.route_names import in_layers, place_of, topic_of
from strait.errors import ClusterUnavailable, NotAuthorized, StraitError
from strait.kafka.alteration import Alteration, ConfigChange
from strait.kafka.connection import CHANGES_AT_ONCE, DESCRIBED_AT_ONCE, OFFSETS_AT_ONCE, REQUEST_SECONDS, Outcomes
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.waiting import tries

__all__ = ["Admin", "ConfigChange", "NewTopic", "Outcomes", "Where"]

Where = Literal["earliest", "latest", "end"]

_ON_TOPIC = kafka_admin.ConfigSource.DYNAMIC_TOPIC_CONFIG
_ON_CLUSTER = {
    kafka_admin.ConfigSource.DYNAMIC_BROKER_CONFIG,
    kafka_admin.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    kafka_admin.ConfigSource.GROUP_CONFIG,
}
_AGREE_SECONDS = 5.0
_AGREE_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. ``replication_factor`` None: the broker's default."""

    topic: str
    partitions: int
    replication_factor: int | None
    configs: Mapping[str, str] = field(default_factory=dict)


class FirstRecord(NamedTuple):
    """The first record of a partition that fulfils a condition; offset -1: there is none."""

    offset: int
    timestamp_ms: int


class GroupMember(NamedTuple):
    """A member of a consumer group. ``topics``: those of the partitions that are assigned to it; None: unknown, since the
    group has not assigned any to it yet."""

    client_id: str
    host: str
    topics: frozenset[str] | None


class Admin(Alteration):
    """Constructed as a `Connection`, and raises as it does. However many items a call covers, each request has only as
    many as a broker answers in time. A route's name is resolved to its topic on the source."""

    def observe(self, wanted: Callable[[str], bool], configs: Collection[str] | None = ()) -> ClusterFacts:
        """Return every topic's name and partition count; for wanted ones also the topic ID and their configurations.

        For some time after a topic was created or deleted, brokers disagree on whether it exists, and the listing may come
        from one, the description from another. Both are then requested again, for `_AGREE_SECONDS` at most. A topic that
        cannot be described even then is omitted: its ID is unknown, so it cannot be distinguished from another of its name.

        Args:
            configs: names of the configurations whose effective values to return, None for all; values set on a topic
                are returned as well. Empty: query no configurations.
        """
        for _ in tries(_AGREE_SECONDS, _AGREE_PAUSE_SECONDS):
            facts = {name: TopicFacts(name, "", count) for name, count in self.partition_counts().items()}
            described = _or_refused(self._describe(sorted(name for name in facts if wanted(name))))
            shown = {name: topic for name, topic in described.results.items() if topic is not None}
            if len(shown) == len(described.results):
                break
        for name in described.results.keys() - shown.keys():
            del facts[name]
        for name, topic in shown.items():
            facts[name] = TopicFacts(
                name,
                _topic_id(topic.topic_id),
                len(topic.partitions),
                internal=bool(topic.is_internal),
                replicas=len(topic.partitions[0].replicas) if topic.partitions else 0,
            )
        refused = dict(described.failures)
        if configs is None or configs:
            found = self._configs(list(shown), configs)
            refused |= found.failures
            for name, told in found.results.items():
                facts[name] = replace(
                    facts[name],
                    configs=told.in_force,
                    topic_configs=told.on_topic,
                    cluster_configs=told.on_cluster,
                )
        for name, error in refused.items():
            facts[name] = replace(facts[name], denied=error.message)
        return ClusterFacts(self.cluster, self.cluster_id, facts)

    def partition_counts(self) -> dict[str, int]:
        """Return topic -> number of partitions, for every topic, by one request. Raises ClusterUnavailable,
        NotAuthorized."""
        topics = self._list_topics().topics
        return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}

    def create(self, topics: Iterable[NewTopic]) -> list[str]:
        """Create topics, or raise for the first that is rejected; return the names created here, sorted."""
        return sorted(name for name, here in self.create_each(topics).or_raise().items() if here)

    def create_each(self, topics: Iterable[NewTopic], *, only_asked: bool = False) -> Outcomes[str, bool]:
        """Create topics. True: created here; False: it exists already, because another control plane was faster.

        Args:
            only_asked: only check whether they could be created; none is.

        Raises:
            ClusterUnavailable: the cluster does not answer. If it rejects one topic, that is this topic's failure.
        """

        def ask(piece: list[NewTopic]) -> Outcomes[str, bool]:
            futures = self._client.create_topics(
                list(map(_requested, piece)),
                request_timeout=REQUEST_SECONDS,
                operation_timeout=10,
                validate_only=only_asked,
            )
            exists = {KafkaError.TOPIC_ALREADY_EXISTS}
            found = self._wait(futures, "creating topic {}", none_if=exists).unless_away()
            return Outcomes({name: done is not None for name, done in found.results.items()}, found.failures)

        return self._in_pieces(
            topics,
            CHANGES_AT_ONCE,
            ask,
            "creating topics",
            key_of=lambda topic: topic.topic,
            size_of=lambda topic: 1 + topic.partitions + len(topic.configs),
        )

    def rights(self, topics: Collection[str]) -> dict[str, frozenset[str]]:
        """Return the operations that this principal is allowed on each topic, by Kafka's names; topics that the cluster
        does not describe to it are not included. Raises ClusterUnavailable."""
        names = sorted({topic_of(name) for name in topics})
        found = self._describe(names, include_authorized_operations=True).unless_away().results
        told = {name: topic.authorized_operations for name, topic in found.items() if topic is not None}
        rights = {name: frozenset(item.name for item in items) for name, items in told.items() if items is not None}
        return {name: rights[topic_of(name)] for name in topics if topic_of(name) in rights}

    def offsets(self, partitions: Iterable[TopicPartition], where: Where) -> Mapping[TopicPartition, int]:
        """Return an offset of each partition, or raise for the first that has no answer."""
        return self.offsets_each(partitions, where).or_raise()

    def offsets_each(self, partitions: Iterable[TopicPartition], where: Where) -> Outcomes[TopicPartition, int]:
        """Return an offset of each partition: its first one, its last stable one, or the one that the next record gets.

        A partition without a leader fails individually; the others have their offsets.
        """
        spec = kafka_admin.OffsetSpec.earliest() if where == "earliest" else kafka_admin.OffsetSpec.latest()
        isolation = IsolationLevel.READ_UNCOMMITTED if where == "end" else IsolationLevel.READ_COMMITTED
        return self._list_offsets(dict.fromkeys(partitions, spec), isolation, f"the {where} offset of {{}}")

    def offsets_since_each(self, times_ms: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, int]:
        """Return the offset of each partition's first record with that timestamp or a later one; -1 if there is
        none."""
        found = self.first_since_each(times_ms)
        return Outcomes({tp: first.offset for tp, first in found.results.items()}, found.failures)

    def first_since_each(self, times_ms: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, FirstRecord]:
        """The same, with the timestamp of that record."""
        specs = {time_ms: kafka_admin.OffsetSpec.for_timestamp(time_ms) for time_ms in set(times_ms.values())}
        asked = {tp: specs[time_ms] for tp, time_ms in times_ms.items()}
        return self._list_records(asked, IsolationLevel.READ_COMMITTED, "the offset at a time of {}")

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return the offsets that a consumer group has committed; empty if there is no such group.

        Raises:
            ClusterUnavailable, NotAuthorized
        """
        asked = [ConsumerGroupTopicPartitions(group)]
        futures = self._client.list_consumer_group_offsets(asked, request_timeout=REQUEST_SECONDS)
        found = self._wait(futures, "reading the offsets of group {}").or_raise()[group]
        places = (place for place in found.topic_partitions if place.offset >= 0)
        return {TopicPartition(place.topic, place.partition): int(place.offset) for place in places}

    def members_each(self, groups: Collection[str]) -> Outcomes[str, list[GroupMember]]:
        """Return the members of each consumer group. Raises ClusterUnavailable."""

        def ask(piece: list[str]) -> Outcomes[str, Any]:
            futures = self._client.describe_consumer_groups(piece, request_timeout=REQUEST_SECONDS)
            return self._wait(futures, "describing group {}")

        found = self._in_pieces(groups, DESCRIBED_AT_ONCE, ask, "describing groups", key_of=str).unless_away()
        return Outcomes(
            {name: [_member(member, group.state) for member in group.members] for name, group in found.results.items()},
            found.failures,
        )

    def _list_offsets(
        self, asked: Mapping[TopicPartition, Any], isolation: IsolationLevel, what: str
    ) -> Outcomes[TopicPartition, int]:
        found = self._list_records(asked, isolation, what)
        return Outcomes({tp: first.offset for tp, first in found.results.items()}, found.failures)

    def _list_records(
        self, asked: Mapping[TopicPartition, Any], isolation: IsolationLevel, what: str
    ) -> Outcomes[TopicPartition, FirstRecord]:
        names: dict[tuple[TopicPartition, int], list[TopicPartition]] = {}
        for name, spec in asked.items():  # routes of a partition get one answer, so of one moment
            names.setdefault((place_of(name), id(spec)), []).append(name)
        together = {of_place[0]: of_place for of_place in names.values()}
        records: dict[TopicPartition, FirstRecord] = {}
        failures: dict[TopicPartition, StraitError] = {}
        for layer in in_layers(together):  # a request may name each partition once
            found = self._records_there({there: asked[name] for there, name in layer.items()}, isolation, what)
            for there, first in found.results.items():
                records |= dict.fromkeys(together[layer[there]], first)
            for there, error in found.failures.items():
                failures |= dict.fromkeys(together[layer[there]], error)
        return Outcomes(records, failures)

    def _records_there(
        self, asked: Mapping[TopicPartition, Any], isolation: IsolationLevel, what: str
    ) -> Outcomes[TopicPartition, FirstRecord]:
        def ask(piece: list[TopicPartition]) -> Outcomes[TopicPartition, FirstRecord]:
            specs = {KafkaTopicPartition(tp.topic, tp.partition): asked[tp] for tp in piece}
            futures = self._client.list_offsets(specs, isolation_level=isolation, request_timeout=REQUEST_SECONDS)
            named = {TopicPartition(tp.topic, tp.partition): future for tp, future in futures.items()}
            found = self._wait(named, f"looking up {what}")
            records = {
                tp: FirstRecord(int(result.offset), int(result.timestamp)) for tp, result in found.results.items()
            }
            # librdkafka returns this instead of an error for a partition that it did not query in time
            unanswered = {tp for tp, first in records.items() if first.offset == OFFSET_INVALID}
            failures = {
                tp: ClusterUnavailable(self.cluster, f"looking up {what.format(tp)}: no answer") for tp in unanswered
            }
            answered = {tp: first for tp, first in records.items() if tp not in unanswered}
            return Outcomes(answered, {**found.failures, **failures})

        return self._in_pieces(asked, OFFSETS_AT_ONCE, ask, "looking up offsets", key_of=lambda tp: tp)

    def configs(self, topic: str, names: Collection[str]) -> dict[str, str]:
        """Return the effective values of one topic's named configurations."""
        return dict(self._configs([topic], names).or_raise()[topic].in_force)

    def on_brokers(self, names: Sequence[str]) -> dict[int, tuple[str, str]]:
        """Return, for each broker that shows one of these configurations, the name and value of the first one. Raises
        ClusterUnavailable, NotAuthorized."""
        futures = {}
        for node in self._list_topics().brokers:
            resource = kafka_admin.ConfigResource(kafka_admin.ConfigResource.Type.BROKER, str(node))
            (futures[node],) = self._client.describe_configs([resource], request_timeout=REQUEST_SECONDS).values()
        found = self._wait(futures, "reading configs of broker {}").or_raise()
        shown = {
            node: [
                (name, str(entries[name].value))
                for name in names
                if name in entries and entries[name].value is not None
            ]
            for node, entries in found.items()
        }
        return {node: values[0] for node, values in shown.items() if values}

    def _configs(self, topics: Collection[str], names: Collection[str] | None) -> "Outcomes[str, _Told]":
        gone = {KafkaError.UNKNOWN_TOPIC_OR_PART}

        def ask(piece: list[str]) -> "Outcomes[str, _Told]":
            resources = [kafka_admin.ConfigResource(kafka_admin.ConfigResource.Type.TOPIC, topic) for topic in piece]
            futures = self._client.describe_configs(resources, request_timeout=REQUEST_SECONDS)
            named = {resource.name: future for resource, future in futures.items()}
            found = self._wait(named, "reading configs of topic {}", none_if=gone)
            shown = {topic: entries for topic, entries in found.results.items() if entries is not None}
            return Outcomes({topic: _told(entries.values(), names) for topic, entries in shown.items()}, found.failures)

        return _or_refused(self._in_pieces(topics, DESCRIBED_AT_ONCE, ask, "reading configs of topics", key_of=str))


@dataclass(frozen=True, slots=True)
class _Told:
    """Values of configurations, by origin."""

    in_force: Mapping[str, str]
    on_topic: Mapping[str, str]
    on_cluster: Mapping[str, str]


def _told(entries: Iterable[kafka_admin.ConfigEntry], names: Collection[str] | None) -> _Told:
    """Return the values by origin, without those that a client may not read or set."""
    in_force, on_topic, on_cluster = {}, {}, {}
    for entry in entries:
        if entry.value is None or entry.is_read_only or entry.is_sensitive:
            continue
        origin = kafka_admin.ConfigSource(entry.source)
        if names is None or entry.name in names:
            in_force[entry.name] = str(entry.value)
        if origin is _ON_TOPIC:
            on_topic[entry.name] = str(entry.value)
        elif origin in _ON_CLUSTER:
            on_cluster[entry.name] = str(entry.value)
    return _Told(in_force, on_topic, on_cluster)


def _requested(topic: NewTopic) -> kafka_admin.NewTopic:
    return kafka_admin.NewTopic(
        topic.topic,
        num_partitions=topic.partitions,
        replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
        config=dict(topic.configs),
    )


def _or_refused(found: Outcomes[str, Any]) -> Outcomes[str, Any]:
    """Return the outcomes, but raise the first failure that is more than a missing permission on one topic."""
    for error in found.failures.values():
        if not isinstance(error, NotAuthorized):
            raise error
    return found


def _member(member: Any, state: ConsumerGroupState) -> GroupMember:
    assigned = () if member.assignment is None else member.assignment.topic_partitions
    topics = frozenset(place.topic for place in assigned)
    # While a group rebalances, brokers return no assignments; in a stable group, a member without one has no partition.
    known = topics or state is ConsumerGroupState.STABLE
    return GroupMember(str(member.client_id), str(member.host), topics if known else None)


def _topic_id(uuid: Any) -> str:
    """Return Kafka's own text form of a topic ID: base64 for URLs, without padding. librdkafka writes plain base64."""
    return str(uuid).replace("+", "-").replace("/", "_").rstrip("=")
