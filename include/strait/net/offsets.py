"""Queries a broker for offsets of partitions that it leads: their log start and end offsets, and offsets by
timestamp."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.event_loop import Loop
from strait.net.served import LIST_OFFSETS
from strait.net.tasks import Future, ask
from strait.wire.fetch import READ_UNCOMMITTED

LATEST = -1
EARLIEST = -2
CONSUMER, ANY_REPLICA = -1, -2
API_KEY = 2
VERSIONS = LIST_OFFSETS

Key = tuple[str, int]
"""Topic and partition."""

_NO_EPOCHS: Mapping[Key, int] = {}


def ask_offsets(
    loop: Loop,
    channel: Channel,
    partitions: Iterable[Key],
    timestamp: int,
    epochs: Mapping[Key, int] = _NO_EPOCHS,
    isolation: int = READ_UNCOMMITTED,
) -> Future[Any]:
    """Request the offsets of these partitions at a timestamp in ms, or at the ends (EARLIEST, LATEST); decode the reply
    with `offsets_of`. Raises ProtocolError, and RequestLost when awaited."""
    request = offsets_request(channel.version(API_KEY, VERSIONS), partitions, timestamp, epochs, isolation)
    return ask(loop, channel, request, ListOffsetsResponse)


async def offset_at(loop: Loop, channel: Channel, key: Key, timestamp: int, epoch: int = -1) -> tuple[int, int]:
    """Return (error, offset) of one partition. Raises ProtocolError, RequestLost."""
    answers = offsets_of(await ask_offsets(loop, channel, [key], timestamp, {key: epoch}))
    return answers.get(key, (error_policy.NOT_ANSWERED, -1))


def offsets_request(
    version: int,
    partitions: Iterable[Key],
    timestamp: int,
    epochs: Mapping[Key, int] = _NO_EPOCHS,
    isolation: int = READ_UNCOMMITTED,
    *,
    replica: int = CONSUMER,
) -> Any:
    """Return one of kafka-python's requests; decode its reply with `offsets_of`.

    Args:
        replica: ANY_REPLICA also gets an answer of a broker that does not lead a partition.
        epochs: the leader epoch that a partition must have; a broker at another one rejects the request (KIP-320).
        isolation: READ_COMMITTED requests the last stable offset instead of the high watermark.
    """
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        topics[topic].append(number)
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        version=version,
        replica_id=replica,
        isolation_level=isolation,
        topics=[
            topic_class(
                name=topic,
                partitions=[
                    topic_class.ListOffsetsPartition(
                        partition_index=number,
                        current_leader_epoch=epochs.get((topic, number), -1),
                        timestamp=timestamp,
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in topics.items()
        ],
    )


def offsets_of(reply: Any) -> dict[Key, tuple[int, int]]:
    """Return (error, offset) of each partition in a ListOffsetsResponse."""
    return {
        (topic.name, item.partition_index): (item.error_code, item.offset)
        for topic in reply.topics
        for item in topic.partitions
    }
