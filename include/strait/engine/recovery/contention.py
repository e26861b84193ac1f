"""Keeping out of another copy's way, where the destination's broker may forget this link at any moment (ADR 12).

A broker does not forget a producer for want of writes alone. It goes by the newest *timestamp* in the last batch that
it appended of it: once that is `producer.id.expiration.ms` (a day) old, the next of its rounds, every ten minutes,
drops what it knows of the producer, however busy that is. It then takes any sequence. So of old records a late batch of
another copy could be appended a second time.

Therefore only one copy sends them. Whoever has looked a partition up goes on looking until it has not grown for a
while (QUIET_SECONDS): if it grows, another one is at it, and this one stands by. Who has been writing, has an answer to
each batch or sees it in the log, and finds nothing there that it did not send itself, goes on at once. Young records
need none of that, since the broker cannot forget them between two batches; they are copied by as many as there are.

The same wait keeps a copy out of its own way: a request whose connection was lost may still be in the broker's hands,
which appends it after a look-up did not find it.

For the same reason an old batch goes alone where nothing else would show that one was lost: where other producers write
too, so that the log's end proves nothing; and once the destination has refused a batch. See `SendQueue.go_alone`.
"""

import random

from strait.engine.partition.partition import Partition
from strait.engine.partition.send_queue import OutBatch
from strait.reasons import Reason

REMEMBERED_MS = 3_600_000
"""Younger records are safe: far below what brokers are set to, so that clocks need not agree."""
QUIET_SECONDS = 3.0
"""So long the log has not grown before old records are sent. A broker handles one request of a connection after the
other, and may learn that the connection is lost only when it answers: after PRODUCE_TIMEOUT_MS for a request that waits
for followers. It then still takes the next request that had arrived, and finds at that one's answer that nobody is
there. So what was under way is appended within that time and a little more, or never."""
_LOOK_SECONDS = (1.0, 1.5)
_APART_SECONDS = 0.5
"""The last look is drawn from so many, so that copies which began together do not send together."""


def note(partition: Partition, batch: OutBatch, now_ms: int) -> bool:
    """See how old the records of a batch are that is about to be sent. True: the partition must be looked up once more
    first, since this is the first that shows what it holds."""
    if (
        batch.max_timestamp_ms > now_ms - REMEMBERED_MS
        or partition.policy.destination_append_time  # the batch then has the broker's own time
    ):
        return False
    if partition.policy.on_foreign != "halt" or partition.queue.had_error:
        partition.queue.go_alone(batch)
    if partition.position.forgettable:
        return False
    partition.position.mark_forgettable()
    return partition.untried


def begin(partition: Partition, now: float) -> None:
    """The look-up that has just been, as `note` asks for it, is the first look."""
    _keep_looking(partition, partition.position.found_sequence, now)


def keeps_out(partition: Partition, sequence: int, now: float) -> bool:
    """Whether this copy does not write for now, where a look-up has found ``sequence`` to be the number of the next
    record. Then it is to be looked up once more."""
    if not partition.position.forgettable or _accounts_for_all(partition, sequence):
        return False
    return _keep_looking(partition, sequence, now)


def _accounts_for_all(partition: Partition, sequence: int) -> bool:
    """Nobody else has written, and nothing that was sent can still arrive."""
    position, queue = partition.position, partition.queue
    was_writing = position.acked_sequence > position.found_sequence
    return was_writing and queue.unanswered_end <= sequence <= queue.sent_sequence


def _keep_looking(partition: Partition, sequence: int, now: float) -> bool:
    before, quiet_seconds = partition.position.look(sequence, now)
    if quiet_seconds >= QUIET_SECONDS:
        return False
    if before == sequence:
        wait = QUIET_SECONDS - quiet_seconds + random.uniform(0.0, _APART_SECONDS)  # noqa: S311
    else:
        wait = random.uniform(*_LOOK_SECONDS)  # noqa: S311
    partition.reset_position(None, "", now + wait)
    if 0 <= before != sequence:
        partition.show(Reason.ANOTHER_COPY, f"another running copy of the link has written up to record {sequence}")
    return True
