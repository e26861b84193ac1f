"""Other producers that write all the time do not fill the loss log."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strait.config.app_spec import AppSpec
from strait.engine.loss_ledger import FOREIGN_ENTRIES, LossLedger
from strait.engine.replicator import Replicator
from strait.engine.slot_metrics import SlotMetrics
from strait.net.event_loop import Loop
from strait.state.schema import Loss
from support.model.partitions import plain_partition

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
    assert combined.detail.startswith(f"{2 * (1000 - FOREIGN_ENTRIES)} records between offsets ")
    log.strangers(1000, 1001)
    assert (log.noted[-1].from_offset, log.noted[-1].to_offset) == (3000, 3002)


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
    assert not log.ledger._hours


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
