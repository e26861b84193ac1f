"""Whether a link has replicated its topics up to a moment on the source: a time, or an offset of each partition. Pure."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from strait.config.route_names import place_of
from strait.config.validation import did_you_mean
from strait.errors import ConfigError
from strait.json_text import value_of
from strait.model import TopicPartition
from strait.planning.status.rows import PartitionStatus
from strait.reasons import Reason
from strait.text import plural

NOW = "now"
_EPOCH, _MS = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_WHERE = "to"
_HINT = f'`{NOW}`, a time such as 2026-11-26T14:00Z, or offsets such as {{"orders": {{"0": 1200}}}}'

Ends = Mapping[TopicPartition, int]
"""Of each partition, the first source offset that need not be replicated."""


@dataclass(frozen=True, slots=True)
class UpTo:
    """A moment on the source. Without a time and without offsets: the present.

    Attributes:
        at_ms: records with earlier timestamps, in ms since 1970; see `strait.control.reaching` for late ones.
        ends: the offsets of the partitions that are asked for.
    """

    at_ms: int | None = None
    ends: Ends = field(default_factory=dict)

    @classmethod
    def parse(cls, value: object) -> "UpTo":
        """Parse `now`, a time, or offsets by topic and partition, which may be JSON. A time without a zone is in UTC.

        Raises:
            ConfigError: it is none of these.
        """
        if isinstance(value, datetime):
            return cls(at_ms=_ms(value))
        if isinstance(value, Mapping):
            return cls(ends=_ends(value))
        text = value.strip() if isinstance(value, str) else ""
        if text == NOW:
            return cls()
        if text.startswith("{"):
            return cls(ends=_ends(_object(text)))
        try:
            return cls(at_ms=_ms(datetime.fromisoformat(text)))
        except ValueError:
            raise ConfigError(_WHERE, [f"{value!r} is no moment"], hint=f"expected {_HINT}") from None

    def as_text(self) -> str:
        """Return text that `parse` accepts."""
        if self.ends:
            return json.dumps(by_topic(self.ends))
        return NOW if self.at_ms is None else (_EPOCH + self.at_ms * _MS).isoformat()


def by_topic(ends: Mapping[TopicPartition, Any]) -> dict[str, dict[str, Any]]:
    """Return values of partitions as JSON objects: topic -> partition -> value."""
    found: dict[str, dict[str, Any]] = {}
    for place in sorted(ends):
        found.setdefault(place.topic, {})[str(place.partition)] = ends[place]
    return found


def topics_to_reach(link: str, asked: Iterable[str], source: Iterable[str], planned: Iterable[str]) -> list[str]:
    """Return the topics to wait for: those that are asked for, else all that the link's plans have.

    Raises:
        ConfigError: the source lacks a topic that is asked for.
    """
    wanted, known = sorted(set(asked)), set(source)
    missing = [
        f"its source has no topic {topic!r}{did_you_mean(topic, known)}" for topic in wanted if topic not in known
    ]
    if missing:
        raise ConfigError(f"link {link}", missing)
    return wanted or sorted(set(planned))


def behind(ends: Ends, rows: Iterable[PartitionStatus]) -> dict[TopicPartition, str]:
    """Return the partitions that are not replicated up to their ends, each with its state, or the reason that it waits
    for. A partition that waits for an operator's decision is always among them, one whose copy has ended never."""
    found: dict[TopicPartition, list[PartitionStatus]] = defaultdict(list)
    for row in rows:
        place = TopicPartition(row.topic, -1 if row.partition is None else row.partition)
        for name in {place, place_of(place)}:
            found[name].append(row)
    left = {}
    for place, end in ends.items():
        of_place = found.get(place) or found.get(TopicPartition(place.topic, -1), [])
        if not of_place and end > 0:
            left[place] = "not in its plan"
        for row in of_place:  # several if the topic is divided
            if row.reason == Reason.FINISHED:
                continue  # nothing more is to be copied
            if row.needs_decision or (end > 0 and row.position < end):
                left[place] = row.reason or row.state
    return left


def progress_text(ends: Ends, rows: Iterable[PartitionStatus]) -> str:
    """Return how much is missing, as one line; "" if nothing is."""
    rows = list(rows)
    left = behind(ends, rows)
    if not left:
        return ""
    positions: dict[TopicPartition, int] = {}
    for row in (row for row in rows if row.partition is not None):
        for place in {named := TopicPartition(row.topic, row.partition or 0), place_of(named)}:
            positions[place] = min(row.position, positions.get(place, row.position))
    known = [ends[place] - positions[place] for place in left if positions.get(place, -1) >= 0]
    records = (
        f", {plural(sum(max(0, missing) for missing in known), 'offset')} behind" if len(known) == len(left) else ""
    )
    reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(Counter(left.values()).items()))
    first = min(left)
    return f"{len(left)} of {plural(len(ends), 'partition is', 'partitions are')} behind{records} ({reasons}); the first is {first}"


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = value_of(text)
    except ValueError as error:
        raise ConfigError(_WHERE, [f"is not JSON: {error}"], hint=f"expected {_HINT}") from None
    assert isinstance(found, Mapping)  # it starts with a brace
    return found


def _ends(value: Mapping[Any, Any]) -> dict[TopicPartition, int]:
    found, problems = {}, []
    for topic, partitions in value.items():
        for number, offset in partitions.items() if isinstance(partitions, Mapping) else [("", partitions)]:
            place = f"{topic}: {number}: {offset!r}"
            if not str(number).isdecimal() or not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
                problems.append(f"{place} is no partition with an offset")
            else:
                found[TopicPartition(str(topic), int(number))] = offset
    if problems or not found:
        raise ConfigError(_WHERE, problems or ["names no partition"], hint=f"expected {_HINT}")
    return found


def _ms(at: datetime) -> int:
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MS
