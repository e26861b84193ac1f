"""The link's one producer id: asked for once, from any broker, and the same for ever after."""

from collections.abc import Mapping

from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from strait.errors import ClusterUnavailable, NotAuthorized
from strait.net import error_policy
from strait.net.bootstrap import any_broker, until_answered
from strait.wire import error_codes

_API_KEY = 22
_VERSIONS = (2, 4)
_NONE = -1
_DENIED = (
    error_codes.TOPIC_AUTHORIZATION_FAILED,
    error_codes.CLUSTER_AUTHORIZATION_FAILED,
    error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)


def allocate_producer_id(properties: Mapping[str, str], cluster: str, timeout_seconds: float = 30.0) -> int:
    """A producer id that nobody else has (InitProducerId without a transactional id).

    Raises:
        ClusterUnavailable: no broker answered in time, or the controller had no ids to give.
        NotAuthorized: this principal may not write idempotently.
    """
    return until_answered(lambda: _ask(properties, cluster), timeout_seconds)


def _ask(properties: Mapping[str, str], cluster: str) -> int:
    with any_broker(properties, cluster) as connection:
        request = InitProducerIdRequest(
            version=connection.version(_API_KEY, *_VERSIONS),
            transactional_id=None,
            transaction_timeout_ms=60_000,
            producer_id=_NONE,
            producer_epoch=_NONE,
        )
        reply = connection.ask(request, InitProducerIdResponse)
    if reply.error_code in _DENIED:
        raise NotAuthorized(
            cluster,
            f"asking for a producer id: {error_policy.name(reply.error_code)}",
            hint="grant WRITE on the link's topics",
        )
    if reply.error_code:  # right after a broker's start it has none to give
        raise ClusterUnavailable(cluster, f"asking for a producer id: {error_policy.name(reply.error_code)}")
    return int(reply.producer_id)
