"""Keeping out of another copy's way, where the destination's broker may forget this link at any moment (ADR 12).

A broker does not forget a producer for want of writes alone. It goes by the newest *timestamp* in the last batch that
it appended of it: once that is `producer.id.expiration.ms` (a day) old, the next of its rounds, every ten minutes,
drops what it knows of the producer, however busy that is. It then takes any sequence. So of old records a late batch of
another copy could be appended a second time.

Therefore only one copy sends them. Whoever has looked a partition up waits a moment and looks again: if the copy has
grown meanwhile, another one is at it, and this one stands by for as long as it grows. Who has been writing, and finds
nothing there that it did not send itself, goes on at once. Young records need none of that, since the broker cannot
forget them between two batches; they are copied by as many as there are.

For the same reason an old batch goes alone where nothing else would show that one was lost: where other producers write
too, so that the log's end proves nothing; and once the destination has refused a batch. See `SendQueue.go_alone`.
"""

import random

from strait.engine.partition.partition import Partition
from strait.engine.partition.send_queue import OutBatch
from strait.reasons import Reason

REMEMBERED_MS = 3_600_000
"""Younger records are safe: far below what brokers are set to, so that clocks need not agree."""
WATCH_SECONDS = (1.0, 1.5)
"""Between two looks; drawn, so that copies which began together do not look again together."""


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


def keeps_out(partition: Partition, sequence: int, now: float) -> bool:
    """Whether this copy does not write for now, where a look-up has found ``sequence`` to be the number of the next
    record. Then it is to be looked up once more."""
    position = partition.position
    was_writing = position.acked_sequence > position.found_sequence
    if not position.forgettable or (was_writing and sequence <= partition.queue.sent_sequence):
        return False
    before = position.look(sequence)
    if before == sequence:
        return False
    watch(partition, now)
    if before >= 0:
        partition.show(Reason.ANOTHER_COPY, f"another running copy of the link has written up to record {sequence}")
    return True


def watch(partition: Partition, now: float) -> None:
    """Wait a moment before the next look."""
    partition.reset_position(None, "", now + random.uniform(*WATCH_SECONDS))  # noqa: S311
