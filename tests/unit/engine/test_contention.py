"""Who stands by, and when it goes on: only old records need one writer at a time."""

import pytest

from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.partition.send_queue import OutBatch
from strait.engine.recovery import contention
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from support.model.partitions import batch_of, placed
from support.model.reports import plain_run

NOW_MS = 1_800_000_000_000
OLD_MS = NOW_MS - contention.REMEMBERED_MS


def keeps_out(partition: Partition, sequence: int, now: float) -> bool:
    """The broker answers at once."""
    return contention.keeps_out(partition, sequence, contention.Look(now, now))


def looks_first(partition: Partition, batch: OutBatch, now: float, now_ms: int = NOW_MS) -> bool:
    """Whether the partition is looked up before this batch is sent."""
    return contention.note(partition, batch, now_ms) and contention.is_stale(partition, now)


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
    assert looks_first(partition, batch_of(partition, timestamp_ms), 0.0, NOW_MS) is forgettable
    assert partition.position.forgettable is forgettable


def test_who_has_written_since_the_look_up_goes_on_without_another() -> None:
    partition = placed(5)
    partition.acked(batch_of(partition, NOW_MS), 0.0)
    assert not looks_first(partition, batch_of(partition, OLD_MS), 1.4)
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
        partition.queue.landed(first)
        partition.acked(first, 0.0)
        assert partition.queue.take(0.0) is not None
        return partition

    for found in (6, 7):  # as acknowledged, or what was under way has arrived
        assert not keeps_out(in_the_middle(), found, 0.0)
    assert keeps_out(in_the_middle(), 8, 0.0)  # the third was never sent
    beaten = in_the_middle()
    beaten.queue.beaten(refused=True)
    assert keeps_out(beaten, 7, 0.0)


def cut_off(until: float = 0.0) -> Partition:
    """Three old records were sent; the first was acknowledged, and the connection was lost."""
    partition = placed(5)
    sent = []
    for _ in range(3):
        batch = batch_of(partition, OLD_MS)
        partition.queue.append(batch)
        contention.note(partition, batch, NOW_MS)
        partition.cursor.stamped(1, 1, 1, 0)
        partition.queue.acked(batch, 0.0)  # so that the next goes with it
        assert partition.queue.take(0.0) is batch
        sent.append(batch)
    partition.queue.landed(sent[0])
    partition.acked(sent[0], 0.0)
    for batch in reversed(sent[1:]):
        partition.queue.given_up(batch, until)
    return partition


def seconds_kept_out(partition: Partition, sequence: int, begin: float = 10.0) -> float:
    """By looks that are as far apart as the partition waits."""
    now = begin
    while keeps_out(partition, sequence, now):
        assert now < partition.position.retry_at <= now + 1.2
        now = partition.position.retry_at
    return now - begin


def test_what_was_sent_and_never_answered_may_still_arrive() -> None:
    """The broker may have the request in its hands when the log is looked up."""
    for found in (6, 7):
        assert 3.0 <= seconds_kept_out(cut_off(), found) <= 3.2
    assert not keeps_out(cut_off(), 8, 10.0)  # all of it is there
    partition = cut_off()
    for now in (10.0, 11.0, 12.0):
        assert keeps_out(partition, 6, now)
    partition.position.look_failed()  # the broker may have stood still all the time
    assert 3.0 <= seconds_kept_out(partition, 6, 13.0) <= 3.2


def test_what_the_broker_puts_off_is_waited_for_longer() -> None:
    """A quota: it takes nothing more from the connection until then, and does not see that it is closed."""
    assert 9.0 <= seconds_kept_out(cut_off(until=16.0), 6) <= 10.5


def test_quiet_time_is_counted_from_when_a_quota_no_longer_puts_off_what_others_have_sent() -> None:
    partition = cut_off()
    for asked_at in (10.0, 11.0, 12.0, 12.9):
        assert keeps_out(partition, 6, asked_at)
    assert contention.keeps_out(partition, 6, contention.Look(14.0, 14.0, 30.0))
    for asked_at in range(15, 31):
        assert contention.keeps_out(partition, 6, contention.Look(asked_at, asked_at, 30.0))
    assert 1.8 <= seconds_kept_out(partition, 6, 31.0) <= 3.2


