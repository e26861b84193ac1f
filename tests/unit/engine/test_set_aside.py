"""A record that goes to the quarantine, between records that are copied."""

from typing import Any

from strait.engine.batch_stamper import BatchStamper
from strait.engine.fetch_set import FetchSet
from strait.net.buffers import BufferPool
from strait.state.quarantine_records import QuarantinedRecord
from strait.state.schema import TopicPolicy
from strait.state.sink import OnAck
from strait.wire.fetch import Fetched
from strait.wire.records import Record
from support.model.batches import source_batch
from support.model.partitions import placed

POLICY = TopicPolicy(compression="none", max_message_bytes=2000, on_refused="quarantine")
LARGE, SMALL = b"x" * 3000, b"x"


class Sink:
    """The state topics, which accept everything at once."""

    def __init__(self) -> None:
        self.quarantined: list[int] = []

    def write_quarantined(self, quarantined: QuarantinedRecord, on_ack: OnAck) -> None:
        self.quarantined.append(quarantined.record.offset)
        on_ack(None)

    def write_run(self, _: object, on_ack: OnAck) -> None:
        on_ack(None)


class NoLinks:
    def left_out(self, _: object) -> None: ...


def test_the_next_record_is_not_requested_with_the_leader_epoch_of_those_before() -> None:
    """Its leader may be a later one, as the source then says: the log of the earlier one ended before that record."""
    partition, pool, sink = placed(policy=POLICY), BufferPool(64 << 20), Sink()
    partition.queue.route(1)
    fetches: Any = FetchSet()
    fetches.add(partition, 0.0)
    stamper = BatchStamper(
        pool, sink, 7, NoLinks(), emit=lambda of, batch: of.queue.append(batch), stop=NotImplemented,
        broken=NotImplemented, freed=lambda _: None,
    )  # type: ignore[arg-type]  # fmt: skip

    def requested(now: float) -> tuple[int, int]:
        fetches.update(now, 1 << 30)
        request = fetches.next_request(by_id=False, share_of=lambda _: 1 << 20)
        ((position,),) = [positions for _, positions in request.topics]
        fetches.session.took(9, 0)
        return position.offset, position.last_epoch

    def reply(*data: bytearray) -> None:
        frame = pool.adopt(bytearray(b"".join(data)))
        partition.fetched(103, 103, 0)
        stamper.take(partition, Fetched("t", 0, 0, 103, 103, 0, frame.view()), frame, tailing=False)
        frame.release()

    first = source_batch([Record(n, 5, None, SMALL, ()) for n in range(100)], 0, 100, leader_epoch=3)
    records = [Record(100, 5, None, LARGE, ()), Record(101, 5, None, LARGE, ()), Record(102, 5, None, SMALL, ())]
    second = source_batch(records, 100, 103, leader_epoch=5)
    assert requested(1.0) == (0, -1)
    reply(first, second)
    assert requested(2.0) == (100, 3)
    reply(second)
    assert sink.quarantined == [100]
    assert requested(3.0) == (101, -1), "not epoch 3, which ended at 100"
    reply(second)
    assert sink.quarantined == [100, 101]
    assert (partition.cursor.offset, partition.cursor.last_epoch) == (103, 5)
