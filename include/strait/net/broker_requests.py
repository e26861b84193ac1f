"""Waiting until every broker of a cluster knows a topic. Each broker is queried individually."""

from collections.abc import Mapping
from typing import Any

from kafka.protocol.metadata import MetadataResponse

from strait.errors import ClusterUnavailable
from strait.net import error_policy
from strait.net.bootstrap import Address, any_broker, broker_at, until_answered
from strait.net.cluster_client import METADATA
from strait.net.handshake import Connection
from strait.net.known_topics import metadata_request


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
        with any_broker(properties, cluster) as connection:
            brokers = {(broker.host, broker.port) for broker in _metadata(connection, topic).brokers}
        for address in sorted(brokers):
            with broker_at(properties, cluster, address) as connection:
                _check(cluster, address, _metadata(connection, topic), topic)

    until_answered(ask, timeout_seconds)


def _check(cluster: str, address: Address, reply: Any, topic: str) -> None:
    code = reply.topics[0].error_code
    if code:
        where = f"broker {address[0]}:{address[1]}"
        raise ClusterUnavailable(cluster, f"waiting until {where} knows topic {topic}: {error_policy.name(code)}")


def _metadata(connection: Connection, topic: str) -> Any:
    api_key, versions = METADATA
    return connection.ask(metadata_request(connection.version(api_key, *versions), [topic]), MetadataResponse)