def test_a_quota_that_others_always_use_up_keeps_out_for_a_minute() -> None:
    partition, now = cut_off(), 10.0
    while contention.keeps_out(partition, 6, contention.Look(now, now, now + 0.5)):
        now += 1.0
    assert 70.0 <= now <= 75.0


def test_a_broker_that_stood_still_is_watched_from_the_beginning() -> None:
    partition = cut_off()
    for now in (10.0, 11.0, 12.0):
        assert keeps_out(partition, 6, now)
    assert contention.keeps_out(partition, 6, contention.Look(12.9, 15.0))
    assert 3.0 <= seconds_kept_out(partition, 6, 15.0) <= 4.2
    partition = cut_off()
    assert keeps_out(partition, 6, 10.0)
    assert keeps_out(partition, 6, 15.0)  # nobody knows how it was in between
    for asked_at in range(16, 22, 3):  # always slow: not for ever
        assert contention.keeps_out(partition, 6, contention.Look(asked_at, asked_at + 2.0)), asked_at
    partition.position.look_failed()
    assert not contention.keeps_out(partition, 6, contention.Look(22.0, 24.0))


def test_a_refusal_costs_no_wait() -> None:
    """Each of them is answered, and nothing is acknowledged in between."""
    partition = cut_off()
    seconds_kept_out(partition, 6)
    for now in (14.0, 15.0, 18.0, 27.0):
        partition.found([plain_run()], 6, 6)
        partition.queue.append(batch_of(partition, OLD_MS))
        batch = partition.queue.take(now)
        assert batch is not None
        partition.queue.landed(batch)
        assert not keeps_out(partition, 6, now), now
    partition.queue.append(batch_of(partition, OLD_MS))
    lost = partition.queue.take(27.0)
    assert lost is not None
    partition.queue.given_up(lost, 0.0)
    assert keeps_out(partition, 6, 28.0)


def seconds_watched(partition: Partition, begin: float) -> float:
    """Until the batches may be sent, with a log that stays as it was."""
    now = begin
    while wait := contention.seconds_to_watch(partition, contention.Look(now, now)):
        assert 0.0 < wait <= 1.2
        now += wait
    return now - begin


def test_a_copy_that_did_not_write_for_a_while_watches_the_log_first_and_keeps_its_batches() -> None:
    """Another one may have been at it since, and be at it now. A slow source need not return them again."""
    partition = placed(5)
    batch = batch_of(partition, OLD_MS)
    partition.queue.append(batch)
    assert looks_first(partition, batch, 0.0)
    assert not contention.may_continue(partition, 1.0)
    assert 5.8 <= seconds_watched(partition, 1.0) <= 6.3
    now = partition.position.quiet_at
    assert contention.may_continue(partition, now + 9.9)
    assert not contention.may_continue(partition, now + 10.1)
    assert not looks_first(partition, batch, now + 1.4)
    assert looks_first(partition, batch, now + 1.6)
    assert seconds_watched(partition, now + 9.9) == 0.0
    now = partition.position.quiet_at
    assert 5.8 <= seconds_watched(partition, now + 10.1) <= 6.3
    assert list(partition.queue.batches) == [batch]
    assert partition.position.phase is Phase.REPLICATING


def test_a_copy_that_was_writing_needs_one_look_after_a_pause() -> None:
    partition = cut_off()
    seconds_kept_out(partition, 6)
    partition.found([plain_run()], 6, 6)
    batch = batch_of(partition, OLD_MS)._replace(sequence=6)
    partition.queue.append(batch)
    assert partition.queue.take(20.0) is batch
    partition.queue.landed(batch)
    partition.acked(batch, 20.0)
    assert not looks_first(partition, batch._replace(sequence=7), 21.0)
    assert looks_first(partition, batch._replace(sequence=7), 60.0)
    assert seconds_watched(partition, 60.1) == 0.0  # nobody else was there
    assert not looks_first(partition, batch._replace(sequence=7), 60.2)
    assert looks_first(partition, batch._replace(sequence=7), 90.0)
    partition.found([plain_run()], 7, 7)
    assert contention.seconds_to_watch(partition, contention.Look(90.0, 90.0)) > 0.0
    partition.reset_position(None, "", 90.1)
    assert keeps_out(partition, 9, 90.1)
    assert partition.reason is Reason.ANOTHER_COPY


