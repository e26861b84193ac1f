"""Producer IDs: the link's own, which is requested once from any broker and never changes; and those of transactional
IDs, from their coordinators."""

from collections.abc import Mapping

from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from strait.errors import ClusterUnavailable, NotAuthorized
from strait.net import error_policy
from strait.net.brokers import Address, any_broker, broker_at, until_answered
from strait.net.handshake import Connection
from strait.wire import error_codes

_INIT_PRODUCER_ID = (22, 2, 4)
_FIND_COORDINATOR = (10, 1, 3)
_TRANSACTION = 1  # the coordinator's key type
_NONE = -1
_HIGHEST_EPOCH = 32_000  # somewhat below the epoch after which a transactional ID gets another producer ID
_DENIED = (error_codes.TOPIC_AUTHORIZATION_FAILED, error_codes.CLUSTER_AUTHORIZATION_FAILED)


def allocate_producer_id(properties: Mapping[str, str], cluster: str, timeout_seconds: float = 30.0) -> int:
    """Return a producer ID that no other producer has (InitProducerId without a transactional ID).

    Raises:
        ClusterUnavailable: no broker answered in time, or the controller had no IDs to give.
        NotAuthorized: this principal may not write idempotently.
    """

    def ask() -> int:
        with any_broker(properties, cluster) as connection:
            return _ask(connection, cluster, None, 60_000)[0]

    return until_answered(ask, timeout_seconds)


def transactional_producer_id(
    properties: Mapping[str, str],
    cluster: str,
    transactional_id: str,
    transaction_ms: int,
    timeout_seconds: float = 30.0,
) -> int:
    """Return the producer ID that the next user of a transactional ID gets. This takes the transactional ID over: an
    open transaction under it is aborted, and the producer that started that is fenced.

    Args:
        transaction_ms: the timeout of transactions under it, in milliseconds.

    Raises:
        ClusterUnavailable: the coordinator did not answer in time.
        NotAuthorized: this principal may not use the transactional ID.
    """

    def ask() -> int:
        address = _coordinator(properties, cluster, transactional_id)
        with broker_at(properties, cluster, address) as connection:
            while True:
                producer_id, epoch = _ask(connection, cluster, transactional_id, transaction_ms)
                if epoch < _HIGHEST_EPOCH:
                    return producer_id

    return until_answered(ask, timeout_seconds)


def _coordinator(properties: Mapping[str, str], cluster: str, transactional_id: str) -> Address:
    with any_broker(properties, cluster) as connection:
        version = connection.version(*_FIND_COORDINATOR)
        request = FindCoordinatorRequest(version=version, key_type=_TRANSACTION, key=transactional_id)
        reply = connection.ask(request, FindCoordinatorResponse)
    _require_ok(cluster, f"finding the coordinator of transactional id {transactional_id}", reply.error_code)
    return str(reply.host), int(reply.port)


def _ask(connection: Connection, cluster: str, transactional_id: str | None, transaction_ms: int) -> tuple[int, int]:
    """Return the producer ID and epoch that the broker assigns."""
    request = InitProducerIdRequest(
        version=connection.version(*_INIT_PRODUCER_ID),
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_ms,
        producer_id=_NONE,
        producer_epoch=_NONE,
    )
    reply = connection.ask(request, InitProducerIdResponse)
    of = f" of transactional id {transactional_id}" if transactional_id else ""
    _require_ok(cluster, f"asking for a producer id{of}", reply.error_code)
    return int(reply.producer_id), int(reply.producer_epoch)


def _require_ok(cluster: str, doing: str, code: int) -> None:
    if code == error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        raise NotAuthorized(cluster, f"{doing}: {error_policy.name(code)}", hint="grant WRITE on the transactional id")
    if code in _DENIED:
        raise NotAuthorized(cluster, f"{doing}: {error_policy.name(code)}", hint="grant WRITE on the link's topics")
    if code:  # just after its start a broker has none to give; a coordinator moves, or ends a transaction
        raise ClusterUnavailable(cluster, f"{doing}: {error_policy.name(code)}")
