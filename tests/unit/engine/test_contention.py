"""Who stands by, and when it goes on: only old records need one writer at a time."""

import pytest

from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.partition.send_queue import OutBatch
from strait.engine.recovery import contention
from strait.net.buffers import BufferPool
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from support.model.partitions import placed
from support.model.reports import plain_run

NOW_MS = 1_800_000_000_000
OLD_MS = NOW_MS - contention.REMEMBERED_MS


def batch_of(partition: Partition, timestamp_ms: int) -> OutBatch:
    buffer = BufferPool(1 << 20).adopt(bytearray(1))
    generation, sequence = partition.position.generation, partition.cursor.sequence
    return OutBatch(generation, buffer.view(), buffer, sequence, 1, 0, 1, 0, b"", 0, timestamp_ms, False)


@pytest.mark.parametrize(
    ("timestamp_ms", "policy", "forgettable"),
    [
        (NOW_MS, TopicPolicy(), False),
        (OLD_MS + 1, TopicPolicy(), False),
        (OLD_MS, TopicPolicy(), True),
        (-1, TopicPolicy(), True),
        (OLD_MS, TopicPolicy(destination_append_time=True), False),
    ],
)
def test_the_first_old_record_has_its_partition_looked_up_once_more(
    timestamp_ms: int, policy: TopicPolicy, forgettable: bool
) -> None:
    partition = placed(5, policy=policy)
    assert contention.note(partition, batch_of(partition, timestamp_ms), NOW_MS) is forgettable
    assert partition.position.forgettable is forgettable
    assert not contention.note(partition, batch_of(partition, timestamp_ms), NOW_MS)


def test_who_has_written_since_the_look_up_goes_on_without_another() -> None:
    partition = placed(5)
    partition.acked(batch_of(partition, NOW_MS), 0.0)
    assert not contention.note(partition, batch_of(partition, OLD_MS), NOW_MS)
    assert partition.position.forgettable


def test_who_was_writing_goes_on_at_once_unless_another_copy_has_been_at_it() -> None:
    def in_the_middle() -> Partition:
        partition = placed(5)
        for timestamp_ms in (OLD_MS, OLD_MS, OLD_MS):
            partition.queue.append(batch_of(partition, timestamp_ms))
            partition.cursor.stamped(1, 1, 1, 0)
        contention.note(partition, partition.queue.batches[0], NOW_MS)
        first = partition.queue.take(0.0)
        assert first is not None
        partition.queue.landed()
        partition.acked(first, 0.0)
        assert partition.queue.take(0.0) is not None
        return partition

    for found in (6, 7):  # as acknowledged, or what was under way has arrived
        assert not contention.keeps_out(in_the_middle(), found, now=0.0)
    assert contention.keeps_out(in_the_middle(), 8, now=0.0)  # the third was never sent
    beaten = in_the_middle()
    beaten.queue.beaten(refused=True)
    assert contention.keeps_out(beaten, 7, now=0.0)


def test_what_was_sent_and_never_answered_may_still_arrive() -> None:
    """The broker may have the request in its hands when the log is looked up."""

    def cut_off() -> Partition:
        partition = placed(5)
        sent = []
        for _ in range(3):
            partition.queue.append(batch_of(partition, OLD_MS))
            partition.cursor.stamped(1, 1, 1, 0)
            sent.append(partition.queue.take(0.0))
            partition.queue.acked(sent[0], 0.0)  # so that those behind it go with it
        partition.position.mark_forgettable()
        partition.queue.landed()
        partition.acked(sent[0], 0.0)
        for batch in sent[1:]:
            partition.queue.given_up(batch)
        return partition

    for found in (6, 7):
        partition = cut_off()
        assert contention.keeps_out(partition, found, now=10.0)
        assert contention.keeps_out(partition, found, now=12.9)
        assert not contention.keeps_out(partition, found, now=13.0)
    assert not contention.keeps_out(cut_off(), 8, now=10.0)  # all of it is there
    partition = cut_off()
    assert contention.keeps_out(partition, 6, now=10.0)
    partition.position.look_failed()  # the broker may have stood still all the time
    assert contention.keeps_out(partition, 6, now=14.0)
    assert not contention.keeps_out(partition, 6, now=17.0)


def test_an_old_batch_goes_alone_and_so_does_the_first_young_one_after_it() -> None:
    """Whichever of them is refused, no later one is under way that the broker could take for a new beginning."""
    partition = placed(5, policy=TopicPolicy(on_foreign="expect"))
    for timestamp_ms in (NOW_MS, NOW_MS, NOW_MS, OLD_MS, OLD_MS, NOW_MS, NOW_MS, NOW_MS):
        batch = batch_of(partition, timestamp_ms)
        partition.queue.append(batch)
        contention.note(partition, batch, NOW_MS)
        partition.cursor.stamped(1, 1, 1, 0)
    together = []
    while partition.queue.batches:
        sent = []
        while (batch := partition.queue.take(0.0)) is not None:
            sent.append(batch)
        together.append(len(sent))
        for batch in sent:
            partition.queue.landed()
            partition.acked(batch, 0.0)
    assert together == [1, 1, 1, 1, 1, 1, 2]  # the first three wait behind an old one: that is safe, too


def test_where_the_log_s_end_shows_a_loss_old_batches_go_together_until_one_is_refused() -> None:
    partition = placed(5)

    def sent_at_once() -> int:
        for _ in range(3):
            batch = batch_of(partition, OLD_MS)
            partition.queue.append(batch)
            contention.note(partition, batch, NOW_MS)
            partition.cursor.stamped(1, 1, 1, 0)
        sent = 0
        while partition.queue.take(0.0) is not None:
            sent += 1
        return sent

    partition.acked(batch_of(partition, NOW_MS), 0.0)
    assert sent_at_once() == 3
    for _ in range(3):
        partition.queue.landed()
    partition.queue.failed()
    assert sent_at_once() == 1


def test_young_records_are_copied_by_as_many_as_there_are() -> None:
    assert not contention.keeps_out(placed(5), 5, now=0.0)


def test_a_copy_stands_by_for_as_long_as_another_one_writes() -> None:
    partition = placed(5)
    partition.position.mark_forgettable()
    assert contention.keeps_out(partition, 5, now=10.0)
    assert partition.position.phase is Phase.AWAIT_POSITION
    assert partition.reason is None
    assert 11.0 <= partition.position.retry_at <= 12.0
    assert contention.keeps_out(partition, 7, now=12.0)
    assert (partition.reason, partition.detail) == (
        Reason.ANOTHER_COPY,
        "another running copy of the link has written up to record 7",
    )
    assert contention.keeps_out(partition, 9, now=14.0)
    assert contention.keeps_out(partition, 9, now=16.0)
    assert 17.0 <= partition.position.retry_at <= 17.5
    assert not contention.keeps_out(partition, 9, now=17.0)
    partition.found([plain_run()], 9, 9)
    assert contention.keeps_out(partition, 9, now=30.0)  # after the next doubt, whoever looks watches first
