"""A destination log among records of other producers that is cut again and again: what the map and the log's end still
prove, and what is read."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.engine import packing
from strait.engine.checkpointer import Checkpointer
from strait.engine.recovery.decision import (
    Found,
    LogState,
    Refused,
    Scan,
    confirmed_places,
    from_leader,
    from_scan,
    judge_append,
    least_offset,
)
from strait.engine.recovery.tail import Tail
from strait.errors import StraitError
from strait.reasons import Reason
from strait.state.codec import run_key
from strait.state.keys import RunKey
from strait.state.offset_map import wire_sequence
from strait.state.quarantine_records import QuarantinedRecord
from strait.state.schema import Loss, OffsetMapping, TopicPolicy
from support.model.partitions import plain_partition
from support.model.reports import plain_run

FOREIGN = -1


@pytest.fixture(autouse=True, scope="module")
def _pack_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "PACK_RUNS", 2)
        yield


class SharedLog:
    """One destination partition and its map. ``log`` has the record's number at each offset, or FOREIGN."""

    def __init__(self, first: int) -> None:
        self.log = [FOREIGN] * first
        self.partition = plain_partition(policy=TopicPolicy(on_foreign="expect"))
        ids = {"source_id": self.partition.ids[0], "destination_id": self.partition.ids[1]}
        run = plain_run(destination_base=first, **ids)
        self._map = {run_key(run): run}
        self._checkpointer = Checkpointer(self)

    @property
    def runs(self) -> list[OffsetMapping]:
        return sorted(self._map.values(), key=lambda run: run.sequence_base)

    @property
    def written(self) -> int:
        """How many records of the link it holds."""
        return len(self.log) - self.log.count(FOREIGN)

    def append(self, records: int, *, foreign: bool) -> None:
        self.log += [FOREIGN] * records if foreign else range(self.written, self.written + records)

    def cut(self, offset: int) -> None:
        del self.log[offset:]

    def checkpoint(self) -> None:
        """As a slot that was told so by acknowledgements."""
        if not self.written:
            return
        position = self.partition.position
        self.partition.found(self.runs, self.written, self.written)
        position.located_at(self.log.index(self.written - 1))
        position.found_sequence = -1
        self._checkpointer.check(self.partition, self.runs, 1)

    def state(self, *, forgotten: bool = False) -> LogState:
        known = None if forgotten or not self.written else wire_sequence(self.written - 1)
        return LogState(len(self.log), known, len(self.log), len(self.log))

    def read(self, scan: Scan, step: int, *, cut: bool = False) -> Tail:
        """Back from its end, as many offsets at a time; ``cut``: an acknowledgement has shown the loss."""
        confirmed = {} if cut else confirmed_places(self.runs)
        seen, at = Tail(len(self.log)), len(self.log)
        while at > scan.start and not seen.intact:
            low = max(scan.start, at - step)
            part = Tail(low)
            for offset in range(low, at):
                number = self.log[offset]
                if number == FOREIGN:
                    part = part._replace(foreign=offset)
                else:
                    sequence = wire_sequence(number)
                    intact = confirmed.get(sequence) == offset
                    part = part.joined(Tail(offset, sequence, offset, -1, sequence, intact=intact))
            seen, at = part.joined(seen), low
        return seen

    # --- the map's sink -----------------------------------------------------------------------------------------------

    def write_run(self, run: OffsetMapping, on_ack: Callable[[StraitError | None], None] | None = None) -> None:
        self._map[run_key(run)] = run
        if on_ack is not None:
            on_ack(None)

    def forget_run(self, run: OffsetMapping) -> None:
        key: RunKey = run_key(run)
        self._map.pop(key, None)

    def write_loss(self, loss: Loss, on_ack: object = None) -> None:
        raise AssertionError(f"nothing was lost: {loss}")

    def write_quarantined(self, quarantined: QuarantinedRecord, on_ack: object) -> None:
        raise AssertionError(f"nothing was refused: {quarantined}")


def shared_log(data: st.DataObject) -> SharedLog:
    """One that the link, others and faults have written and cut by turns."""
    log = SharedLog(data.draw(st.integers(0, 10)))
    for _ in range(data.draw(st.integers(1, 25))):
        step = data.draw(st.sampled_from(("ours", "ours", "foreign", "foreign", "checkpoint", "checkpoint", "cut")))
        if step == "checkpoint":
            log.checkpoint()
        elif step == "cut":
            log.cut(data.draw(st.integers(0, len(log.log))))
        else:
            log.append(data.draw(st.integers(1, 5)), foreign=step == "foreign")
    return log


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_the_bound_on_destination_offsets_is_never_above_the_truth(data: st.DataObject) -> None:
    log = shared_log(data)
    mapped = [offset for offset, number in enumerate(log.log) if number >= log.runs[0].sequence_base]
    assert all(offset >= least_offset(log.runs) for offset in mapped)


@given(st.data(), st.integers(1, 20))
@settings(deadline=None, max_examples=100)
def test_a_leader_that_knows_the_link_is_believed_however_often_its_log_was_cut(data: st.DataObject, step: int) -> None:
    log = shared_log(data)
    outcome = from_leader(log.runs, log.state(), "expect")
    if not log.written:
        return  # it knows nothing of the link
    if isinstance(outcome, Scan):
        found = from_scan(log.runs, len(log.log), outcome, log.read(outcome, step), "expect", compacted=False)
        assert isinstance(found, Found), found
        assert found.last_offset == log.log.index(log.written - 1)
        if found.lost is not None:
            assert found.lost[0] == found.last_offset + 1 < found.lost[1]
    else:
        found = outcome
        assert isinstance(found, Found), found
    assert found.sequence == log.written


@given(st.data(), st.integers(1, 20))
@settings(deadline=None, max_examples=100)
def test_records_that_are_missing_before_later_ones_are_never_passed_over(data: st.DataObject, step: int) -> None:
    """A leader that had forgotten the link took later ones after the cut."""
    log = shared_log(data)
    lost = data.draw(st.integers(1, 5))
    before = log.written
    log.log += range(before + lost, before + lost + data.draw(st.integers(1, 5)))
    known = wire_sequence(log.log[-1])
    outcome = from_leader(log.runs, LogState(len(log.log), known, len(log.log), len(log.log)), "expect", cut=True)
    if isinstance(outcome, Scan):
        outcome = from_scan(
            log.runs, len(log.log), outcome, log.read(outcome, step, cut=True), "expect", compacted=False
        )
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.DESTINATION_TRUNCATED


def test_a_log_that_lost_records_of_others_alone_is_written_to() -> None:
    """Nothing of the link was ever in it, and it ends before the map's first segment."""
    log = SharedLog(10)
    log.cut(7)
    outcome = from_leader(log.runs, log.state(), "expect")
    assert outcome == Scan(0, whole=True)
    assert from_scan(log.runs, 7, outcome, log.read(outcome, 100), "expect", compacted=False) == Found(0)


@pytest.mark.parametrize("on_foreign", ["expect", "continue"])
def test_a_lower_offset_than_the_map_expects_is_a_loss_only_after_a_record_that_was_seen(on_foreign: str) -> None:
    assert judge_append(30, 35, on_foreign, located=True) == "truncated"  # type: ignore[arg-type]
    assert judge_append(30, 35, on_foreign, located=False) == "shifted"  # type: ignore[arg-type]
    assert judge_append(30, 35, "halt", located=False) == "truncated"
