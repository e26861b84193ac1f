"""The application on real Spark and real brokers."""

import pytest

from support.links import Link

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def test_it_copies_and_keeps_a_row_for_each_partition_and_epoch(link: Link) -> None:
    link.produce(1000)
    link.publish(slots=1)
    link.submit(epoch_seconds=2)
    link.until(lambda: len({row["epoch"] for row in link.ledger()}) >= 3, "three epochs in the ledger")

    rows = link.ledger()
    assert link.copied() == 1000
    assert sum(row["records"] for row in rows) == 1000
