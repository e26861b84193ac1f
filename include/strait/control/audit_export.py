"""Source records that an audit found missing or different on the destination, to be exported as those of a tail are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from pydantic import ValidationError

from strait.audit.plan import AuditPlan
from strait.audit.task_result import ChunkResult, of_parquet
from strait.control.tail import record_of
from strait.errors import ConfigError, StateError
from strait.kafka.reading import read_under_names
from strait.model import TopicPartition
from strait.state.tail_records import TailRecord

_KINDS = frozenset({"missing", "different"})
_TOGETHER = 10_000
"""Ranges with fewer offsets between them are read at a time."""
Ranges = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Lacking:
    """The source offsets [first, end) of the records that the destination lacks, of each partition in order."""

    plan: AuditPlan
    ranges: Mapping[TopicPartition, Ranges]

    @property
    def transformed(self) -> list[str]:
        """The source topics of these whose records are transformed for the destination."""
        changed = {one.topic for one in self.plan.topics if one.transform}
        return sorted(changed & {place.topic for place in self.ranges})

    @property
    def count(self) -> int:
        """How many records these are."""
        return sum(end - first for ranges in self.ranges.values() for first, end in ranges)


def lacking(directory: Path) -> Lacking:
    """Read an audit's results. Differences with an explanation on record are not included.

    Args:
        directory: of the audit.

    Raises:
        ConfigError: it holds no audit that is over.
        StateError: its results cannot be read, or do not list every difference.
    """
    plan, results = read_results(directory)
    return Lacking(plan, ranges_of(results))


def read_results(directory: Path) -> tuple[AuditPlan, list[ChunkResult]]:
    """Read an audit's plan and the results of its chunks. Raises as `lacking`."""
    if not (directory / "certificate.json").is_file():
        hint = "the results of an audit on a cluster are in its `ledger_dir`: copy them here"
        raise ConfigError(
            "audit", [f"{directory} has no certificate: there is no such audit, or it is not over"], hint=hint
        )
    try:
        plan = AuditPlan.model_validate_json((directory / "plan.json").read_bytes())
        results = [
            one for path in sorted((directory / "chunks").glob("*.parquet")) for one in of_parquet(path.read_bytes())
        ]
    except (OSError, ValidationError, ValueError) as error:
        raise StateError(f"audit {directory.name}: its results cannot be read: {error}") from None
    return plan, results


def ranges_of(results: Iterable[ChunkResult]) -> dict[TopicPartition, Ranges]:
    """Return the source offsets of missing and different records. Raises StateError if a chunk does not list all."""
    newest = {one.key: one for one in results}
    found: dict[TopicPartition, list[tuple[int, int]]] = {}
    for one in newest.values():
        named = [it for it in one.differences if it.kind in _KINDS and not it.explained]
        counted = sum(records for kind, explained, records in one.counts if kind in _KINDS and not explained)
        if counted != sum(it.records for it in named):
            raise StateError(
                f"audit: {one.topic}-{one.partition}: the records from number {one.first} on have more differences than are listed",
                hint="copy the whole topic again",
            )
        place = TopicPartition(one.topic, one.partition)
        found.setdefault(place, []).extend((it.source, it.source + it.records) for it in named)
    return {place: sorted(ranges) for place, ranges in sorted(found.items()) if ranges}


def records(
    properties: Mapping[str, str], cluster: str, wanted: Mapping[TopicPartition, Ranges]
) -> Iterator[TailRecord]:
    """Yield the records at these source offsets; deleted ones are skipped. Raises ClusterUnavailable, NotAuthorized."""
    stretches = [[(place, stretch) for stretch in _stretches(ranges)] for place, ranges in wanted.items()]
    for at_a_time in zip_longest(*stretches):
        chosen = dict(one for one in at_a_time if one is not None)
        spans = {place: (stretch[0][0], stretch[-1][1]) for place, stretch in chosen.items()}
        for place, message in read_under_names(properties, cluster, spans):
            record = record_of(message, place)
            if any(first <= record.offset < end for first, end in chosen[place]):
                yield record


def _stretches(ranges: Ranges) -> list[list[tuple[int, int]]]:
    """Return the ranges in groups that are read at a time."""
    found: list[list[tuple[int, int]]] = []
    for one in ranges:
        if found and one[0] - found[-1][-1][1] < _TOGETHER:
            found[-1].append(one)
        else:
            found.append([one])
    return found
