"""Ranks the partitions of several links by lag or rate. Pure."""

import heapq
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status


class By(StrEnum):
    """Measure that partitions are ranked by, the highest first."""

    LAG = "lag"
    RATE = "rate"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A partition with its link and task group."""

    link: str
    group: str
    row: PartitionStatus

    def as_data(self) -> dict[str, Any]:
        """Return plain data."""
        return {"link": self.link, "group": self.group, **asdict(self.row)}


def ranked(statuses: Iterable[Status], by: By, most: int) -> list[Ranked]:
    """Return at most ``most`` partitions, the highest first.

    Unknown values come last; equal ones are in order of link, topic and partition.
    """
    rows = (Ranked(status.link, status.group, row) for status in statuses for row in status.partitions)
    return heapq.nsmallest(most, rows, key=lambda one: (-_measure(one.row, by), *_name(one)))


def _measure(row: PartitionStatus, by: By) -> float:
    if by is By.RATE:
        return -1.0 if row.records_per_second is None else row.records_per_second
    return row.lag_seconds if by is By.SECONDS else float(row.lag_records)


def _name(one: Ranked) -> tuple[str, str, int]:
    return one.link, one.row.topic, -1 if one.row.partition is None else one.row.partition