def test_old_records_that_waited_for_their_turn_while_another_copy_may_have_come_are_looked_up_first() -> None:
    """For a quota, say: nothing was in flight meanwhile, and the log did not grow."""
    partition = cut_off()
    seconds_kept_out(partition, 6)
    partition.found([plain_run()], 6, 6)
    now = partition.position.quiet_at
    batch = batch_of(partition, OLD_MS)._replace(sequence=6)
    partition.queue.append(batch)
    assert not contention.is_late(partition, now + 0.4)  # another instance may have looked at the same time
    assert contention.is_late(partition, now + 0.6)
    partition.position.found_quiet(6, now + 5.0)
    assert not contention.is_late(partition, now + 5.4)
    partition.position.late_looks = 20  # a slow line: no turn comes sooner
    assert not contention.is_late(partition, now + 9.0)
    assert contention.is_late(partition, now + 10.0)
    assert partition.queue.take(now + 5.4) is batch
    assert not contention.is_late(partition, now + 60.0)  # it is in flight: what answers it tells
    partition.queue.landed(batch)
    partition.acked(batch, now + 60.0)
    assert not contention.is_late(partition, now + 64.0)
    assert partition.position.late_looks == 0


def test_after_a_young_record_there_is_nothing_to_wait_for() -> None:
    partition = cut_off()
    seconds_kept_out(partition, 6)
    partition.found([plain_run()], 8, 8)
    assert partition.position.forgettable
    young = batch_of(partition, NOW_MS)._replace(sequence=8)
    partition.queue.append(young)
    assert partition.queue.take(20.0) is young
    partition.queue.landed(young)
    partition.acked(young, 20.0)
    assert not partition.position.forgettable
    partition.queue.given_up(young._replace(sequence=9), 0.0)
    partition.queue.in_flight = 0
    assert not keeps_out(partition, 9, 21.0)


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
            partition.queue.landed(batch)
            partition.acked(batch, 0.0)
    assert together == [1, 1, 1, 1, 1, 1, 2]  # the first three wait behind an old one: that is safe, too


def test_where_the_log_s_end_shows_a_loss_old_batches_go_together_until_one_is_refused() -> None:
    partition = placed(5)

    def sent_at_once() -> list[OutBatch]:
        for _ in range(3):
            batch = batch_of(partition, OLD_MS)
            partition.queue.append(batch)
            contention.note(partition, batch, NOW_MS)
            partition.cursor.stamped(1, 1, 1, 0)
        return list(iter(lambda: partition.queue.take(0.0), None))

    partition.acked(batch_of(partition, NOW_MS), 0.0)
    sent = sent_at_once()
    assert len(sent) == 3
    for batch in sent:
        partition.queue.landed(batch)
    partition.queue.failed()
    assert len(sent_at_once()) == 1


def test_young_records_are_copied_by_as_many_as_there_are() -> None:
    assert not keeps_out(placed(5), 5, 0.0)


def test_a_copy_stands_by_for_as_long_as_another_one_writes() -> None:
    partition = placed(5)
    partition.position.mark_forgettable(6)
    assert keeps_out(partition, 5, 10.0)
    assert partition.position.phase is Phase.AWAIT_POSITION
    assert partition.reason is None
    assert 10.8 <= partition.position.retry_at <= 11.2
    partition.position.mark_forgettable(10)
    assert keeps_out(partition, 7, 12.0)
    assert (partition.reason, partition.detail) == (
        Reason.ANOTHER_COPY,
        "another running copy of the link has written up to record 7",
    )
    assert 6.0 <= seconds_kept_out(partition, 9, 14.0) <= 6.2  # longer than the one that writes would
    partition.found([plain_run()], 9, 9)
    assert keeps_out(partition, 9, 32.0)  # after the next doubt, whoever looks watches first


def test_what_arrives_late_of_our_own_is_not_another_copy_s() -> None:
    partition = cut_off()
    assert keeps_out(partition, 6, 10.0)
    assert keeps_out(partition, 7, 11.0)
    assert partition.reason is None
