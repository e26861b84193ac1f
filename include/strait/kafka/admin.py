"""Administration of one cluster: facts in, actions out, every error one of ours."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka import admin as kafka_admin

from strait.errors import ClusterUnavailable, StraitError
from strait.kafka.clients import CONNECT_TIMEOUT_SECONDS, Watch, ask, make_admin
from strait.kafka.translate import error_of
from strait.model import ClusterFacts, TopicFacts, TopicPartition

_REQUEST_SECONDS = 15.0
_WAIT_SLICE_SECONDS = 0.25

Where = Literal["earliest", "latest", "end"]
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. ``replication_factor`` None: the broker's default."""

    topic: str
    partitions: int
    replication_factor: int | None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[Key, Value]):
    """What came of one request about many things: each has a result or a failure."""

    results: Mapping[Key, Value]
    failures: Mapping[Key, StraitError]

    def or_raise(self) -> Mapping[Key, Value]:
        """The results, where nothing failed; else the first failure."""
        for failure in self.failures.values():
            raise failure
        return self.results


class Admin:
    """Connects when made, so that an unreachable cluster or a refused password shows at once.

    Raises:
        ConfigError: a property that librdkafka does not know.
        ClusterUnavailable, NotAuthorized: within `CONNECT_TIMEOUT_SECONDS`.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        self.cluster = cluster
        self._watch = Watch(cluster)
        self._client = make_admin(properties, self._watch)
        self.cluster_id = str(self._list_topics().cluster_id)

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
        """Create topics, or raise for the first that is refused; return the names created here, sorted."""
        return sorted(name for name, here in self.create_each(topics).or_raise().items() if here)

    def create_each(self, topics: Iterable[NewTopic]) -> Outcomes[str, bool]:
        """Create topics. True: created here; False: it exists already, because another control plane was faster.

        Raises:
            ClusterUnavailable: the cluster does not answer. What it refuses for one topic is that topic's failure.
        """
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
            return Outcomes({}, {})
        futures = self._client.create_topics(requests, request_timeout=_REQUEST_SECONDS, operation_timeout=10)
        found = self._wait(futures, "creating topic {}", none_if={KafkaError.TOPIC_ALREADY_EXISTS})
        away = next((error for error in found.failures.values() if isinstance(error, ClusterUnavailable)), None)
        if away is not None:
            raise away
        return Outcomes({name: done is not None for name, done in found.results.items()}, found.failures)

    def offsets(self, partitions: Iterable[TopicPartition], where: Where) -> Mapping[TopicPartition, int]:
        """An offset of each partition, or raise for the first that has no answer."""
        return self.offsets_each(partitions, where).or_raise()

    def offsets_each(self, partitions: Iterable[TopicPartition], where: Where) -> Outcomes[TopicPartition, int]:
        """An offset of each partition: its first one, its last stable one, or the one that the next record gets.

        A partition without a leader is a failure of its own; the others have their offsets.
        """
        spec = kafka_admin.OffsetSpec.earliest() if where == "earliest" else kafka_admin.OffsetSpec.latest()
        isolation = IsolationLevel.READ_UNCOMMITTED if where == "end" else IsolationLevel.READ_COMMITTED
        asked = {KafkaTopicPartition(tp.topic, tp.partition): spec for tp in partitions}
        if not asked:
            return Outcomes({}, {})
        futures = self._client.list_offsets(asked, isolation_level=isolation, request_timeout=_REQUEST_SECONDS)
        named = {TopicPartition(tp.topic, tp.partition): future for tp, future in futures.items()}
        found = self._wait(named, f"looking up the {where} offset of {{}}")
        return Outcomes({tp: int(result.offset) for tp, result in found.results.items()}, found.failures)

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
        described = self._wait(futures, "describing topic {}", none_if=gone).or_raise()
        return {name: topic for name, topic in described.items() if topic is not None}

    def _configs(self, topics: list[str], names: Collection[str]) -> dict[str, dict[str, str]]:
        resources = [kafka_admin.ConfigResource(kafka_admin.ConfigResource.Type.TOPIC, topic) for topic in topics]
        if not resources:
            return {}
        futures = self._client.describe_configs(resources, request_timeout=_REQUEST_SECONDS)
        named = {resource.name: future for resource, future in futures.items()}
        gone = {KafkaError.UNKNOWN_TOPIC_OR_PART}
        results = self._wait(named, "reading configs of topic {}", none_if=gone).or_raise()
        return {
            topic: {name: str(entries[name].value) for name in names if name in entries}
            for topic, entries in results.items()
            if entries is not None
        }

    def _wait(
        self, futures: Mapping[Key, Future[Any]], doing: str, none_if: Collection[int] = ()
    ) -> Outcomes[Key, Any]:
        """Wait for all futures; a result of None counts as True. Error codes in ``none_if`` give None instead."""
        deadline = time.monotonic() + _REQUEST_SECONDS + 5
        pending = set(futures.values())
        while pending:
            pending = wait(pending, timeout=_WAIT_SLICE_SECONDS).not_done
            self._client.poll(0)
            if pending and time.monotonic() > deadline:
                raise ClusterUnavailable(self.cluster, f"{doing.format('…')}: no answer in time")
        results: dict[Key, Any] = {}
        failures: dict[Key, StraitError] = {}
        for key, future in futures.items():
            try:
                result = future.result()
                results[key] = True if result is None else result
            except KafkaException as exception:
                if error_of(exception).code() in none_if:
                    results[key] = None
                else:
                    failures[key] = self._watch.translate(exception, doing.format(key))
        return Outcomes(results, failures)


def _topic_id(uuid: Any) -> str:
    """Kafka's own text form of a topic id: base64 for URLs, without padding. librdkafka writes plain base64."""
    return str(uuid).replace("+", "-").replace("/", "_").rstrip("=")
