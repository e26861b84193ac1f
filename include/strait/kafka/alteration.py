"""Changes to topics that are there, and to rights on topics. Each thing has its own answer; one refusal stops no
other."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka import admin as kafka_admin

from strait.errors import NotAuthorized
from strait.kafka.connection import REQUEST_SECONDS, Connection, Outcomes
from strait.model import TopicAcl

_OPERATION_SECONDS = 10


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Configurations to set on a topic, and those to take off it; what is not named stays."""

    put: Mapping[str, str]
    reset: Collection[str] = field(default=())


class Alteration(Connection):
    """Raises (every method): ClusterUnavailable: the cluster does not answer. What it refuses is that one's failure."""

    def grow_each(self, partitions: Mapping[str, int]) -> Outcomes[str, bool]:
        """Give topics so many partitions. False: it has them already, because another control plane was faster."""
        if not partitions:
            return Outcomes({}, {})
        requests = [kafka_admin.NewPartitions(topic, count) for topic, count in partitions.items()]
        futures = self._client.create_partitions(
            requests, request_timeout=REQUEST_SECONDS, operation_timeout=_OPERATION_SECONDS
        )
        has_them = {KafkaError.INVALID_PARTITIONS}
        found = self._wait(futures, "adding partitions to topic {}", none_if=has_them).unless_away()
        return Outcomes({topic: done is not None for topic, done in found.results.items()}, found.failures)

    def alter_each(self, changes: Mapping[str, ConfigChange]) -> Outcomes[str, bool]:
        """Alter configurations of topics, one by one."""
        if not changes:
            return Outcomes({}, {})
        futures = self._client.incremental_alter_configs(
            [_altered(topic, change) for topic, change in changes.items()], request_timeout=REQUEST_SECONDS
        )
        named = {resource.name: future for resource, future in futures.items()}
        return self._wait(named, "altering configs of topic {}").unless_away()

    def delete_each(self, topics: Collection[str]) -> Outcomes[str, bool]:
        """Delete topics. False: it is gone already."""
        if not topics:
            return Outcomes({}, {})
        futures = self._client.delete_topics(
            list(topics), request_timeout=REQUEST_SECONDS, operation_timeout=_OPERATION_SECONDS
        )
        gone = {KafkaError.UNKNOWN_TOPIC_OR_PART}
        found = self._wait(futures, "deleting topic {}", none_if=gone).unless_away()
        return Outcomes({topic: done is not None for topic, done in found.results.items()}, found.failures)

    def delete_groups_each(self, groups: Collection[str]) -> Outcomes[str, bool]:
        """Delete consumer groups without members. False: it is gone already."""
        if not groups:
            return Outcomes({}, {})
        futures = self._client.delete_consumer_groups(list(groups), request_timeout=REQUEST_SECONDS)
        found = self._wait(futures, "deleting group {}", none_if={KafkaError.GROUP_ID_NOT_FOUND}).unless_away()
        return Outcomes({group: done is not None for group, done in found.results.items()}, found.failures)

    def absent(self, topics: Collection[str]) -> frozenset[str]:
        """Those of which the cluster says that they do not exist. Of a topic that this principal may not see it never
        says so, whether or not it is there."""
        if not topics:
            return frozenset()
        futures = self._client.describe_topics(TopicCollection(list(topics)), request_timeout=REQUEST_SECONDS)
        gone = {KafkaError.UNKNOWN_TOPIC_OR_PART}
        found = self._wait(futures, "describing topic {}", none_if=gone).unless_away()
        return frozenset(topic for topic, answer in found.results.items() if answer is None)

    def acls(self) -> frozenset[TopicAcl]:
        """All rules about topics, but for those in words that librdkafka does not know.

        Raises (besides): ClusterError where there is no authorizer, or no right to ask it.
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
        """To those who may not ask for rules librdkafka shows none, without a word of why."""
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
        """Add rules about topics."""
        bindings = {_binding(acl): acl for acl in acls}
        if not bindings:
            return Outcomes({}, {})
        futures = self._client.create_acls(list(bindings), request_timeout=REQUEST_SECONDS)
        named = {bindings[binding]: future for binding, future in futures.items()}
        return self._wait(named, "adding ACL {}").unless_away()

    def remove_acls_each(self, acls: Iterable[TopicAcl]) -> Outcomes[TopicAcl, bool]:
        """Remove these very rules."""
        filters = {_filter(acl): acl for acl in acls}
        if not filters:
            return Outcomes({}, {})
        futures = self._client.delete_acls(list(filters), request_timeout=REQUEST_SECONDS)
        named = {filters[one]: future for one, future in futures.items()}
        found = self._wait(named, "removing ACL {}").unless_away()
        return Outcomes(dict.fromkeys(found.results, True), found.failures)


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
