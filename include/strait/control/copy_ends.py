"""Determines how far destination partitions reach in their sources, by their last records."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Message

from strait.kafka.admin import Admin
from strait.kafka.reading import read_ranges
from strait.model import TopicPartition
from strait.planning.topics.move_in import (
    MOST_AGAIN,
    TAIL_RECORDS,
    Content,
    Logs,
    Match,
    NoMatch,
    TailSearch,
    closer,
    fingerprints,
    first_to_search,
    oldest,
    too_much_again,
)

_READ_OFFSETS = 4 * TAIL_RECORDS  # markers of transactions take offsets, too
_WIDER = 16
_ENOUGH_AFTER = 100_000  # source records after the last one that the destination holds


class Found(NamedTuple):
    """The offsets of both logs of a partition, and the match of the destination's last records in the source; ``match``
    None: the destination holds none."""

    logs: Logs
    match: Match | NoMatch | None


def look_at_copies(
    source: Admin,
    destination: Admin,
    copies: Mapping[TopicPartition, TopicPartition],
    stored: Mapping[TopicPartition, int | None],
    compacted: Collection[str] = (),
) -> dict[TopicPartition, Found]:
    """Return the logs' offsets of each source partition, and the source offset up to which its destination partition
    reaches.

    Args:
        copies: source partition -> its destination partition.
        stored: source partition -> the position to search around; None or missing: from the first record on that may
            match.
        compacted: the source topics that are compacted.

    Raises:
        ClusterUnavailable, NotAuthorized: a partition of either side cannot be read.
    """
    look = _Look(source, destination, copies, _logs(source, destination, copies), stored, compacted)
    tails = look.tails()
    matches = look.search(tails)
    again = look.copied_again(matches, tails)
    while again:
        place, since = again.popitem()  # one after the other, since each may be large
        matches[place] = look.search_from(place, since, matches[place])
        again |= look.copied_again({place: matches[place]}, {place: _Tail(since, ())})
    return {place: Found(log, matches.get(place)) for place, log in look.logs.items()}


def ends_of(admin: Admin, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the offset that the next record of each partition gets."""
    return dict(admin.offsets(places, "end"))


def _logs(
    source: Admin, destination: Admin, copies: Mapping[TopicPartition, TopicPartition]
) -> dict[TopicPartition, Logs]:
    first, end = source.offsets(copies, "earliest"), ends_of(source, copies)
    there = list(copies.values())
    copy_first, readable = (destination.offsets(there, where) for where in ("earliest", "latest"))
    copy_end = ends_of(destination, there)
    return {
        place: Logs(first[place], end[place], copy_first[copy], copy_end[copy], readable[copy])
        for place, copy in copies.items()
    }


class _Tail(NamedTuple):
    """The last records of a destination partition: all from the offset ``first`` on."""

    first: int
    contents: Sequence[Content]


