"""Other producers that write all the time do not fill the loss log."""

import re
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strait.config.app_spec import AppSpec
from strait.engine.checkpointer import Checkpointer
from strait.engine.loss_ledger import FOREIGN_ENTRIES, LossLedger
from strait.engine.packing import PACK_RUNS
from strait.engine.replicator import Replicator
from strait.engine.slot_metrics import SlotMetrics
from strait.net.event_loop import Loop
from strait.state.codec import run_key
from strait.state.keys import RunKey
from strait.state.offset_map import destination_offset
from strait.state.quarantine_records import QuarantinedRecord
from strait.state.schema import Loss, OffsetMapping, TopicPolicy
from strait.state.sink import OnAck
from support.model.partitions import plain_partition
from support.model.reports import plain_run

AWAY = {"bootstrap.servers": "127.0.0.1:1"}
SPEC = AppSpec(
    link="l", group="default", source_name="a", source=AWAY, destination_name="b", destination=AWAY, slots=1,
    slot_memory_bytes=1 << 20, ledger_seconds=100, ledger_dir="", checkpoint_dir="",
)  # fmt: skip


class Log:
    """The loss log of a partition that others write to as well."""

    def __init__(self, clock: SimpleNamespace) -> None:
        self.clock = clock
        self.noted: list[Loss] = []
        stamper = SimpleNamespace(note_loss=lambda _, loss: self.noted.append(loss))
        self.ledger = LossLedger("l", cast(Any, None), cast(Any, stamper))
        self.partition = plain_partition()

    def strangers(self, first: int, end: int) -> None:
        """Each time one of ours, then two of others."""
        for number in range(first, end):
            self.partition.position.acked_sequence = number
            self.ledger.foreign_records_before(self.partition, number, number, 3 * number + 2)
            self.clock.now += 3.0
            self.ledger.step(self.clock.now)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    clock = SimpleNamespace(monotonic=lambda: clock.now, time=lambda: 0.0, now=0.0)
    monkeypatch.setattr("strait.engine.loss_ledger.time", clock)
    return Log(clock)


def test_an_hour_of_foreign_records_has_few_entries_and_leaves_none_out(log: Log) -> None:
    log.strangers(0, 1000)
    assert len(log.noted) == FOREIGN_ENTRIES
    assert "more of them" in log.noted[-1].detail
    log.clock.now += 3600.0
    log.ledger.step(log.clock.now)
    (combined,) = log.noted[FOREIGN_ENTRIES:]
    assert (combined.from_offset, combined.to_offset) == (3 * FOREIGN_ENTRIES, 2999)
    assert combined.detail.startswith(f"{2 * (1000 - FOREIGN_ENTRIES):,} records not of this link between offsets ")
    log.clock.now += 7200.0
    log.ledger.step(log.clock.now)
    log.strangers(1000, 1001)
    assert (log.noted[-1].from_offset, log.noted[-1].to_offset) == (3000, 3002), "one by one, after two quiet hours"


def test_the_hour_is_told_too_if_the_slot_ends_or_the_partition_is_given_away(log: Log) -> None:
    log.strangers(0, FOREIGN_ENTRIES + 1)
    log.ledger.close()
    assert (log.noted[-1].from_offset, log.noted[-1].to_offset) == (3 * FOREIGN_ENTRIES, 3 * FOREIGN_ENTRIES + 2)
    told = len(log.noted)
    log.strangers(100, 100 + FOREIGN_ENTRIES + 1)
    log.partition.retire()
    log.clock.now += 60.0
    log.ledger.step(log.clock.now)
    assert len(log.noted) == told + FOREIGN_ENTRIES + 1
    assert not log.ledger._periods


MONTH_SECONDS = 30 * 86_400
EVERY_SECONDS = 60
"""Time between two changes of writers."""
CHECKPOINT_SECONDS = 600
"""Longer than a slot's, so that the month takes seconds."""


