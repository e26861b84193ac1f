"""The link's one producer id: asked for once, from any broker, and the same for ever after."""

import time
from collections.abc import Mapping

from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from strait.errors import ClusterUnavailable, NotAuthorized, StraitError
from strait.net import error_policy
from strait.net.cluster_client import parse_addresses
from strait.net.handshake import dial
from strait.net.security import Security

_API_KEY = 22
_VERSIONS = (2, 4)
_NONE = -1
_DENIED = (29, 31, 53)
_PAUSE_SECONDS = 0.2


def allocate_producer_id(properties: Mapping[str, str], cluster: str, timeout_seconds: float = 30.0) -> int:
    """A producer id that nobody else has (InitProducerId without a transactional id).

    Raises:
        ClusterUnavailable: no broker answered in time, or the controller had no ids to give.
        NotAuthorized: this principal may not write idempotently.
    """
    security = Security(cluster, properties)
    addresses = parse_addresses(cluster, properties["bootstrap.servers"])
    deadline = time.monotonic() + timeout_seconds
    attempt = 0
    while True:
        address = addresses[attempt % len(addresses)]
        attempt += 1
        try:
            return _ask(cluster, address, security)
        except StraitError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)


def _ask(cluster: str, address: tuple[str, int], security: Security) -> int:
    connection = dial(cluster, address, security)
    try:
        request = InitProducerIdRequest(
            version=connection.version(_API_KEY, *_VERSIONS),
            transactional_id=None,
            transaction_timeout_ms=60_000,
            producer_id=_NONE,
            producer_epoch=_NONE,
        )
        reply = connection.ask(request, InitProducerIdResponse)
    finally:
        connection.close()
    if reply.error_code in _DENIED:
        raise NotAuthorized(
            cluster,
            f"asking for a producer id: {error_policy.name(reply.error_code)}",
            hint="grant WRITE on the link's topics",
        )
    if reply.error_code:  # right after a broker's start it has none to give
        raise ClusterUnavailable(cluster, f"asking for a producer id: {error_policy.name(reply.error_code)}")
    return int(reply.producer_id)
