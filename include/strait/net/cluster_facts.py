"""Facts that only the brokers themselves have, read over short-lived connections: their addresses, partition sizes,
quotas.

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
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from strait.errors import ClusterUnavailable, ProtocolError
from strait.model import TopicPartition
from strait.net.bootstrap import Address, any_broker, broker_at
from strait.net.cluster_client import METADATA
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
        for partition, size in _sizes(connection, sorted(partitions)):
            found[partition] = max(size, found.get(partition, 0))
    return found


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


def _sizes(connection: Connection, partitions: list[TopicPartition]) -> Iterator[tuple[TopicPartition, int]]:
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
                        yield TopicPartition(topic.name, item.partition_index), int(item.partition_size)


def every_address(properties: Mapping[str, str], cluster: str) -> list[Address]:
    """Return the addresses of all brokers that the cluster lists as alive. Raises ClusterUnavailable, NotAuthorized."""
    with any_broker(properties, cluster) as first:
        request = MetadataRequest(version=first.version(*_flat(METADATA)), topics=[], allow_auto_topic_creation=False)
        return [(broker.host, broker.port) for broker in first.ask(request, MetadataResponse).brokers]


def _every_broker(properties: Mapping[str, str], cluster: str) -> Iterator[Connection]:
    for address in every_address(properties, cluster):
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(broker_at(properties, cluster, address))
            except ClusterUnavailable:
                continue  # its partitions may have replicas elsewhere; otherwise their sizes are unknown
            yield connection


def _flat(versions: tuple[int, tuple[int, int]]) -> tuple[int, int, int]:
    key, (lowest, highest) = versions
    return key, lowest, highest
