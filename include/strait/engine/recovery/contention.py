"""Keeping out of another copy's way, where the destination's broker may forget this link at any moment (ADR 12).

A broker does not forget a producer for want of writes alone. It goes by the newest *timestamp* in the last batch that
it appended of it: once that is `producer.id.expiration.ms` (a day) old, the next of its rounds, every ten minutes,
drops what it knows of the producer, however busy that is. It then takes any sequence. So of old records a late batch of
another copy could be appended a second time.

Therefore only one copy sends them. Whoever has looked a partition up goes on looking until it has not grown for a
while: if it grows, another one is at it, and this one stands by. Who has been writing, has an answer to each batch or sees it
in the log, and finds nothing there that it did not send itself, goes on at once. Young records need none of that, since
the broker cannot forget them between two batches; they are copied by as many as there are.

The same wait keeps a copy out of its own way: a request whose connection was lost may still be in the broker's hands,
which appends it after a look-up did not find it.

For the same reason an old batch goes alone where nothing else would show that one was lost: where other producers write
too, so that the log's end proves nothing; and once the destination has refused a batch. See `SendQueue.go_alone`.
"""

import random
from typing import NamedTuple

from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Watched
from strait.engine.partition.send_queue import OutBatch
from strait.reasons import Reason

REMEMBERED_MS = 3_600_000
"""Younger records are safe: far below what brokers are set to, so that clocks need not agree."""
QUIET_SECONDS = 3.0
"""So long the log has not grown before old records are sent. A broker handles one request of a connection after the
other, and may see that the connection is closed only when it answers: after PRODUCE_TIMEOUT_MS for a request that waits
for followers. It then still takes the next request that had arrived, and finds at that one's answer that nobody is
there."""
_LONGER_SECONDS = 3.0
"""For a copy that was not the one writing. The one that was may have been silent for a while before its last request."""
_LOOK_SECONDS = (0.8, 1.2)
_GAP_SECONDS = 1.5
"""No more counts between two looks: the broker may have stood still, with requests in its hands."""
_SLOW_SECONDS = 1.0
"""A broker that takes that long to answer may have stood still until then: it is watched from the beginning …"""
_AT_MOST_SECONDS = 12.0
"""… but not for ever: under load each answer may be late."""
_STALE_SECONDS = 1.5
"""A copy to which nothing was acknowledged for that long looks again before it sends."""
_LATE_SECONDS = 4.5
"""What waited longer for its turn to be sent is looked up first: another copy may be about to take over, or have done so."""
_RECENT_SECONDS = 10.0
"""For so long a copy counts as the one writing that has found the log quiet."""


class Look(NamedTuple):
    """When the broker was asked, and when it had answered."""

    asked_at: float
    answered_at: float


def note(partition: Partition, batch: OutBatch, now_ms: int) -> bool:
    """See how old the records of a batch are that was just queued. True: they are old."""
    if (
        batch.max_timestamp_ms > now_ms - REMEMBERED_MS
        or partition.policy.destination_append_time  # the batch then has the broker's own time
    ):
        return False
    if partition.policy.on_foreign != "halt" or partition.queue.had_error:
        partition.queue.go_alone(batch)
    partition.position.mark_forgettable(batch.sequence + batch.records)
    return True


def is_stale(partition: Partition, now: float) -> bool:
    """Whether the partition must be looked up once more before old records are sent, since it is long ago that this
    copy last knew the log: another one may have come to it. At one position it must be longer ago each time, or a slow
    source would never get past it."""
    return partition.queue.in_flight == 0 and partition.position.looks_again(now - _known_at(partition), _STALE_SECONDS)


def is_late(partition: Partition, now: float) -> bool:
    """Whether old records have waited for their turn to be sent for so long that the partition must be looked up first:
    a quota or a slow line had them wait, while another copy saw the log not grow."""
    return (
        partition.position.forgettable and partition.queue.in_flight == 0 and now - _known_at(partition) > _LATE_SECONDS
    )


def keeps_out(partition: Partition, sequence: int, look: Look) -> bool:
    """Whether this copy does not write for now, where a look-up has found ``sequence`` to be the number of the next
    record. Then it is to be looked up once more."""
    position, queue = partition.position, partition.queue
    if not position.forgettable:
        return False
    recent = position.quiet_at > look.asked_at - _RECENT_SECONDS
    was_writing = recent or position.acked_sequence > position.found_sequence
    known = max(queue.sent_sequence, position.quiet_sequence if recent else -1)
    if was_writing and queue.unanswered_end <= sequence <= known:
        position.found_quiet(sequence, look.answered_at)
        return False
    return _keep_looking(partition, sequence, look, QUIET_SECONDS if was_writing else QUIET_SECONDS + _LONGER_SECONDS)


def begin(partition: Partition, now: float) -> None:
    """Look up a partition that `is_stale`. Where nothing was sent since the last look-up, that was the first look."""
    if partition.untried and partition.position.quiet_at < now - _RECENT_SECONDS:
        sequence = partition.position.found_sequence
        _keep_looking(partition, sequence, Look(now, now), QUIET_SECONDS + _LONGER_SECONDS)
    else:
        partition.reset_position(None, "", now)


def _known_at(partition: Partition) -> float:
    """When this copy last knew the log."""
    return max(partition.position.quiet_at, partition.queue.last_ack_at)


def _keep_looking(partition: Partition, sequence: int, look: Look, wanted_seconds: float) -> bool:
    position, queue = partition.position, partition.queue
    before = position.watched
    since, quiet_seconds = look.answered_at, 0.0
    if before.sequence == sequence:
        since = before.since
        if look.answered_at - look.asked_at <= _SLOW_SECONDS:
            gap = look.asked_at - max(before.seen_at, queue.late_until)
            quiet_seconds = before.quiet_seconds + min(max(0.0, gap), _GAP_SECONDS)
    if quiet_seconds >= wanted_seconds or look.asked_at >= max(since, queue.late_until) + _AT_MOST_SECONDS:
        position.found_quiet(sequence, look.answered_at)
        queue.waited()
        return False
    position.watch(Watched(sequence, since, quiet_seconds, look.answered_at))
    left = wanted_seconds - quiet_seconds + random.uniform(0.0, 0.2)  # noqa: S311
    partition.reset_position(None, "", look.answered_at + min(left, random.uniform(*_LOOK_SECONDS)))  # noqa: S311
    if 0 <= before.sequence < sequence > queue.sent_sequence:
        partition.show(Reason.ANOTHER_COPY, f"another running copy of the link has written up to record {sequence}")
    return True
