"""Fetched records of transformed topics, from the reply to the batches that are sent: parts, stops and what is dropped."""

from collections.abc import Callable
from typing import Any

import pytest

from strait.engine import transforming
from strait.engine.batch_stamper import BatchStamper
from strait.engine.evaluation import Made, MadeBatch, Malformed, Refusal, Work
from strait.net.buffers import BufferPool
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from strait.state.transform import TopicTransform
from strait.wire.batch import parse
from strait.wire.columns import decode, encode, opened
from strait.wire.fetch import Fetched
from strait.wire.records import Record, read_records
from support.model.batches import source_batch
from support.model.partitions import placed

FORMAT = "a INT"


class Sink:
    """A state topic that acknowledges at once."""

    def __init__(self) -> None:
        self.quarantined: list[Any] = []

    def write_run(self, run: Any, on_ack: Callable[[None], None]) -> None:
        on_ack(None)

    def write_quarantined(self, quarantined: Any, on_ack: Callable[[None], None]) -> None:
        self.quarantined.append(quarantined)
        on_ack(None)


class Slot:
    """A real stamper, a partition, and work that waits for its result."""

    def __init__(self, **policy: Any) -> None:
        transform = TopicTransform(json_schema=FORMAT, where="x", malformed=policy.pop("malformed", "stop"))
        self.pool, self.sink = BufferPool(64 << 20), Sink()
        self.partition = placed(policy=TopicPolicy(transform=transform, **policy))
        self.works: list[tuple[Work, Callable[[Made], None]]] = []
        self.stopped: list[tuple[Reason, str]] = []
        self.stamper = BatchStamper(
            self.pool,
            self.sink,  # type: ignore[arg-type]
            7,
            self,
            emit=lambda partition, batch: partition.queue.append(batch),
            stop=lambda partition, reason, detail: self.stopped.append((reason, detail)),
            broken=NotImplemented,
            freed=lambda _: None,
            evaluator=self,
        )

    def submit(self, work: Work, done: Callable[[Made], None]) -> None:
        self.works.append((work, done))

    def left_out(self, _: TopicPolicy) -> None:
        return None

    def judge(self, *_: object) -> None:
        raise AssertionError

    def fetch(self, *batches: range, value: bytes = b"v") -> None:
        """A reply with a batch of the records at each of these offsets."""
        raw = b"".join(
            source_batch([Record(n, 5, b"%d" % n, value, ()) for n in offsets], offsets.start, offsets.stop, codec=3)
            for offsets in batches
        )
        frame = self.pool.take(len(raw))
        frame.view()[:] = raw
        end = batches[-1].stop
        self.stamper.take(self.partition, Fetched("t", 0, 0, end, end, 0, frame.view()), frame, tailing=False)
        frame.release()

    def answer(self, *malformed: int, but: tuple[int, ...] = ()) -> Work:
        """Give the oldest work its result: all of its records but these."""
        work, done = self.works.pop(0)
        offsets = [one.source + n for one in work.stretches for n in range(one.records)]
        rows = decode([opened(batch) for batch in work.batches])
        made: list[MadeBatch | Malformed] = []
        for row, offset in enumerate(offsets):
            if offset in malformed:
                made.append(Malformed(offset))
            elif offset not in but:
                made.append(MadeBatch(encode(rows, row, row + 1, work.codec), _array(offset)))
        done(made)
        return work

    @property
    def sent(self) -> list[bytes | None]:
        return [record.key for batch in self.partition.queue.batches for record in read_records(parse(batch.view))]


def _array(offset: int) -> Any:
    return transforming.np.array([offset], transforming.np.int64)


def test_nothing_more_is_fetched_before_the_result_is_there_and_then_all_that_was_left_out_is_passed() -> None:
    slot = Slot()
    slot.fetch(range(3), range(3, 9))
    cursor = slot.partition.cursor
    assert cursor.unfinished and cursor.offset == 0 and slot.sent == []
    slot.answer(but=(0, 4, 7, 8))
    assert not cursor.unfinished and cursor.offset == 9
    assert slot.sent == [b"1", b"2", b"3", b"5", b"6"]
    slot.fetch(range(9, 12))
    slot.answer(but=(9, 10, 11))
    assert cursor.offset == 12 and len(slot.sent) == 5 and slot.stopped == []
    assert slot.pool.used_bytes == sum(len(batch.view) for batch in slot.partition.queue.batches)


def test_large_replies_are_evaluated_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforming, "WORK_RECORDS", 250)
    slot = Slot()
    slot.fetch(*(range(n, n + 100) for n in range(0, 1_000, 100)))
    parts = []
    while slot.works:
        parts.append(sum(batch.records for batch in slot.answer().batches))
        assert slot.partition.cursor.unfinished is bool(slot.works)
    assert parts == [300, 300, 300, 100]
    assert slot.sent == [b"%d" % n for n in range(1_000)]


