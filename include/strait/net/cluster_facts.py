"""Facts that only the brokers themselves have, read over short-lived connections: partition sizes, quotas, and whether
each of them knows a topic.

Sizes and quotas need permissions that copying does not need. So a denied request is not an error: the value is then
unknown.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from kafka.protocol.admin import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

from strait.config.route_names import place_of
from strait.errors import ClusterUnavailable, ProtocolError
from strait.model import TopicPartition
from strait.net import error_policy
from strait.net.brokers import Address, any_broker, broker_at, every_address, metadata, until_answered
from strait.net.handshake import CLIENT_ID, Connection
from strait.pieces import pieces

_LOG_DIRS = (35, 1, 4)
_QUOTAS = (48, 0, 1)
_PARTITIONS_AT_ONCE = 2_000  # keeps a reply far below the limit of `Connection.ask`


def partition_bytes(
    properties: Mapping[str, str], cluster: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the size in bytes of partitions on their brokers' disks, of those that may be read. Replicas count once.

    Raises:
        ClusterUnavailable, NotAuthorized: no broker answers, or not to these credentials. Unreachable brokers are
            skipped.
    """
    found: dict[TopicPartition, int] = {}
    for connection in _every_broker(properties, cluster):
        for partition, size, _ in _on_disks(connection, sorted(set(map(place_of, partitions)))):
            found[partition] = max(size, found.get(partition, 0))
    return {name: found[place_of(name)] for name in partitions if place_of(name) in found}


def log_directory(properties: Mapping[str, str], cluster: str, broker: Address, partition: TopicPartition) -> str:
    """Return the directory of this broker that holds its replica of a partition; "" if that may not be read. Raises as
    `partition_bytes`."""
    partition = place_of(partition)
    with broker_at(properties, cluster, broker) as connection:
        found = [directory for _, _, directory in _on_disks(connection, [partition])]
    return f"{found[0]}/{partition}" if found else ""


def quotas(properties: Mapping[str, str], cluster: str, key: str) -> dict[str, float]:
    """Return the quotas of this kind (`producer_byte_rate`, `consumer_byte_rate`) that would limit Strait: entity ->
    bytes per second. Empty if there are none, or if they may not be read. Raises as `partition_bytes`."""
    with_user = {"user": {None, properties.get("sasl.username")}, "client-id": {None, CLIENT_ID}}
    with any_broker(properties, cluster) as connection:
        try:
            request = DescribeClientQuotasRequest(version=connection.version(*_QUOTAS), components=[], strict=False)
            reply: Any = connection.ask(request, DescribeClientQuotasResponse)
        except ProtocolError:
            return {}
    found = {}
    for entry in reply.entries or () if not reply.error_code else ():
        ours = all(part.entity_name in with_user.get(part.entity_type, ()) for part in entry.entity)
        for value in entry.values if ours else ():
            if value.key == key:
                whose = " and ".join(f"{part.entity_type} {part.entity_name or '(default)'}" for part in entry.entity)
                found[whose] = float(value.value)
    return found


def await_topic_everywhere(
    properties: Mapping[str, str], cluster: str, topic: str, timeout_seconds: float = 30.0
) -> None:
    """Return once every broker that the cluster lists as alive knows the topic.

    A broker learns of a new topic with a short delay, and until then reports that it does not exist. A broker that
    starts later serves no client before it has caught up, so one such wait is enough.

    Raises:
        ClusterUnavailable: not in time; NotAuthorized: this principal may not log in.
    """

    def ask() -> None:
        for address in sorted(every_address(properties, cluster)):
            with broker_at(properties, cluster, address) as connection:
                code = metadata(connection, [topic]).topics[0].error_code
            if code:
                where = f"broker {address[0]}:{address[1]}"
                problem = f"waiting until {where} knows topic {topic}: {error_policy.name(code)}"
                raise ClusterUnavailable(cluster, problem)

    until_answered(ask, timeout_seconds)


def _on_disks(connection: Connection, partitions: list[TopicPartition]) -> Iterator[tuple[TopicPartition, int, str]]:
    """Yield each replica that the broker has, with its size in bytes, and its log directory."""
    for piece in pieces(partitions, _PARTITIONS_AT_ONCE):
        asked: dict[str, list[int]] = {}
        for topic, number in piece:
            asked.setdefault(topic, []).append(number)
        request = DescribeLogDirsRequest(
            version=connection.version(*_LOG_DIRS),
            topics=[
                DescribeLogDirsRequest.DescribableLogDirTopic(topic=topic, partitions=numbers)
                for topic, numbers in asked.items()
            ],
        )
        reply: Any = connection.ask(request, DescribeLogDirsResponse)
        for directory in reply.results:
            for topic in directory.topics:
                for item in topic.partitions:
                    if not item.is_future_key:
                        place = TopicPartition(topic.name, item.partition_index)
                        yield place, int(item.partition_size), str(directory.log_dir)


def _every_broker(properties: Mapping[str, str], cluster: str) -> Iterator[Connection]:
    for address in every_address(properties, cluster):
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(broker_at(properties, cluster, address))
            except ClusterUnavailable:
                continue  # its partitions may have replicas elsewhere; otherwise their sizes are unknown
            yield connection