def test_a_month_of_alternating_writers_has_few_entries_and_a_small_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of ours, then two of others, again and again. No foreign record is left out of the log, and each offset in the
    map is true."""
    now = [0.0]
    monkeypatch.setattr("strait.engine.loss_ledger.time", SimpleNamespace(monotonic=lambda: now[0]))
    sink, noted = MapSink(), list[Loss]()
    stamper = SimpleNamespace(note_loss=lambda _, loss: noted.append(loss))
    ledger = LossLedger("l", sink, cast(Any, stamper))
    partition = plain_partition(policy=TopicPolicy(on_foreign="continue"))
    first = plain_run(source_id=partition.ids[0], destination_id=partition.ids[1])
    sink.write_run(first)
    partition.found([first], 0, 0)
    checkpointer, position = Checkpointer(sink), partition.position
    writes_before = 0
    for number in range(MONTH_SECONDS // EVERY_SECONDS):
        now[0] = float(number * EVERY_SECONDS)
        ledger.foreign_records_before(partition, number, number, 3 * number + 2)
        position.acked_sequence = position.copied_to = number + 1
        position.located = True
        ledger.step(now[0])
        if not number * EVERY_SECONDS % CHECKPOINT_SECONDS:
            checkpointer.check(partition, sink.runs, int(now[0] * 1000))
            assert len(sink.runs) <= 2 * (PACK_RUNS + FOREIGN_ENTRIES), "the map grows"
        if number == 60:
            writes_before = sink.writes
    ledger.close()
    assert len(noted) <= 50
    assert sum(_foreign_in(loss) for loss in noted) == 2 * MONTH_SECONDS // EVERY_SECONDS
    assert sink.writes - writes_before <= MONTH_SECONDS / CHECKPOINT_SECONDS
    for run in sink.runs:
        if run.sequence_end > run.sequence_base:
            assert destination_offset(run, run.sequence_end - 1) == 3 * (run.sequence_end - 1) + 2


def _foreign_in(loss: Loss) -> int:
    """How many records an entry is about."""
    told = re.match(r"([\d,]+) records? not of this link", loss.detail)
    return int(told[1].replace(",", "")) if told else loss.to_offset - loss.from_offset


class MapSink:
    """The map's records by their keys, as compaction leaves them."""

    def __init__(self) -> None:
        self._map: dict[RunKey, OffsetMapping] = {}
        self.writes = 0

    @property
    def runs(self) -> list[OffsetMapping]:
        return sorted(self._map.values(), key=lambda run: run.sequence_base)

    def write_run(self, run: OffsetMapping, on_ack: OnAck | None = None) -> None:
        self.writes += 1
        self._map[run_key(run)] = run
        if on_ack is not None:
            on_ack(None)

    def forget_run(self, run: OffsetMapping) -> None:
        self._map.pop(run_key(run), None)

    def write_loss(self, loss: Loss, on_ack: OnAck | None = None) -> None:
        raise AssertionError(loss)

    def write_quarantined(self, quarantined: QuarantinedRecord, on_ack: OnAck) -> None:
        raise AssertionError(quarantined)


def test_a_slot_looks_after_its_hours_while_it_runs_and_when_it_ends() -> None:
    noted: list[Loss] = []
    sink = SimpleNamespace(write_loss=lambda loss, _: noted.append(loss))
    loop = Loop()
    replicator = Replicator(loop, SPEC, 0, 7, {}, cast(Any, sink), SlotMetrics(SPEC, 0, "app"))
    for number, began in enumerate((time.monotonic() - 3600.0, time.monotonic())):
        partition = plain_partition(number)
        for offset in range(FOREIGN_ENTRIES + 1):
            replicator._loss_ledger._note_foreign(partition, (offset, offset + 1), began)
    noted.clear()
    loop.run_once(0.0)
    replicator.step()
    assert [loss.partition for loss in noted] == [0]
    replicator.close()
    loop.close()
    assert [loss.partition for loss in noted] == [0, 1]
