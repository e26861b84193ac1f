"""Changes to existing topics, and to ACLs on topics. Each item has its own result; one rejection does not stop the
others."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka import admin as kafka_admin

from strait.errors import NotAuthorized
from strait.kafka.connection import CHANGES_AT_ONCE, DESCRIBED_AT_ONCE, REQUEST_SECONDS, Connection, Outcomes
from strait.model import TopicAcl

_OPERATION_SECONDS = 10


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Configurations to set on a topic, and those to remove from it; configurations that are not named are
    unchanged."""

    put: Mapping[str, str]
    reset: Collection[str] = field(default=())


class Alteration(Connection):
    """Every method raises ClusterUnavailable if the cluster does not answer. If the cluster rejects one item, that is
    this item's failure."""

    def grow_each(self, partitions: Mapping[str, int]) -> Outcomes[str, bool]:
        """Increase topics to these partition counts. False: the topic has them already, because another control plane
        was faster."""

        def ask(piece: list[str]) -> Outcomes[str, bool]:
            futures = self._client.create_partitions(
                [kafka_admin.NewPartitions(topic, partitions[topic]) for topic in piece],
                request_timeout=REQUEST_SECONDS,
                operation_timeout=_OPERATION_SECONDS,
            )
            has_them = {KafkaError.INVALID_PARTITIONS}
            found = self._wait(futures, "adding partitions to topic {}", none_if=has_them).unless_away()
            return Outcomes({topic: done is not None for topic, done in found.results.items()}, found.failures)

        return self._in_pieces(
            partitions, CHANGES_AT_ONCE, ask, "adding partitions to topics", key_of=str, size_of=partitions.__getitem__
        )

    def alter_each(self, changes: Mapping[str, ConfigChange], *, only_asked: bool = False) -> Outcomes[str, bool]:
        """Alter configurations of topics, one by one.

        Args:
            only_asked: only check whether they could be altered; none is.
        """

        def ask(piece: list[str]) -> Outcomes[str, bool]:
            futures = self._client.incremental_alter_configs(
                [_altered(topic, changes[topic]) for topic in piece],
                request_timeout=REQUEST_SECONDS,
                validate_only=only_asked,
            )
            named = {resource.name: future for resource, future in futures.items()}
            return self._wait(named, "altering configs of topic {}").unless_away()

        def size_of(topic: str) -> int:
            return len(changes[topic].put) + len(changes[topic].reset)

        return self._in_pieces(changes, CHANGES_AT_ONCE, ask, "altering configs of topics", key_of=str, size_of=size_of)

    def delete_each(self, topics: Collection[str]) -> Outcomes[str, bool]:
        """Delete topics. False: the topic was deleted already."""

        def ask(piece: list[str]) -> Outcomes[str, bool]:
            futures = self._client.delete_topics(
                piece, request_timeout=REQUEST_SECONDS, operation_timeout=_OPERATION_SECONDS
            )
            gone = {KafkaError.UNKNOWN_TOPIC_OR_PART}
            found = self._wait(futures, "deleting topic {}", none_if=gone).unless_away()
            return Outcomes({topic: done is not None for topic, done in found.results.items()}, found.failures)

        return self._in_pieces(topics, DESCRIBED_AT_ONCE, ask, "deleting topics", key_of=str)

    def delete_groups_each(self, groups: Collection[str]) -> Outcomes[str, bool]:
        """Delete consumer groups without members. False: the group was deleted already."""

        def ask(piece: list[str]) -> Outcomes[str, bool]:
            futures = self._client.delete_consumer_groups(piece, request_timeout=REQUEST_SECONDS)
            found = self._wait(futures, "deleting group {}", none_if={KafkaError.GROUP_ID_NOT_FOUND}).unless_away()
            return Outcomes({group: done is not None for group, done in found.results.items()}, found.failures)

        return self._in_pieces(groups, DESCRIBED_AT_ONCE, ask, "deleting groups", key_of=str)

    def absent(self, topics: Collection[str]) -> frozenset[str]:
        """Return the topics that the cluster reports as missing. It never does so for a topic that this principal may
        not see, whether or not that exists."""
        found = self._describe(topics).unless_away()
        return frozenset(topic for topic, answer in found.results.items() if answer is None)

    def _describe(self, topics: Collection[str], **options: Any) -> Outcomes[str, Any]:
        """Describe topics; None for a topic that does not exist."""
        gone = {KafkaError.UNKNOWN_TOPIC_OR_PART}

        def ask(piece: list[str]) -> Outcomes[str, Any]:
            futures = self._client.describe_topics(TopicCollection(piece), request_timeout=REQUEST_SECONDS, **options)
            return self._wait(futures, "describing topic {}", none_if=gone)

        return self._in_pieces(topics, DESCRIBED_AT_ONCE, ask, "describing topics", key_of=str)

    def acls(self) -> frozenset[TopicAcl]:
        """Return all ACLs on topics, except those with values that librdkafka does not know.

        Raises (besides): ClusterError if there is no authorizer, or no permission to query it.
        """
        self._check_may_list_acls()
        every = kafka_admin.AclBindingFilter(
            kafka_admin.ResourceType.TOPIC,
            None,
            kafka_admin.ResourcePatternType.ANY,
            None,
            None,
            kafka_admin.AclOperation.ANY,
            kafka_admin.AclPermissionType.ANY,
        )
        future = self._client.describe_acls(every, request_timeout=REQUEST_SECONDS)
        found = self._wait({"topics": future}, "listing ACLs of {}").or_raise()["topics"]
        return frozenset(acl for acl in map(_acl, found) if "UNKNOWN" not in acl)

    def _check_may_list_acls(self) -> None:
        """Raise NotAuthorized if this principal may not list ACLs: librdkafka would return none, without an error."""
        future = self._client.describe_cluster(include_authorized_operations=True, request_timeout=REQUEST_SECONDS)
        cluster = self._wait({"": future}, "describing the cluster").or_raise()[""]
        allowed = {operation.name for operation in cluster.authorized_operations or ()}
        if "DESCRIBE" not in allowed:
            raise NotAuthorized(
                self.cluster,
                "listing the ACLs of topics: CLUSTER_AUTHORIZATION_FAILED: DESCRIBE on the cluster is not allowed",
                hint="grant this principal DESCRIBE on the cluster",
            )

    def add_acls_each(self, acls: Iterable[TopicAcl]) -> Outcomes[TopicAcl, bool]:
        """Add ACLs on topics."""

        def ask(piece: list[TopicAcl]) -> Outcomes[TopicAcl, bool]:
            bindings = {_binding(acl): acl for acl in piece}
            futures = self._client.create_acls(list(bindings), request_timeout=REQUEST_SECONDS)
            named = {bindings[binding]: future for binding, future in futures.items()}
            return self._wait(named, "adding ACL {}").unless_away()

        return self._in_pieces(acls, CHANGES_AT_ONCE, ask, "adding ACLs", key_of=_itself)

    def remove_acls_each(self, acls: Iterable[TopicAcl]) -> Outcomes[TopicAcl, bool]:
        """Remove exactly these ACLs."""

        def ask(piece: list[TopicAcl]) -> Outcomes[TopicAcl, bool]:
            filters = {_filter(acl): acl for acl in piece}
            futures = self._client.delete_acls(list(filters), request_timeout=REQUEST_SECONDS)
            named = {filters[one]: future for one, future in futures.items()}
            found = self._wait(named, "removing ACL {}").unless_away()
            return Outcomes(dict.fromkeys(found.results, True), found.failures)

        return self._in_pieces(acls, CHANGES_AT_ONCE, ask, "removing ACLs", key_of=_itself)


