"""What a checkpoint may confirm."""

import pytest

from strait.engine.checkpointer import checkpoint
from strait.state.schema import TopicPolicy
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
