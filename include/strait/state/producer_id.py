"""The one producer id of a link: asked of the destination once in the link's life.

confluent-kafka does not tell the id that it got, so this one request is made over a connection of its own.
"""

import time
from collections.abc import Mapping

from confluent_kafka import KafkaError
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from strait.engine.cluster import parse_addresses
from strait.engine.dial import dial
from strait.engine.security import Security
from strait.errors import ClusterUnavailable, StraitError
from strait.kafka.translate import translate

_API_KEY = 22
_DOING = "asking for a producer id"
_TIMEOUT_SECONDS = 10.0
_PAUSE_SECONDS = 0.5


def allocate_producer_id(properties: Mapping[str, str], cluster: str) -> int:
    """A producer id that nobody else has or will ever have, without transactional id, epoch 0.

    Raises:
        ClusterUnavailable: no bootstrap server answers in time, or the cluster cannot give ids out now.
        NotAuthorized: the credentials are refused, or IDEMPOTENT_WRITE on the cluster (WRITE on any topic) is missing.
    """
    addresses = parse_addresses(cluster, properties["bootstrap.servers"])
    security = Security(cluster, properties)
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        for address in addresses:
            try:
                return _ask(cluster, address, security)
            except ClusterUnavailable as error:
                failure: StraitError = error
        if time.monotonic() > deadline:
            raise failure
        time.sleep(_PAUSE_SECONDS)


def _ask(cluster: str, address: tuple[str, int], security: Security) -> int:
    connection = dial(cluster, address, security)
    try:
        request = InitProducerIdRequest(
            version=connection.version(_API_KEY, 2, 4),
            transactional_id=None,
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        reply = connection.ask(request, InitProducerIdResponse)
    finally:
        connection.close()
    if reply.error_code:
        raise translate(KafkaError(reply.error_code), cluster=cluster, doing=_DOING)
    return int(reply.producer_id)
