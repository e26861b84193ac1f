"""What administrators do to running clusters: move leaders and replicas, elect, limit clients."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka.admin import AdminClient
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

from strait.embedded.kafka import Cluster
from strait.net.addresses import parse_addresses
from strait.net.handshake import dial
from strait.net.security import Security
from support.fixtures.waiting import eventually

_PREFERRED, _UNCLEAN = 0, 1  # kinds of election


def leaders(cluster: Cluster, topic: str) -> list[int]:
    """The leader of each partition, -1 where there is none."""
    partitions = AdminClient(cluster.client_properties).list_topics(topic, timeout=30).topics[topic].partitions
    return [partitions[number].leader for number in sorted(partitions)]


def in_sync(cluster: Cluster, topic: str) -> list[set[int]]:
    """The brokers that hold all of each partition."""
    partitions = AdminClient(cluster.client_properties).list_topics(topic, timeout=30).topics[topic].partitions
    return [set(partitions[number].isrs) for number in sorted(partitions)]


def replicas(cluster: Cluster, topic: str) -> list[set[int]]:
    """The brokers that are to hold each partition."""
    partitions = AdminClient(cluster.client_properties).list_topics(topic, timeout=30).topics[topic].partitions
    return [set(partitions[number].replicas) for number in sorted(partitions)]


def reassign(cluster: Cluster, topic: str, replicas: Sequence[Sequence[int]]) -> None:
    """Put each partition's replicas on these brokers, the first of which it prefers as leader."""
    moved = AlterPartitionReassignmentsRequest.ReassignableTopic
    partitions = [
        moved.ReassignablePartition(partition_index=number, replicas=list(brokers))
        for number, brokers in enumerate(replicas)
    ]
    request = AlterPartitionReassignmentsRequest(
        version=0, timeout_ms=30_000, topics=[moved(name=topic, partitions=partitions)]
    )
    reply = _ask(cluster, request, AlterPartitionReassignmentsResponse)
    refused = [item.error_code for each in reply.responses for item in each.partitions if item.error_code]
    assert reply.error_code == 0 and not refused, reply


def elect_preferred(cluster: Cluster, topic: str) -> None:
    """Give each partition to the first of its replicas, if it is in sync and does not lead yet."""
    _elect(cluster, _PREFERRED, topic, list(range(len(leaders(cluster, topic)))))


def elect_unclean(cluster: Cluster, topic: str, partition: int, leader: int) -> None:
    """Make ``leader``, a replica that lacks records and the only one that runs, the leader; wait until it is. A broker
    that was killed is called the leader until its session times out, and until then nobody is elected."""

    def elected() -> bool:
        _elect(cluster, _UNCLEAN, topic, [partition])
        return leaders(cluster, topic)[partition] == leader

    eventually(elected, what="the unclean election")


def _elect(cluster: Cluster, how: int, topic: str, partitions: list[int]) -> None:
    """What each partition answers does not matter: whoever leads already says that no election was needed."""
    chosen = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=partitions)
    request = ElectLeadersRequest(version=2, election_type=how, topic_partitions=[chosen], timeout_ms=30_000)
    _ask(cluster, request, ElectLeadersResponse)


@contextmanager
def asleep(cluster: Cluster, broker: int) -> Iterator[None]:
    """The broker's process is stopped and keeps its connections, as long as the block lasts."""
    pid = cluster.pid(broker)
    assert pid is not None, f"broker {broker} does not run"
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def quotas(cluster: Cluster, client: str, limits: Mapping[str, float]) -> Iterator[None]:
    """Limit a client id, for example ``{"producer_byte_rate": 1e6}``, as long as the block lasts."""
    _alter_quotas(cluster, client, limits, remove=False)
    try:
        yield
    finally:
        _alter_quotas(cluster, client, limits, remove=True)


def _alter_quotas(cluster: Cluster, client: str, limits: Mapping[str, float], *, remove: bool) -> None:
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        version=1,
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=client)],
                ops=[entry.OpData(key=key, value=value, remove=remove) for key, value in limits.items()],
            )
        ],
        validate_only=False,
    )
    reply = _ask(cluster, request, AlterClientQuotasResponse)
    assert [item.error_code for item in reply.entries] == [0], reply


def put_on(cluster: Cluster, topic: str, brokers: Sequence[int], partitions: int = 1) -> None:
    """Each partition on these brokers alone, in sync, led by the first."""
    reassign(cluster, topic, [brokers] * partitions)
    eventually(lambda: in_sync(cluster, topic) == [set(brokers)] * partitions, what=f"{topic} is on {brokers}")
    elect_preferred(cluster, topic)
    eventually(lambda: leaders(cluster, topic) == [brokers[0]] * partitions, what=f"{brokers[0]} leads {topic}")


def _ask(cluster: Cluster, request: Any, response_class: Any) -> Any:
    """Ask any broker that runs: it passes on what is for the controller. Libraries ask for a controller among the
    brokers, and may be told of a dead one."""
    addresses = dict(zip(cluster.broker_ids, parse_addresses("it", cluster.bootstrap), strict=True))
    alive = next(address for broker, address in addresses.items() if cluster.pid(broker) is not None)
    connection = dial("it", alive, Security("it", cluster.client_properties))
    try:
        return connection.ask(request, response_class)
    finally:
        connection.close()
