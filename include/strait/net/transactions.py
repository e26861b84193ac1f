"""Open transactions as known to brokers (KIP-664, Kafka 3.0), queried on the engine's loop: a partition's leader knows
the producer, and that producer's transaction coordinator knows the transactional ID."""

from collections.abc import Collection
from typing import Any, NamedTuple

from kafka.protocol.admin import (
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.event_loop import Loop
from strait.net.producers import describe_request
from strait.net.tasks import ask

_DESCRIBE_PRODUCERS = (61, (0, 0))
_LIST_TRANSACTIONS = (66, (0, 0))
_DESCRIBE_TRANSACTIONS = (65, (0, 0))
_OPEN_STATES = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort"})


class Holder(NamedTuple):
    """The producer whose open transaction started first in a partition, at ``offset``."""

    producer_id: int
    offset: int


class Coordinated(NamedTuple):
    """A producer's transaction as known to its coordinator. ``started_ms``: -1 if none is open."""

    transactional_id: str
    started_ms: int
    partitions: frozenset[tuple[str, int]]


async def holders(
    loop: Loop, channel: Channel, places: Collection[tuple[str, int]]
) -> dict[tuple[str, int], Holder | str]:
    """Return the holder for each partition that the broker leads, or why it is unknown. Raises RequestLost,
    ProtocolError."""
    request = describe_request(channel.version(*_DESCRIBE_PRODUCERS), places)
    reply = await ask(loop, channel, request, DescribeProducersResponse)
    return {(topic.name, item.partition_index): _first(item) for topic in reply.topics for item in topic.partitions}


def _first(item: Any) -> Holder | str:
    if item.error_code:
        return error_policy.name(item.error_code)
    found = [
        Holder(producer.producer_id, producer.current_txn_start_offset)
        for producer in item.active_producers
        if producer.current_txn_start_offset >= 0
    ]
    return min(found, key=lambda holder: holder.offset) if found else "its leader knows of no open transaction"


async def coordinated(loop: Loop, channel: Channel, producer_ids: Collection[int]) -> dict[int, Coordinated]:
    """Return the transactions of those producers whose coordinator the broker is, and whose transactional ID this
    principal may describe. Raises RequestLost, ProtocolError."""
    request = ListTransactionsRequest(
        version=channel.version(*_LIST_TRANSACTIONS), state_filters=[], producer_id_filters=list(producer_ids)
    )
    listed = await ask(loop, channel, request, ListTransactionsResponse)
    ids = [state.transactional_id for state in listed.transaction_states]
    if not ids:
        return {}
    request = DescribeTransactionsRequest(version=channel.version(*_DESCRIBE_TRANSACTIONS), transactional_ids=ids)
    described = await ask(loop, channel, request, DescribeTransactionsResponse)
    return {
        int(state.producer_id): _coordinated(state) for state in described.transaction_states if not state.error_code
    }


def _coordinated(state: Any) -> Coordinated:
    if state.transaction_state not in _OPEN_STATES:
        return Coordinated(state.transactional_id, -1, frozenset())
    places = frozenset((topic.topic, number) for topic in state.topics for number in topic.partitions)
    return Coordinated(state.transactional_id, int(state.transaction_start_time_ms), places)
