"""What a destination acknowledged and has no more is a loss, whether or not a checkpoint says so."""

import pytest

from strait.engine.partition.partition import Partition
from strait.engine.recovery.coordinator import with_what_was_acknowledged
from strait.engine.recovery.decision import Found
from support.model.partitions import plain_partition


def partition(*, found: int, acknowledged: int, shift: int = 7) -> Partition:
    """``found`` by its last look-up; since then all before ``acknowledged`` was acknowledged."""
    one = plain_partition()
    one.position.found_sequence, one.position.acked_sequence, one.position.shift = found, acknowledged, shift
    return one


@pytest.mark.parametrize(
    ("found", "acknowledged", "now", "lost"),
    [
        (-1, -1, Found(50), None),  # its first look-up
        (40, 100, Found(100), None),
        (40, 100, Found(130), None),  # another writer, or a reply that was lost
        (40, 100, Found(60), (67, 107)),
        (100, 100, Found(60), None),  # seen in the log once, never acknowledged
        (40, 100, Found(60, lost=(67, 80)), (67, 107)),  # a checkpoint knows less
        (40, 100, Found(60, lost=(67, 120)), (67, 120)),  # or more, of another slot
    ],
)
def test_what_this_slot_knows_counts(found: int, acknowledged: int, now: Found, lost: tuple[int, int] | None) -> None:
    assert with_what_was_acknowledged(partition(found=found, acknowledged=acknowledged), now) == now._replace(lost=lost)
