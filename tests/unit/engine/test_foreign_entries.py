"""Other producers that write all the time do not fill the loss log."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from strait.engine.loss_ledger import FOREIGN_ENTRIES, LossLedger
from strait.engine.partition.partition import Partition
from strait.state.schema import Loss
from support.model.partitions import plain_partition


def test_an_hour_of_foreign_records_has_few_entries_and_leaves_none_out(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: clock.now, time=lambda: 0.0, now=0.0)
    monkeypatch.setattr("strait.engine.loss_ledger.time", clock)
    noted: list[Loss] = []

    def note_loss(_: Partition, loss: Loss) -> None:
        noted.append(loss)

    ledger = LossLedger("l", cast(Any, None), cast(Any, SimpleNamespace(note_loss=note_loss)))
    partition = plain_partition()
    for number in range(1000):  # one of ours, then two of others
        partition.position.acked_sequence = number
        ledger.strangers_before(partition, number, number, 3 * number + 2)
        clock.now += 3.0
    assert len(noted) == FOREIGN_ENTRIES
    assert "more of them" in noted[-1].detail
    clock.now += 3600.0
    partition.position.acked_sequence = 1000
    ledger.strangers_before(partition, 1000, 1000, 3002)
    combined, newest = noted[FOREIGN_ENTRIES:]
    assert (combined.from_offset, combined.to_offset) == (3 * FOREIGN_ENTRIES, 2999)
    assert combined.detail.startswith(f"{2 * (1000 - FOREIGN_ENTRIES)} records between offsets ")
    assert (newest.from_offset, newest.to_offset) == (3000, 3002)