@dataclass(frozen=True, slots=True)
class _Look:
    """One search in both logs; see ``look_at_copies``."""

    source: Admin
    destination: Admin
    copies: Mapping[TopicPartition, TopicPartition]
    logs: Mapping[TopicPartition, Logs]
    stored: Mapping[TopicPartition, int | None]
    compacted: Collection[str]

    def tails(self) -> dict[TopicPartition, _Tail]:
        """Return source partition -> the last records of its destination partition, except for empty ones. Reads
        further back if a range of offsets holds no record."""
        found: dict[TopicPartition, _Tail] = {}
        span = _READ_OFFSETS
        left = {place for place, log in self.logs.items() if log.copy_first < log.copy_readable}
        while left:
            starts = {place: max(self.logs[place].copy_first, self.logs[place].copy_readable - span) for place in left}
            there = self._read_copies(starts)
            found |= {
                place: _Tail(records[0][0], [content for _, content in records])
                for place, records in ((place, records[-TAIL_RECORDS:]) for place, records in there.items())
            }
            left = {place for place in left if place not in there and starts[place] > self.logs[place].copy_first}
            span *= _WIDER
        return found

    def search(self, tails: Mapping[TopicPartition, _Tail]) -> dict[TopicPartition, Match | NoMatch]:
        """Return the match of these last records of destination partitions. The source is searched again, with aborted
        records, for those that are not all consecutive committed records of it."""
        found = self._search(tails, committed=True)
        in_part = {
            place: tail
            for place, tail in tails.items()
            if not (isinstance(match := found[place], Match) and match.equal == len(tail.contents))
        }
        every = self._search(in_part, committed=False) if in_part else {}
        return found | {place: closer(found[place], match) for place, match in every.items()}

    def _search(
        self, tails: Mapping[TopicPartition, _Tail], *, committed: bool
    ) -> dict[TopicPartition, Match | NoMatch]:
        searches = {
            place: TailSearch(fingerprints(tail.contents), compacted=place.topic in self.compacted)
            for place, tail in tails.items()
        }
        first = self._first_possible(tails)
        ranges = {
            place: (first_to_search(self.stored.get(place), first[place]), self.logs[place].end) for place in searches
        }
        done: set[TopicPartition] = set()
        for message in self._read_source(ranges, done, committed=committed):
            place = TopicPartition(message.topic(), message.partition())
            searches[place].feed(message.offset(), _content(message).fingerprint())
            if searches[place].since_match > _ENOUGH_AFTER:
                done.add(place)
        return {place: search.result() for place, search in searches.items()}

    def copied_again(
        self, matches: Mapping[TopicPartition, Match | NoMatch], tails: Mapping[TopicPartition, _Tail]
    ) -> dict[TopicPartition, int]:
        """Return the source partitions whose destination partition may hold records that follow its match, from before
        the tool was restarted; and the destination offset from which on these can be.

        A tool copies in order, so the destination would hold the source's next records, with their timestamps. If none
        of its records is as recent as they are, that is excluded.
        """
        found = {place: match for place, match in matches.items() if isinstance(match, Match)}
        times = {
            place: oldest(contents)
            for committed in (True, False)
            for place, contents in self._next_records(
                {place: match.offset for place, match in found.items() if match.uncommitted != committed},
                committed=committed,
            ).items()
        }
        asked = {self.copies[place]: time_ms for place, time_ms in times.items() if time_ms is not None}
        since = self.destination.offsets_since_each(asked).or_raise()
        starts = {
            place: self.logs[place].copy_first if time_ms is None else since[self.copies[place]]
            for place, time_ms in times.items()
        }
        return {place: start for place, start in starts.items() if 0 <= start < tails[place].first}

    def search_from(self, place: TopicPartition, since: int, before: Match | NoMatch) -> Match | NoMatch:
        """Return the match of all records of the destination partition from an offset on. ``before``: the match of
        fewer of them."""
        if self.logs[place].copy_readable - since > MOST_AGAIN:
            return too_much_again(since, before)
        records = self._read_copies({place: since})[place]
        return self.search({place: _Tail(since, [content for _, content in records])})[place]

    def _next_records(
        self, after: Mapping[TopicPartition, int], *, committed: bool
    ) -> dict[TopicPartition, list[Content]]:
        """Return the first source records from these offsets on; no entry for a partition that has none."""
        found: dict[TopicPartition, list[Content]] = {}
        done: set[TopicPartition] = set()
        ranges = {place: (offset, self.logs[place].end) for place, offset in after.items()}
        for message in self._read_source(ranges, done, committed=committed):
            place = TopicPartition(message.topic(), message.partition())
            contents = found.setdefault(place, [])
            contents.append(_content(message))
            if len(contents) >= TAIL_RECORDS:
                done.add(place)
        return found

    def _read_source(
        self, ranges: Mapping[TopicPartition, tuple[int, int]], done: Collection[TopicPartition], *, committed: bool
    ) -> Iterator[Message]:
        return read_ranges(*self.source.at, ranges, done, committed=committed)

    def _first_possible(self, tails: Mapping[TopicPartition, _Tail]) -> dict[TopicPartition, int]:
        """Return the first source offset at which a record as old as the oldest of the destination's last ones can
        be."""
        times = {place: time_ms for place, tail in tails.items() if (time_ms := oldest(tail.contents)) is not None}
        since = self.source.offsets_since_each(times).or_raise()
        newer = [place for place, offset in since.items() if offset < 0]  # than all records of ended transactions
        ends = {**since, **self.source.offsets(newer, "latest")}
        return {place: ends.get(place, self.logs[place].first) for place in tails}

    def _read_copies(self, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[tuple[int, Content]]]:
        """Return the records of destination partitions from these offsets on, each with its destination offset, by
        source partition."""
        places = {self.copies[place]: place for place in starts}
        ranges = {self.copies[place]: (start, self.logs[place].copy_readable) for place, start in starts.items()}
        found: dict[TopicPartition, list[tuple[int, Content]]] = {}
        for message in read_ranges(*self.destination.at, ranges):
            place = places[TopicPartition(message.topic(), message.partition())]
            found.setdefault(place, []).append((message.offset(), _content(message)))
        return found


def _content(message: Message) -> Content:
    return Content(message.timestamp()[1], message.key(), message.value(), tuple(message.headers() or ()))
