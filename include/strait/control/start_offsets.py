"""Queries both clusters for the start offsets of new partitions. strait.planning.topics.start_offsets interprets the
responses."""

from collections.abc import Mapping
from typing import Any

from strait.kafka.admin import Admin, Outcomes
from strait.model import TopicPartition
from strait.planning.topics.new_partitions import StartRequest
from strait.planning.topics.start_offsets import (
    OutOfRange,
    Range,
    StartAt,
    StartOffsets,
    asked_time,
    first_offset,
    needs_end,
    needs_first,
)

StartsAt = Mapping[TopicPartition, StartAt]


def look_up(
    source: Admin, destination: Admin, new: Mapping[TopicPartition, StartRequest], *, histories: bool = False
) -> StartOffsets:
    """Query each cluster for the offsets that are needed, in as few requests as possible.

    Args:
        histories: also how much the source holds of each partition, in offsets.

    Raises:
        ClusterUnavailable, NotAuthorized: a cluster does not answer. An error about one partition is stored as that
            partition's failure.
    """
    begins = {partition: beginning.fresh.begin for partition, beginning in new.items()}
    ranges, failures = _ranges(source, begins, histories)
    offsets = {
        partition: first_offset(begin, ranges.get(partition, Range()))
        for partition, begin in begins.items()
        if partition not in failures
    }
    ends = destination.offsets_each((beginning.target for beginning in new.values()), "end")
    return StartOffsets(
        source={partition: offset for partition, offset in offsets.items() if isinstance(offset, int)},
        destination=ends.results,
        histories={
            partition: max(0, ranges[partition].end - offset)
            for partition, offset in offsets.items()
            if histories and isinstance(offset, int)
        },
        source_failures=failures,
        destination_failures=_texts(ends),
        out_of_range={
            partition: offset.detail for partition, offset in offsets.items() if isinstance(offset, OutOfRange)
        },
    )


def _ranges(
    source: Admin, begins: StartsAt, histories: bool
) -> tuple[dict[TopicPartition, Range], dict[TopicPartition, str]]:
    first = source.offsets_each((partition for partition, begin in begins.items() if needs_first(begin)), "earliest")
    end = source.offsets_each(
        (partition for partition, begin in begins.items() if histories or needs_end(begin)), "latest"
    )
    since = source.offsets_since_each(_times(begins))
    ranges = {
        partition: Range(
            first.results.get(partition, -1), end.results.get(partition, -1), since.results.get(partition, -1)
        )
        for partition in begins
    }
    return ranges, _texts(first) | _texts(end) | _texts(since)


def ranges_of(source: Admin, begins: StartsAt) -> tuple[dict[TopicPartition, Range], dict[TopicPartition, str]]:
    """Return the offsets that the source holds of partitions, from the first one to the end; and why some are
    unknown."""
    first, end = source.offsets_each(begins, "earliest"), source.offsets_each(begins, "latest")
    since = source.offsets_since_each(_times(begins))
    known = first.results.keys() & end.results.keys() - since.failures.keys()
    ranges = {tp: Range(first.results[tp], end.results[tp], since.results.get(tp, -1)) for tp in known}
    return ranges, _texts(first) | _texts(end) | _texts(since)


def _times(begins: StartsAt) -> dict[TopicPartition, int]:
    found = {partition: asked_time(begin) for partition, begin in begins.items()}
    return {partition: time_ms for partition, time_ms in found.items() if time_ms is not None}


def _texts(outcomes: Outcomes[TopicPartition, Any]) -> dict[TopicPartition, str]:
    return {partition: error.message for partition, error in outcomes.failures.items()}