def _itself(acl: TopicAcl) -> TopicAcl:
    return acl


def _altered(topic: str, change: ConfigChange) -> kafka_admin.ConfigResource:
    put, reset = kafka_admin.AlterConfigOpType.SET, kafka_admin.AlterConfigOpType.DELETE
    entries = [
        *(kafka_admin.ConfigEntry(name, value, incremental_operation=put) for name, value in change.put.items()),
        *(kafka_admin.ConfigEntry(name, None, incremental_operation=reset) for name in change.reset),
    ]
    return kafka_admin.ConfigResource(kafka_admin.ConfigResource.Type.TOPIC, topic, incremental_configs=entries)


def _acl(binding: kafka_admin.AclBinding) -> TopicAcl:
    return TopicAcl(
        binding.name,
        binding.resource_pattern_type.name,
        binding.principal,
        binding.host,
        binding.operation.name,
        binding.permission_type.name,
    )


def _binding(acl: TopicAcl) -> kafka_admin.AclBinding:
    return kafka_admin.AclBinding(*_words(acl))


def _filter(acl: TopicAcl) -> kafka_admin.AclBindingFilter:
    return kafka_admin.AclBindingFilter(*_words(acl))


def _words(acl: TopicAcl) -> tuple[object, ...]:
    return (
        kafka_admin.ResourceType.TOPIC,
        acl.name,
        kafka_admin.ResourcePatternType[acl.pattern],
        acl.principal,
        acl.host,
        kafka_admin.AclOperation[acl.operation],
        kafka_admin.AclPermissionType[acl.permission],
    )
