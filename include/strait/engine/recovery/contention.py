"""Lets only one instance write while the destination broker may expire the link's producer state at any time (ADR 12).

A broker does not expire a producer's state only because the producer stops writing. It uses the newest *timestamp* in
the producer's last appended batch: once that is `producer.id.expiration.ms` (a day) old, the broker's next check, every
ten minutes, removes the state, however busy the producer is. The broker then accepts any sequence. So a late batch of
old records from another instance could be appended a second time.

Therefore only one instance sends old records. After a lookup an instance keeps polling until the log has not grown for
a while: if it grows, another instance is writing, and this one waits. An instance that has been writing resumes
immediately if each of its batches was answered or is in the log, and the log holds nothing that it did not send itself.
Young records need none of this, since the broker cannot expire the state between two of their batches; any number of
instances copy them.

The same wait protects an instance from its own requests: the broker may still hold a request whose connection was lost,
and append it after a lookup did not find it.

For the same reason an old batch is in flight alone if nothing else would show that one was lost: if other producers
write too, so that the log end offset proves nothing, and once the destination has rejected a batch. See
`SendQueue.go_alone`.
"""

import random
from typing import NamedTuple

from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Watched
from strait.engine.partition.send_queue import OutBatch
from strait.reasons import Reason

REMEMBERED_MS = 3_600_000
"""Younger records are safe: this is far below the brokers' expiration setting, so that clocks need not agree."""
QUIET_SECONDS = 3.0
"""The log must not have grown for this time before old records are sent. A broker handles the requests of a connection
in order, and may detect that the connection is closed only when it responds: after PRODUCE_TIMEOUT_MS for a request
that waits for followers. It then still handles the next request that had arrived, and drops the rest only when it
cannot respond to that one."""
_LONGER_SECONDS = 3.0
"""Added for an instance that was not the one writing. The one that was may have sent nothing for a while before its
last request."""
_LOOK_SECONDS = (0.8, 1.2)
_GAP_SECONDS = 1.5
"""Quiet time that counts between two polls, at most: the broker may have been stalled, with requests pending."""
_SLOW_SECONDS = 1.0
"""A broker that takes longer to respond may have been stalled until then: quiet time is counted from zero again …"""
_AT_MOST_SECONDS = 12.0
"""… but at most for this time in total: under load each response may be late."""
_PUT_OFF_SECONDS = 60.0
"""A quota may keep another instance's requests unread: for this time in total, quiet time is counted from the end of the
throttle time. Not longer, since all that use the quota might always use it up."""
_STALE_SECONDS = 1.5
"""An instance without an acknowledgement for this time queries the log before it sends old batches from the source."""
_LATE_SECONDS = 4.5
"""A partition whose last acknowledgement is older when its turn to send comes is looked up first: another instance may be
about to take over, or have done so …"""
_LOOKED_SECONDS = 0.5
"""… unless it was looked up so shortly before: the other one may have looked at the same time, and found it as quiet."""
_LATE_LOOKS = 20
"""After this number of lookups in a row that were followed by no turn in time, one counts for `_LATE_SECONDS`: on a slow
line or an overloaded broker no turn may ever come sooner."""
_RECENT_SECONDS = 10.0
"""An instance that has found the log quiet counts as the one writing for this time."""


class Look(NamedTuple):
    """When the broker was queried and when it had responded, in seconds of the event loop's clock. ``put_off_until``:
    when it takes data again from those that share the link's produce quota (see `log_looks`)."""

    asked_at: float
    answered_at: float
    put_off_until: float = float("-inf")


def note(partition: Partition, batch: OutBatch, now_ms: int) -> bool:
    """Note the age of a batch that was just queued; return whether its records are old."""
    if (
        batch.max_timestamp_ms > now_ms - REMEMBERED_MS
        or partition.policy.destination_append_time  # the batch then has the broker's timestamp
    ):
        return False
    if partition.policy.on_foreign != "halt" or partition.queue.had_error:
        partition.queue.go_alone(batch)
    partition.position.mark_forgettable(batch.sequence + batch.records)
    return True


def is_stale(partition: Partition, now: float) -> bool:
    """Return whether the log must be looked up before old records that have just come from the source are sent, since
    this instance's knowledge of the log is too old: another instance may have started on it."""
    return partition.queue.in_flight == 0 and now - _known_at(partition) > _STALE_SECONDS


