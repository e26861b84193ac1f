"""Waiting until every broker of a cluster knows a topic, each asked by itself."""

from collections.abc import Mapping
from typing import Any

from kafka.protocol.metadata import MetadataResponse

from strait.errors import ClusterUnavailable
from strait.net import error_policy
from strait.net.bootstrap import Address, any_broker, broker_at, until_answered
from strait.net.cluster_client import METADATA, metadata_request
from strait.net.handshake import Connection


def await_topic_everywhere(
    properties: Mapping[str, str], cluster: str, topic: str, timeout_seconds: float = 30.0
) -> None:
    """Return once all brokers that the cluster counts as alive answer that the topic is there.

    A broker learns of a new topic some moments late, and until then says that there is none. One that starts later
    serves nobody before it has caught up, so this need be waited for only once.

    Raises:
        ClusterUnavailable: not in time; NotAuthorized: who asks may not log in.
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
