"""Which hours of a topic a link has replicated completely. Pure.

The *end* of an hour in a partition is the offset of the first source record whose timestamp is the end of the hour plus the
lateness, or later. A partition without such a record has its log's end instead, as it is once that time has passed: so an
idle partition delays nothing. The same holds if that record's timestamp is in the future, which is a wrong clock of
a producer: the records after it may belong to any hour. The hour is complete once every partition is replicated up to its end.

The records of an hour are those between the ends of the hour before and its own. So consecutive hours have every record
once, with any timestamp, and a record that arrives later than the lateness allows is in the hour in which it arrives.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from strait.model import TopicPartition
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.up_to import behind

HOUR_MS = 3_600_000
MOST_HOURS = 6
"""Number of hours that are looked at together. After an outage the others follow."""

_KEY = "%Y-%m-%dT%H:%M:%S"

PartitionEnds = Mapping[int, int]


class TopicEnds(NamedTuple):
    """The ends of one hour.

    Attributes:
        source_id: ID of the source topic that they were looked up in.
        ends: partition -> source offset.
    """

    source_id: str
    ends: PartitionEnds


class Told(NamedTuple):
    """The newest hour that had an event.

    Attributes:
        start_ms: of the hour.
        ends: its ends.
        there: partition -> the same on the destination; None: unknown.
    """

    start_ms: int
    ends: TopicEnds
    there: Mapping[int, int | None]


def key_of(start_ms: int) -> str:
    """Return the partition key of the hour with this start: its start in UTC, without a zone."""
    return datetime.fromtimestamp(start_ms / 1000, UTC).strftime(_KEY)


def start_of(key: str) -> int | None:
    """Return the start of the hour with this key, in ms since 1970; None: it is no key of an hour."""
    try:
        return round(datetime.strptime(key, _KEY).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return None


def first_start(now_ms: int, since_ms: int | None) -> int:
    """Return the start of the first hour of a topic that had no event."""
    return (now_ms if since_ms is None else since_ms) // HOUR_MS * HOUR_MS


def due_hours(next_ms: int, now_ms: int, lateness_ms: int, most: int = MOST_HOURS) -> list[int]:
    """Return the starts of the hours from ``next_ms`` on whose end, plus the lateness, has passed; oldest first."""
    over = (now_ms - lateness_ms) // HOUR_MS * HOUR_MS
    return list(range(next_ms, over, HOUR_MS)[:most])


def complete_hours(
    topic: str, hours: Sequence[tuple[int, TopicEnds]], source_id: str, rows: Iterable[PartitionStatus]
) -> list[int]:
    """Return the starts of the hours that are complete, up to the first one that is not.

    Args:
        hours: start and ends of each hour, oldest first.
        source_id: ID of the source topic that the plan replicates. Of a topic that was created again, nothing is
            replicated until the plan has the new one.
        rows: the partitions of the link.
    """
    rows = list(rows)
    found = []
    for start_ms, ends in hours:
        if ends.source_id != source_id:
            break
        places = {TopicPartition(topic, number): end for number, end in ends.ends.items()}
        if behind(places, rows):
            break
        found.append(start_ms)
    return found


def following(before: Told | None, ends: TopicEnds) -> TopicEnds:
    """Return the ends of an hour, none of them before that of the hour before: an open transaction may have hidden
    a record when that was looked up."""
    if before is None or before.ends.source_id != ends.source_id:
        return ends
    return ends._replace(ends={number: max(end, before.ends.ends.get(number, 0)) for number, end in ends.ends.items()})


def first_offsets(ends: TopicEnds, before: Told | None) -> dict[int, int | None]:
    """Return partition -> the offset of the first record of an hour on the destination; None: unknown. See `event_of`."""
    same = before if before is not None and before.ends.source_id == ends.source_id else None
    new = None if before is not None and same is None else 0  # its records may follow those of the topic before
    known = {} if same is None else {number: same.there.get(number) for number in same.ends.ends}
    return {number: known.get(number, new) for number in ends.ends}


def event_of(start_ms: int, ends: TopicEnds, there: Mapping[int, int | None], before: Told | None) -> dict[str, Any]:
    """Return the facts of one hour: `source` and `destination`, partition -> the offsets of the first record of the hour and
    of the first one after it; null: unknown.

    Args:
        ends: see `following`.
        there: partition -> the same on the destination.
        before: the hour before; None: the first one. Partitions that it does not have, and those of a topic that was
            created again, start with this one.
    """
    same = before if before is not None and before.ends.source_id == ends.source_id else None
    created_again = before is not None and same is None
    first = {} if same is None else same.ends.ends
    there_first = first_offsets(ends, before)
    return {
        "hour": key_of(start_ms),
        "source_id": ends.source_id,
        "created_again": created_again,
        "source": {str(number): [first.get(number, 0), end] for number, end in sorted(ends.ends.items())},
        "destination": {str(number): [there_first[number], there.get(number)] for number in sorted(ends.ends)},
    }


def told_by(event: Mapping[str, Any]) -> Told | None:
    """Return the hour of an event that `event_of` has made; None: it has another form."""
    try:
        start_ms = start_of(event["hour"])
        ends = {int(number): int(offsets[1]) for number, offsets in event["source"].items()}
        there = {int(number): offsets[1] for number, offsets in event["destination"].items()}
        known = start_ms is not None and all(end is None or isinstance(end, int) for end in there.values())
        return (
            Told(start_ms, TopicEnds(str(event["source_id"]), ends), there) if known and start_ms is not None else None
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None
