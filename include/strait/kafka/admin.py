"""Administration of one cluster: facts in, actions out, every error one of ours."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka import admin as kafka_admin

from strait.errors import ClusterUnavailable
from strait.kafka.clients import CONNECT_TIMEOUT_SECONDS, Watch, ask, make_admin
from strait.kafka.translate import error_of
from strait.model import ClusterFacts, TopicFacts, TopicPartition

_REQUEST_SECONDS = 15.0
_WAIT_SLICE_SECONDS = 0.25

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. ``replication_factor`` None: the broker's default."""

    topic: str
    partitions: int
    replication_factor: int | None
    configs: Mapping[str, str] = field(default_factory=dict)


class Admin:
    """Connects when made, so that an unreachable cluster or a refused password shows at once.

    Raises:
        ConfigError: a property that librdkafka does not know.
        ClusterUnavailable, NotAuthorized: within `CONNECT_TIMEOUT_SECONDS`.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        self._watch = Watch(cluster)
        self._client = make_admin(properties, self._watch)
        metadata = self._list_topics()
        self.cluster = cluster
        self.cluster_id = str(metadata.cluster_id)

    def observe(self, wanted: Callable[[str], bool], configs: Collection[str] = ()) -> ClusterFacts:
        """Every topic's name and partition count; for wanted ones also the topic id and the named configs."""
        metadata = self._list_topics()
        self.cluster_id = str(metadata.cluster_id)
        facts = {
            name: TopicFacts(name, "", len(topic.partitions))
            for name, topic in metadata.topics.items()
            if topic.error is None
        }
        names = sorted(name for name in facts if wanted(name))
        described = self._describe(names)
        values = self._configs(list(described), configs) if configs else {}
        for name, topic in described.items():
            facts[name] = TopicFacts(
                name,
                _topic_id(topic.topic_id),
                len(topic.partitions),
                internal=bool(topic.is_internal),
                configs=values.get(name, {}),
            )
        return ClusterFacts(self.cluster, self.cluster_id, facts)

    def create(self, topics: Iterable[NewTopic]) -> list[str]:
        """Create topics; return the names that this call created. One that exists already is no error: another
        control plane was faster."""
        requests = [
            kafka_admin.NewTopic(
                topic.topic,
                num_partitions=topic.partitions,
                replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
                config=dict(topic.configs),
            )
            for topic in topics
        ]
        if not requests:
            return []
        futures = self._client.create_topics(requests, request_timeout=_REQUEST_SECONDS, operation_timeout=10)
        created = self._results(futures, "creating topic {}", none_if={KafkaError.TOPIC_ALREADY_EXISTS})
        return sorted(name for name, done in created.items() if done)

    def offsets(
        self, partitions: Iterable[TopicPartition], where: Literal["earliest", "latest"]
    ) -> dict[TopicPartition, int]:
        """The first offset (earliest) or the last stable offset (latest) of each partition."""
        spec = kafka_admin.OffsetSpec.earliest() if where == "earliest" else kafka_admin.OffsetSpec.latest()
        asked = {KafkaTopicPartition(tp.topic, tp.partition): spec for tp in partitions}
        if not asked:
            return {}
        futures = self._client.list_offsets(
            asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_REQUEST_SECONDS
        )
        found = {TopicPartition(tp.topic, tp.partition): future for tp, future in futures.items()}
        results = self._results(found, f"looking up the {where} offset of {{}}")
        return {tp: int(result.offset) for tp, result in results.items() if result is not None}

    def configs(self, topic: str, names: Collection[str]) -> dict[str, str]:
        """The named configs of one topic, as in force."""
        return self._configs([topic], names)[topic]

    def _list_topics(self) -> Any:
        def call(seconds: float) -> Any:
            try:
                return self._client.list_topics(timeout=seconds)
            finally:
                self._client.poll(0)  # librdkafka tells what is wrong with a connection only to those who poll

        return ask(self._watch, "connecting", CONNECT_TIMEOUT_SECONDS, call)

    def _describe(self, names: list[str]) -> dict[str, Any]:
        if not names:
            return {}
        futures = self._client.describe_topics(TopicCollection(names), request_timeout=_REQUEST_SECONDS)
        gone = {KafkaError.UNKNOWN_TOPIC_OR_PART}  # deleted since it was listed
        return {
            name: topic
            for name, topic in self._results(futures, "describing topic {}", none_if=gone).items()
            if topic is not None
        }

    def _configs(self, topics: list[str], names: Collection[str]) -> dict[str, dict[str, str]]:
        resources = [kafka_admin.ConfigResource(kafka_admin.ConfigResource.Type.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        futures = self._client.describe_configs(resources, request_timeout=_REQUEST_SECONDS)
        results = self._results({resource.name: f for resource, f in futures.items()}, "reading configs of topic {}")
        return {
            topic: {name: str(entries[name].value) for name in names if name in entries}
            for topic, entries in results.items()
        }

    def _results(self, futures: Mapping[Key, Future[Any]], doing: str, none_if: Collection[int] = ()) -> dict[Key, Any]:
        """Wait for all futures; a result of None counts as True. Error codes in ``none_if`` give None instead."""
        deadline = time.monotonic() + _REQUEST_SECONDS + 5
        pending = set(futures.values())
        while pending:
            pending = wait(pending, timeout=_WAIT_SLICE_SECONDS).not_done
            self._client.poll(0)
            if pending and time.monotonic() > deadline:
                raise ClusterUnavailable(self._watch.cluster, f"{doing.format('…')}: no answer in time")
        results: dict[Key, Any] = {}
        for key, future in futures.items():
            try:
                result = future.result()
                results[key] = True if result is None else result
            except KafkaException as exception:
                if error_of(exception).code() not in none_if:
                    raise self._watch.translate(exception, doing.format(key)) from exception
                results[key] = None
        return results


def _topic_id(uuid: Any) -> str:
    """Kafka's own text form of a topic id: base64 for URLs, without padding. librdkafka writes plain base64."""
    return str(uuid).replace("+", "-").replace("/", "_").rstrip("=")
