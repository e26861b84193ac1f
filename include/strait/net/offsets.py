"""Asking a broker for offsets of partitions that it leads: where their logs begin and end."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from strait.net.channel import Channel
from strait.wire.fetch import READ_UNCOMMITTED

LATEST = -1
EARLIEST = -2
API_KEY = 2
VERSIONS = (6, 7)
_NO_EPOCHS: Mapping[tuple[str, int], int] = {}

Offsets = Mapping[tuple[str, int], tuple[int, int]]
"""(topic, partition) -> (error, offset)."""


def ask_offsets(
    channel: Channel,
    partitions: Iterable[tuple[str, int]],
    timestamp: int,
    *,
    on_offsets: Callable[[Offsets], None],
    on_lost: Callable[[str], None],
) -> None:
    """Ask for the offsets of these (topic, partition) at a timestamp, or at the ends (EARLIEST, LATEST)."""
    channel.ask(
        offsets_request(channel.version(API_KEY, VERSIONS), partitions, timestamp),
        ListOffsetsResponse,
        on_reply=lambda reply: on_offsets(offsets_of(reply)),
        on_lost=on_lost,
    )


def offsets_request(
    version: int,
    partitions: Iterable[tuple[str, int]],
    timestamp: int,
    epochs: Mapping[tuple[str, int], int] = _NO_EPOCHS,
) -> Any:
    """One of kafka-python's requests, for `offsets_of` its reply.

    Args:
        epochs: the leader epoch that a partition must have; a broker at another one refuses (KIP-320).
    """
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        topics[topic].append(number)
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        version=version,
        replica_id=-1,
        isolation_level=READ_UNCOMMITTED,
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


def offsets_of(reply: Any) -> Offsets:
    """What a ListOffsetsResponse says."""
    return {
        (topic.name, item.partition_index): (item.error_code, item.offset)
        for topic in reply.topics
        for item in topic.partitions
    }
