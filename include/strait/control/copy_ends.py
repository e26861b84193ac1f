"""Looks up how far the copies of partitions reach, by their last records."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Message

from strait.kafka.admin import Admin
from strait.kafka.reading import read_ranges
from strait.model import TopicPartition
from strait.planning.topics.move_in import (
    TAIL_RECORDS,
    Content,
    Logs,
    Match,
    NoMatch,
    TailSearch,
    fingerprints,
    first_to_search,
    oldest,
)

_READ_OFFSETS = 4 * TAIL_RECORDS  # markers of transactions take offsets, too
_WIDER = 16
_ENOUGH_AFTER = 100_000  # source records, behind the last one that the copy holds


class Side(NamedTuple):
    """A cluster: its administration and its client properties."""

    admin: Admin
    properties: Mapping[str, str]


class Found(NamedTuple):
    """What both logs of a partition hold, and what the copy's last records say; ``match`` None: it holds none."""

    logs: Logs
    match: Match | NoMatch | None


def look_at_copies(
    source: Side,
    destination: Side,
    copies: Mapping[TopicPartition, TopicPartition],
    stored: Mapping[TopicPartition, int | None],
    compacted: Collection[str] = (),
) -> dict[TopicPartition, Found]:
    """Find out for each source partition where its copy ends.

    Args:
        copies: source partition -> its copy.
        stored: source partition -> the position to search around; None or missing: from the first record on that may
            be meant.
        compacted: source topics that are.

    Raises:
        ClusterUnavailable, NotAuthorized: a partition of either side cannot be looked at.
    """
    logs = _logs(source, destination, copies)
    tails = _tails(destination, {copies[place]: log for place, log in logs.items()})
    searches = {
        place: TailSearch(fingerprints(tails[copy]), compacted=place.topic in compacted)
        for place, copy in copies.items()
        if tails[copy]
    }
    first = _first_possible(source, logs, {place: tails[copies[place]] for place in searches})
    ranges = {place: (first_to_search(stored.get(place), first[place]), logs[place].end) for place in searches}
    done: set[TopicPartition] = set()
    for message in read_ranges(source.properties, source.admin.cluster, ranges, done):
        place = TopicPartition(message.topic(), message.partition())
        searches[place].feed(message.offset(), _content(message).fingerprint())
        if searches[place].since_match > _ENOUGH_AFTER:
            done.add(place)
    return {place: Found(log, searches[place].result() if place in searches else None) for place, log in logs.items()}


def ends_of(destination: Side, copies: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The offset that the next record of each copy gets."""
    return dict(destination.admin.offsets(copies, "end"))


def _logs(
    source: Side, destination: Side, copies: Mapping[TopicPartition, TopicPartition]
) -> dict[TopicPartition, Logs]:
    first, end = source.admin.offsets(copies, "earliest"), source.admin.offsets(copies, "latest")
    there = list(copies.values())
    copy_first, readable = (destination.admin.offsets(there, where) for where in ("earliest", "latest"))
    copy_end = ends_of(destination, there)
    return {
        place: Logs(first[place], end[place], copy_first[copy], copy_end[copy], readable[copy])
        for place, copy in copies.items()
    }


def _first_possible(
    source: Side, logs: Mapping[TopicPartition, Logs], tails: Mapping[TopicPartition, Sequence[Content]]
) -> dict[TopicPartition, int]:
    """The first source offset at which a record as old as the oldest of the copy's last ones can be."""
    times = {place: time_ms for place, tail in tails.items() if (time_ms := oldest(tail)) is not None}
    since = source.admin.offsets_since_each(times).or_raise()
    ends = {place: logs[place].end if offset < 0 else offset for place, offset in since.items()}
    return {place: ends.get(place, logs[place].first) for place in tails}


def _tails(destination: Side, logs: Mapping[TopicPartition, Logs]) -> dict[TopicPartition, Sequence[Content]]:
    """The last records of each; none where nothing is left. Reads further back where it meets none."""
    found: dict[TopicPartition, Sequence[Content]] = dict.fromkeys(logs, ())
    span = _READ_OFFSETS
    left = {copy: log for copy, log in logs.items() if log.copy_first < log.copy_readable}
    while left:
        ranges = {
            copy: (max(log.copy_first, log.copy_readable - span), log.copy_readable) for copy, log in left.items()
        }
        contents: dict[TopicPartition, list[Content]] = {}
        for message in read_ranges(destination.properties, destination.admin.cluster, ranges):
            contents.setdefault(TopicPartition(message.topic(), message.partition()), []).append(_content(message))
        found |= {copy: records[-TAIL_RECORDS:] for copy, records in contents.items()}
        left = {copy: log for copy, log in left.items() if copy not in contents and ranges[copy][0] > log.copy_first}
        span *= _WIDER
    return found


def _content(message: Message) -> Content:
    return Content(message.timestamp()[1], message.key(), message.value(), tuple(message.headers() or ()))