def is_late(partition: Partition, now: float) -> bool:
    """Return whether old records waited too long for their turn, so that the partition must be looked up first: a quota
    or a slow connection delayed them, while another instance saw that the log did not grow."""
    position, queue = partition.position, partition.queue
    if not position.forgettable or queue.in_flight:
        return False
    holds_seconds = _LOOKED_SECONDS if position.late_looks < _LATE_LOOKS else _LATE_SECONDS
    return now - queue.last_ack_at > _LATE_SECONDS and now - position.quiet_at > holds_seconds


def may_continue(partition: Partition, now: float) -> bool:
    """Return whether one lookup that finds the log as it was is enough for this instance to send: it counts as the one
    that is writing."""
    position = partition.position
    return _was_quiet(partition, now) or position.acked_sequence > position.found_sequence


def seconds_to_watch(partition: Partition, look: Look) -> float:
    """Return for how long the log, which is as it was, must be watched before the batches that have waited for their
    turn may be sent; 0.0: they may be sent now."""
    sequence = partition.position.acked_sequence
    if may_continue(partition, look.asked_at):
        partition.position.found_quiet(sequence, look.answered_at)
        return 0.0
    return _watched_for(partition, sequence, look, QUIET_SECONDS + _LONGER_SECONDS)


def keeps_out(partition: Partition, sequence: int, look: Look) -> bool:
    """Return whether this instance must not write for now, after a lookup found ``sequence`` as the number of the next
    record. If so, the partition is to be looked up again."""
    position, queue = partition.position, partition.queue
    if not position.forgettable:
        return False
    was_writing = may_continue(partition, look.asked_at)
    known = max(queue.sent_sequence, position.quiet_sequence if _was_quiet(partition, look.asked_at) else -1)
    if was_writing and queue.unanswered_end <= sequence <= known:
        position.found_quiet(sequence, look.answered_at)
        return False
    return _keep_looking(partition, sequence, look, QUIET_SECONDS if was_writing else QUIET_SECONDS + _LONGER_SECONDS)


def _known_at(partition: Partition) -> float:
    """Return when this instance last knew the state of the log."""
    return max(partition.position.quiet_at, partition.queue.last_ack_at)


def _was_quiet(partition: Partition, now: float) -> bool:
    """Return whether this instance has found the log quiet shortly before."""
    return partition.position.quiet_at > now - _RECENT_SECONDS


def _keep_looking(partition: Partition, sequence: int, look: Look, wanted_seconds: float) -> bool:
    before = partition.position.watched.sequence
    left = _watched_for(partition, sequence, look, wanted_seconds)
    if not left:
        return False
    partition.reset_position(None, "", look.answered_at + left)
    if 0 <= before < sequence > partition.queue.sent_sequence:
        partition.show(Reason.ANOTHER_COPY, f"another running copy of the link has written up to record {sequence}")
    return True


def _watched_for(partition: Partition, sequence: int, look: Look, wanted_seconds: float) -> float:
    """Return after how many seconds to query it again; 0.0 if the log has been quiet for ``wanted_seconds``."""
    position, queue = partition.position, partition.queue
    before = position.watched
    since, late_until, quiet_seconds = look.answered_at, queue.late_until, 0.0
    if before.sequence == sequence:
        since = before.since
        late_until = max(late_until, before.late_until)
        if look.answered_at - look.asked_at <= _SLOW_SECONDS:
            gap = look.asked_at - max(before.seen_at, late_until)
            quiet_seconds = before.quiet_seconds + min(max(0.0, gap), _GAP_SECONDS)
    if look.put_off_until > look.asked_at and look.answered_at < since + _PUT_OFF_SECONDS:
        late_until, quiet_seconds = max(late_until, look.put_off_until), 0.0
    if quiet_seconds >= wanted_seconds or look.asked_at >= max(since, late_until) + _AT_MOST_SECONDS:
        position.found_quiet(sequence, look.answered_at)
        queue.waited()
        return 0.0
    position.watch(Watched(sequence, since, quiet_seconds, look.answered_at, late_until))
    left = wanted_seconds - quiet_seconds + random.uniform(0.0, 0.2)  # noqa: S311
    return min(left, random.uniform(*_LOOK_SECONDS))  # noqa: S311
