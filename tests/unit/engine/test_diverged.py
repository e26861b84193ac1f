"""What becomes of a position that the source's leader says is not in its log."""

from typing import Any

import pytest

from strait.engine.recovery.truncation import Truncation
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from support.model.partitions import placed


class Losses:
    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def source_lost(self, _: object, *told: Any) -> None:
        self.told.append(told)


@pytest.mark.parametrize(
    ("on_loss", "end", "lost", "then"),
    [
        ("halt", 80, (80, 90), 90),
        ("continue", 80, (80, 90), 80),
        ("restart", 80, (80, 90), 0),
        ("halt", 100, (89, 90), 90),
        ("continue", 100, (89, 90), 89),
        ("restart", 100, (89, 90), 0),
        ("halt", 90, (89, 90), 90),
    ],
)
def test_a_log_that_is_longer_but_another_is_a_loss_too(
    on_loss: Any, end: int, lost: tuple[int, int], then: int
) -> None:
    """A leader of an earlier epoch was elected uncleanly: it has other records at the offsets that were copied."""
    loop, losses, partition = Loop(), Losses(), placed(policy=TopicPolicy(on_loss=on_loss))
    partition.cursor.stamped(90, 90, 90, 5)
    partition.cursor.heard(100, 100, 0)
    Truncation(loop, NotImplemented, losses).diverged(partition, end)  # type: ignore[arg-type]
    ((cause, range_, _, detail),) = losses.told
    assert (cause, range_) == (Reason.SOURCE_TRUNCATED, lost)
    assert ("not known" in detail) is (end >= 90)
    assert partition.cursor.offset == then
    assert (partition.reason is Reason.SOURCE_TRUNCATED) is (on_loss == "halt")
    loop.close()
