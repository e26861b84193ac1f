"""The results of comparing two logs: counts, and the differences with their offsets. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Kind = Literal[
    "missing",
    "extra",
    "duplicate",
    "different",
    "reordered",
    "damaged",
    "deleted",
    "foreign",
    "skipped",
    "unknown",
]
"""
missing: the source has the record, the destination does not.
extra: the destination has a record that the source does not have.
duplicate: the destination has a record of the source once more.
different: both have the record, with other contents.
reordered: the destination has the record at another position.
damaged: a batch does not match its checksum, or cannot be read.
deleted: retention removed the record on one side, so it cannot be compared.
foreign: another producer wrote the record to the destination.
skipped: the link's configuration excludes the record, since another link wrote it.
unknown: the record cannot be compared, since the other side's log is damaged there.
"""

MOST_DIFFERENCES = 1_000
"""Differences that one chunk lists; all of them are counted."""
NOWHERE = -1
NEUTRAL: frozenset[str] = frozenset({"deleted", "skipped", "unknown"})
"""Kinds that are no difference of contents, even without an explanation."""
UNCOMPARED: frozenset[str] = frozenset({"deleted", "unknown"})
"""Kinds of records that could not be compared."""


class Difference(NamedTuple):
    """``records`` consecutive records that differ in the same way.

    Attributes:
        source, copy: their first offset on each side; -1: they have none there.
        explained: the cause that is on record, such as a loss log entry; empty: there is none.
        detail: the side that is affected, or the error.
    """

    kind: Kind
    source: int
    copy: int
    records: int = 1
    explained: str = ""
    detail: str = ""

    def follows(self, other: "Difference") -> bool:
        """Return whether it continues the other one without a gap."""
        return (self.kind, self.explained, self.detail) == (other.kind, other.explained, other.detail) and all(
            one == (NOWHERE if before == NOWHERE else before + other.records)
            for one, before in ((self.source, other.source), (self.copy, other.copy))
        )


@dataclass
class Tally:
    """Counts the differences of one chunk.

    Attributes:
        counts: (kind, explanation) -> records; of ``damaged``, batches.
        differences: the first ones.
    """

    counts: Counter[tuple[Kind, str]] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def add(self, found: Difference) -> None:
        self.counts[found.kind, found.explained] += 1 if found.kind == "damaged" else found.records
        if self.differences and found.follows(self.differences[-1]):
            last = self.differences[-1]
            self.differences[-1] = last._replace(records=last.records + found.records)
        elif len(self.differences) < MOST_DIFFERENCES:
            self.differences.append(found)

    def unexplained(self) -> dict[str, int]:
        """Return kind -> records, of the differences that nothing on record explains."""
        return unexplained(self.counts)


def unexplained(counts: Mapping[tuple[Kind, str], int]) -> dict[str, int]:
    """Return kind -> records, of the differences that nothing on record explains."""
    found: Counter[str] = Counter()
    for (kind, explained), records in counts.items():
        if not explained and kind not in NEUTRAL and records:
            found[kind] += records
    return dict(found)


def verdict_of(counts: Mapping[tuple[Kind, str], int], *, complete: bool = True) -> str:
    """Return the verdict on a comparison with these counts.

    ``different``: some difference has no explanation. ``incomplete``: not all of it could be compared. ``explained``:
    all differences are on record. ``equal``: there are none.
    """
    if unexplained(counts):
        return "different"
    if not complete or any(kind in UNCOMPARED and records for (kind, _), records in counts.items()):
        return "incomplete"
    return "explained" if any(counts.values()) else "equal"


def as_counts(counts: Mapping[tuple[Kind, str], int]) -> list[dict[str, Any]]:
    """Return the counts as machine-readable data, in a fixed order."""
    return [
        {"kind": kind, "explained": explained, "records": records}
        for (kind, explained), records in sorted(counts.items())
        if records
    ]


def sum_of(counts: Iterable[Mapping[tuple[Kind, str], int]]) -> Counter[tuple[Kind, str]]:
    """Return the sum of several counts."""
    total: Counter[tuple[Kind, str]] = Counter()
    for one in counts:
        total.update(one)
    return total
