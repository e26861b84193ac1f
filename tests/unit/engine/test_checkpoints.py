"""What a checkpoint may confirm."""

import pytest

from strait.engine.checkpointer import checkpoint
from strait.engine.packing import packing
from strait.state.schema import OffsetMapping, TopicPolicy
from strait.state.translation import Fit, Translator
from support.model.partitions import plain_partition
from support.model.reports import plain_run


@pytest.mark.parametrize(("on_foreign", "confirmed"), [("halt", True), ("expect", False), ("continue", False)])
def test_where_others_write_a_lookup_does_not_confirm_where_its_last_record_is(
    on_foreign: str, confirmed: bool
) -> None:
    """It knows the number. Others' records may have come before any record since the last checkpoint."""
    partition = plain_partition(policy=TopicPolicy.model_validate({"on_foreign": on_foreign}))
    partition.found([plain_run(source_id=partition.ids[0], destination_id=partition.ids[1])], 150, 150)
    found = checkpoint(partition, at_ms=1)
    assert (found is not None and found.sequence_end == 150) == confirmed


def test_what_a_rebuilt_map_does_not_know_stays_unknown_when_runs_are_packed() -> None:
    """Ten runs before the unknown stretch are not packed with those after it, and the packed run says that it follows
    one."""

    def run(number: int, *, after_unknown: bool = False) -> OffsetMapping:
        return plain_run(
            sequence_base=10 * number,
            source_base=12 * number,
            destination_base=10 * number,
            sequence_end=10 * number + 10,
            after_unknown=after_unknown,
        )

    earlier, unknown, later = [run(n) for n in range(10)], run(12, after_unknown=True), [run(n) for n in range(13, 31)]
    newest = run(31)
    (packed,), replaced = packing([*earlier, unknown, *later], newest)
    assert (packed.sequence_base, packed.sequence_end, packed.after_unknown) == (120, 320, True)
    assert list(replaced) == [unknown, *later]
    kept = [*earlier, packed]
    translator = Translator(kept, written=320)
    assert translator.to_source(100) == (118, Fit.EXACT)
    assert [translator.to_source(offset).fit for offset in (101, 120, 121)] == [Fit.UNKNOWN, Fit.UNKNOWN, Fit.EXACT]
    assert not packing([*earlier, *(run(n) for n in range(10, 31))], newest)[0][0].after_unknown


def test_a_checkpoint_after_an_unknown_stretch_still_follows_it() -> None:
    partition = plain_partition()
    ids = {"source_id": partition.ids[0], "destination_id": partition.ids[1]}
    known = plain_run(sequence_base=50, source_base=50, destination_base=50, sequence_end=60, after_unknown=True, **ids)
    partition.found([known], 60, 60)
    found = checkpoint(partition, at_ms=1)
    assert found is not None
    assert found.after_unknown
