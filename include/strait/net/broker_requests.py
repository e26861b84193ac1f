"""Waiting until every broker of a cluster knows a topic, each asked by itself."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol.metadata import MetadataResponse

from strait.errors import ClusterUnavailable, StraitError
from strait.net import error_policy
from strait.net.cluster_client import METADATA, metadata_request, parse_addresses
from strait.net.handshake import dial
from strait.net.security import Security

_PAUSE_SECONDS = 0.1

Address = tuple[str, int]


def await_topic_everywhere(
    properties: Mapping[str, str], cluster: str, topic: str, timeout_seconds: float = 30.0
) -> None:
    """Return once all brokers that the cluster counts as alive answer that the topic is there.

    A broker learns of a new topic some moments late, and until then says that there is none. One that starts later
    serves nobody before it has caught up, so this need be waited for only once.

    Raises:
        ClusterUnavailable: not in time; NotAuthorized: who asks may not log in.
    """
    security = Security(cluster, properties)
    bootstrap = parse_addresses(cluster, properties["bootstrap.servers"])
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            brokers = {(broker.host, broker.port) for broker in _ask_any(cluster, bootstrap, security, topic).brokers}
            for address in sorted(brokers):
                _check(cluster, address, _ask(cluster, address, security, topic), topic)
        except StraitError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _check(cluster: str, address: Address, reply: Any, topic: str) -> None:
    code = reply.topics[0].error_code
    if code:
        where = f"broker {address[0]}:{address[1]}"
        raise ClusterUnavailable(cluster, f"waiting until {where} knows topic {topic}: {error_policy.name(code)}")


def _ask_any(cluster: str, addresses: Iterable[Address], security: Security, topic: str) -> Any:
    """The first that answers."""
    trouble: StraitError | None = None
    for address in addresses:
        try:
            return _ask(cluster, address, security, topic)
        except ClusterUnavailable as error:
            trouble = error
    assert trouble is not None
    raise trouble


def _ask(cluster: str, address: Address, security: Security, topic: str) -> Any:
    connection = dial(cluster, address, security)
    try:
        api_key, versions = METADATA
        return connection.ask(metadata_request(connection.version(api_key, *versions), [topic]), MetadataResponse)
    finally:
        connection.close()