def test_a_malformed_record_stops_its_partition_behind_all_before_it_and_again_when_it_is_fetched_again() -> None:
    slot = Slot(on_refused="quarantine")
    slot.fetch(range(9))
    slot.answer(5, but=(3, 4))
    assert slot.sent == [b"0", b"1", b"2"]
    assert slot.partition.cursor.offset == 5
    ((reason, detail),) = slot.stopped
    assert reason is Reason.MALFORMED_RECORD and "offset 5" in detail
    slot.fetch(range(9))
    assert [one.source for one in slot.works[0][0].stretches] == [5]
    slot.answer(5)
    assert slot.sent == [b"0", b"1", b"2"] and len(slot.stopped) == 2 and slot.sink.quarantined == []


def test_a_malformed_record_is_noted_without_its_content() -> None:
    slot = Slot(malformed="quarantine")
    slot.fetch(range(9))
    slot.answer(0, 5, 8)
    assert [(one.record, one.reason) for one in slot.sink.quarantined] == [
        (Record(offset, -1, None, None, ()), Reason.MALFORMED_RECORD) for offset in (0, 5, 8)
    ]
    assert slot.sent == [b"1", b"2", b"3", b"4", b"6", b"7"] and slot.partition.cursor.offset == 9


def test_a_malformed_record_that_another_route_notes_is_left_out() -> None:
    slot = Slot(malformed="omit")
    slot.fetch(range(10))
    slot.answer(4)
    assert slot.sent == [b"%d" % n for n in range(10) if n != 4]
    assert not slot.sink.quarantined and not slot.stopped


def test_a_value_that_only_this_route_would_have_copied_is_noted_by_it() -> None:
    """The others leave it out for their conditions; an unknown schema stops each of them."""
    slot = Slot(malformed="omit")
    slot.fetch(range(9))
    _, done = slot.works.pop()
    done([Malformed(0), Malformed(3, kept=True), Malformed(4), Malformed(6, "it has schema ID 8"), Malformed(7)])
    assert [one.record.offset for one in slot.sink.quarantined] == [3]
    assert slot.partition.cursor.offset == 6 and len(slot.stopped) == 1


def test_a_value_of_an_unknown_schema_stops_its_partition_whatever_malformed_says() -> None:
    """Otherwise the quarantine would get every record of a new schema, and a later rule would make another copy of them."""
    slot = Slot(malformed="quarantine")
    slot.fetch(range(9))
    _, done = slot.works.pop()
    done([Malformed(0), Malformed(4, "it has schema ID 8"), Malformed(5)])
    assert [one.record.offset for one in slot.sink.quarantined] == [0]
    assert slot.partition.cursor.offset == 4
    ((reason, detail),) = slot.stopped
    assert reason is Reason.MALFORMED_RECORD and detail == "the value of the record at offset 4: it has schema ID 8"


def test_a_result_for_a_position_that_was_reset_is_dropped_and_all_is_fetched_again() -> None:
    slot = Slot()
    slot.fetch(range(9))
    slot.partition.reset_position(None, "", 0.0)
    slot.answer()
    assert slot.sent == [] and not slot.partition.cursor.unfinished
    assert slot.pool.used_bytes == 0


def test_another_policy_drops_the_result_too() -> None:
    slot = Slot()
    slot.fetch(range(9))
    slot.partition.obey(slot.partition.policy.model_copy(update={"max_message_bytes": 1}))
    slot.answer()
    assert slot.sent == [] and slot.partition.cursor.offset == 0 and not slot.partition.cursor.unfinished


def test_what_cannot_be_evaluated_stops_the_partition_with_its_reason() -> None:
    slot = Slot()
    slot.fetch(range(9))
    slot.works.pop()[1](Refusal(Reason.TRANSFORM_REFUSED, "where: Rand"))
    assert slot.stopped == [(Reason.TRANSFORM_REFUSED, "where: Rand")]
    assert slot.sent == [] and slot.partition.cursor.offset == 0


def test_a_record_that_has_become_too_large_is_refused_as_any_other() -> None:
    slot = Slot(max_message_bytes=2_000)
    slot.fetch(range(1), range(1, 2))
    work, done = slot.works.pop()
    small = decode([opened(work.batches[0])])
    large = decode(
        [opened(parse(memoryview(source_batch([Record(0, 5, b"1", bytes(range(256)) * 9, ())], 0, 1, codec=0))))]
    )
    done([MadeBatch(encode(small, 0, 1, 0), _array(0)), MadeBatch(encode(large, 0, 1, 0), _array(1))])
    assert slot.sent == [b"0"]
    ((reason, detail),) = slot.stopped
    assert reason is Reason.BATCH_TOO_LARGE and "offset 1" in detail


def test_records_that_the_destination_rejected_are_searched_one_by_one_after_the_transformation() -> None:
    slot = Slot(on_refused="quarantine")
    slot.partition.cursor.take_apart(2, 4)
    slot.partition.cursor.put_aside(3, Reason.BATCH_REFUSED, "no")
    slot.fetch(range(6))
    work, done = slot.works.pop()
    rows = decode([opened(batch) for batch in work.batches])
    done([MadeBatch(encode(rows, 0, 6, 0), transforming.np.arange(6))])
    assert [batch.records for batch in slot.partition.queue.batches] == [2, 1, 2]
    assert slot.sent == [b"0", b"1", b"2", b"4", b"5"]
    assert [one.record.offset for one in slot.sink.quarantined] == [3]
