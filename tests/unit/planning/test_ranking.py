"""Which partitions come first in `strait top`."""

import pytest

from strait.planning.status.ranking import By, ranked
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status


def row(topic: str, lag: int, seconds: float, rate: float | None) -> PartitionStatus:
    return PartitionStatus(
        topic, 0, topic, 0, "copying", "", "", lag_records=lag, lag_seconds=seconds, records_per_second=rate
    )


STATUSES = [
    Status("x", "default", 1, False, (), (row("behind", 900, 2.0, 5.0), row("unknown", -1, -1.0, None))),
    Status("y", "default", 1, False, (), (row("busy", 3, 1.0, 70.0), row("old", 8, 60.0, 0.0))),
]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        (By.LAG, ["behind", "old", "busy", "unknown"]),
        (By.RATE, ["busy", "behind", "old", "unknown"]),
        (By.SECONDS, ["old", "behind", "busy", "unknown"]),
    ],
)
def test_the_highest_of_all_links_come_first_and_what_is_not_known_last(by: By, order: list[str]) -> None:
    assert [one.row.topic for one in ranked(STATUSES, by, 10)] == order
    assert [one.row.topic for one in ranked(STATUSES, by, 2)] == order[:2]
