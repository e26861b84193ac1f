"""Queries a destination broker about partitions that it leads: their log offsets and the link's last sequence."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeProducersResponse
from kafka.protocol.consumer import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

from strait.engine.recovery.decision import LogState
from strait.net import error_policy, offsets
from strait.net.channel import Channel
from strait.net.event_loop import Loop
from strait.net.producers import by_topic, describe_request
from strait.net.served import LOG_END
from strait.net.tasks import Future, ask
from strait.wire import error_codes

Key = tuple[str, int]
"""Destination topic and partition."""

_DESCRIBE_PRODUCERS_API_KEY = 61
_LOG_END = (23, LOG_END)
"""OffsetForLeaderEpoch. For the current epoch it returns the log end offset, including records not replicated yet."""
_NOT_TOLD = -1


class Refusal(NamedTuple):
    """The broker rejects a query for a partition: Kafka's error code, and the value that was queried."""

    code: int
    what: str


async def ask_log_states(
    loop: Loop, channel: Channel, producer_id: int, epochs: Mapping[Key, int]
) -> dict[Key, LogState | Refusal]:
    """Query the log state of all these partitions together, each with its last known leader epoch, -1 if unknown.

    The requests are sent together. A broker handles the requests of one connection in order, so each response reflects
    a later moment than the one before. A broker that leads at another epoch rejects a request, so all responses are of
    one leadership. Raises RequestLost.
    """
    describes = _serves(channel, _DESCRIBE_PRODUCERS_API_KEY)
    ends_before = _ask_log_ends(loop, channel, epochs, current=True)
    producers = _ask_producers(loop, channel, epochs) if describes else None
    ends = _ask_log_ends(loop, channel, epochs, current=True)
    watermarks = offsets.ask_offsets(loop, channel, epochs, offsets.LATEST, epochs)
    starts = offsets.ask_offsets(loop, channel, epochs, offsets.EARLIEST, epochs)

    before = _log_ends(await ends_before)
    states = _states(await producers, producer_id) if producers is not None else {}
    after = _log_ends(await ends)
    readable, first = offsets.offsets_of(await watermarks), offsets.offsets_of(await starts)
    found: dict[Key, LogState | Refusal] = {}
    for key in epochs:
        answers: list[tuple[tuple[int, int | None] | None, str]] = [
            (before.get(key), "its log end"),
            (readable.get(key), "its high watermark"),
        ]
        answers += [(first.get(key), "its log start"), (after.get(key), "its log end")]
        if describes:
            answers.append((states.get(key), "its producers"))
        refused = next(
            (Refusal(a[0] if a else error_policy.NOT_ANSWERED, what) for a, what in answers if a is None or a[0]), None
        )
        if refused is not None:
            found[key] = refused
            continue
        ends_told = before[key][1], after[key][1]
        if _NOT_TOLD in ends_told:
            found[key] = Refusal(error_codes.UNKNOWN_LEADER_EPOCH, "its log end")
            continue
        producer = states[key][1] if describes else None
        found[key] = LogState(ends_told[0], producer, ends_told[1], readable[key][1], first[key][1])
    return found


async def log_ends(loop: Loop, channel: Channel, epochs: Mapping[Key, int]) -> dict[Key, tuple[int, int]]:
    """Return (error, present end offset of the log as of that leader epoch; -1 if the broker does not know it). Raises
    RequestLost."""
    return _log_ends(await _ask_log_ends(loop, channel, epochs))


async def high_watermark(loop: Loop, channel: Channel, key: Key, epoch: int) -> int | Refusal:
    """Return the partition's present high watermark, from its leader at this epoch. Raises RequestLost."""
    error, offset = await offsets.offset_at(loop, channel, key, offsets.LATEST, epoch)
    return Refusal(error, "its high watermark") if error else offset


def _serves(channel: Channel, api_key: int) -> bool:
    low, high = channel.served(api_key)
    return low <= 0 <= high


def _ask_log_ends(loop: Loop, channel: Channel, epochs: Mapping[Key, int], *, current: bool = False) -> Future[Any]:
    """Send the query. ``current``: the broker rejects it unless it leads at that epoch."""
    topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    request = OffsetForLeaderEpochRequest(
        version=channel.version(*_LOG_END),
        topics=[
            topic_class(
                topic=topic,
                partitions=[
                    topic_class.OffsetForLeaderPartition(
                        partition=number,
                        current_leader_epoch=epochs[topic, number] if current else -1,
                        leader_epoch=epochs[topic, number],
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(epochs).items()
        ],
    )
    return ask(loop, channel, request, OffsetForLeaderEpochResponse)


def _log_ends(reply: Any) -> dict[Key, tuple[int, int]]:
    return {
        (topic.topic, item.partition): (item.error_code, item.end_offset)
        for topic in reply.topics
        for item in topic.partitions
    }


def _ask_producers(loop: Loop, channel: Channel, keys: Iterable[Key]) -> Future[Any]:
    return ask(loop, channel, describe_request(0, keys), DescribeProducersResponse)


def _states(reply: Any, producer_id: int) -> dict[Key, tuple[int, int | None]]:
    """Return (error, the link's last sequence; None if the broker has no state for the link)."""
    found: dict[Key, tuple[int, int | None]] = {}
    for topic in reply.topics:
        for item in topic.partitions:
            ours = [state.last_sequence for state in item.active_producers if state.producer_id == producer_id]
            known = ours[0] if ours and ours[0] >= 0 else None
            found[topic.name, item.partition_index] = item.error_code, known
    return found
