"""Start offset of a partition that another tool has replicated so far. Pure.

The position that a tool has stored lags its replicated records, because it stores positions only from time to time; for
the same reason it replicates records twice after a restart. So the destination log is the reference: the source record
that equals the last record of the destination partition is the last one that was replicated.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from strait.text import plural

Verdict = Literal["ready", "nothing", "refused"]

TAIL_RECORDS = 100
"""Number of last records of the destination partition that are compared with the source."""

MOST_AGAIN = 1_000_000
"""Maximum number of records of a destination partition that are compared with the source if the tool may have
replicated them again: up to 300 MB."""

_MOST_EQUAL = 1000
_DELETED = "all records of the destination partition are deleted, so the stored position cannot be checked"


class Content(NamedTuple):
    """The fields in which a replicated record equals the source record."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()

    def fingerprint(self) -> bytes:
        """Return a digest that is equal for equal records, and for no others."""
        digest = hashlib.blake2b(str(self.timestamp_ms).encode(), digest_size=16)
        for part in (self.key, self.value, *(part for name, value in self.headers for part in (name.encode(), value))):
            digest.update(b"-" if part is None else b"%d:" % len(part))
            digest.update(part or b"")
        return digest.digest()


class _Found(NamedTuple):
    """A source record that is among the destination's last ones. ``number``: its index among the records that were
    read."""

    number: int
    offset: int
    fingerprint: bytes


class Match(NamedTuple):
    """``offset``: the source offset after the last record that was replicated. ``equal``: number of records at the end
    of the destination partition that are consecutive in the source, too. ``twice``: number of records after them that
    the destination has from an earlier pass of the tool. ``uncommitted``: the tool has replicated records of aborted or
    open transactions, too."""

    offset: int
    equal: int
    twice: int = 0
    uncommitted: bool = False


class NoMatch(NamedTuple):
    """Why the destination's last records do not determine the offset. ``likely``: the start offset if an operator has
    compared the topics."""

    detail: str
    likely: int | None = None


class TailSearch:
    """Searches the source, record by record, for the end of the destination partition.

    Args:
        tail: fingerprints of the destination's last records, in order; at least one.
        compacted: whether the source is compacted. It may have lost the last records that were replicated, but none
            between two that it still has, so records at the end of the tail that it does not have are skipped.
    """

    def __init__(self, tail: Sequence[bytes], *, compacted: bool = False) -> None:
        self._tail = tuple(tail)
        self._compacted = compacted
        self._by_number: dict[int, _Found] = {}
        self._by_fingerprint: dict[bytes, list[_Found]] = {one: [] for one in tail}
        self._crowded = False
        self._read = 0
        self._range: tuple[int, int] | None = None

    def feed(self, offset: int, fingerprint: bytes) -> None:
        """Process the next source record."""
        self._range = (self._range[0] if self._range else offset, offset)
        equal = self._by_fingerprint.get(fingerprint)
        if equal is not None and len(equal) < _MOST_EQUAL:
            found = _Found(self._read, offset, fingerprint)
            self._by_number[self._read] = found
            equal.append(found)
            self._crowded |= len(equal) == _MOST_EQUAL
        self._read += 1

    @property
    def since_match(self) -> int:
        """Number of records read after the last one that is in the tail; -1: the tail's last record was not found."""
        return self._read - 1 - self._newest().number if self._by_fingerprint[self._tail[-1]] else -1

    def result(self) -> Match | NoMatch:
        """Return the result, once all source records were processed."""
        end = len(self._tail)
        while self._compacted and end and not self._by_fingerprint[self._tail[end - 1]]:
            end -= 1
        ends = self._longest(end)
        if not ends:
            return NoMatch(f"no source record {self._searched()} equals the last record of the destination")
        last, equal = ends[0]
        if len(ends) > 1 or self._crowded:
            either = f"records at source offsets {last.offset} and {self._newest().offset} are equal"
            return NoMatch(f"{either}, and either may be the last one copied")
        return self._furthest(last, equal, end - equal)

    def _furthest(self, last: _Found, equal: int, end: int) -> Match | NoMatch:
        """Return the match at the furthest source record that the destination has.

        A restarted tool replicates again from its stored position. If it stopped before it reached its earlier
        progress, the destination log holds later source records than its last one, ahead of those that were replicated
        twice.
        """
        held = {last.number}
        while end:
            found, many = next(iter(self._longest(end)), (last, 1))  # a record that the source does not have is skipped
            held.update(range(found.number + 1 - many, found.number + 1))
            end -= many
        furthest = max(held)
        if not held.issuperset(range(last.number, furthest)):
            there = self._by_number[furthest].offset
            return NoMatch(f"the destination has the record of source offset {there}, but not all before it")
        return Match(self._by_number[furthest].offset + 1, equal, furthest - last.number)

    def _longest(self, end: int) -> list[tuple[_Found, int]]:
        """Return the source records that equal the tail's record before ``end`` and have the most equal records before
        them, each with the number of equal records."""
        ends = [(found, self._equal(found, end)) for found in self._by_fingerprint[self._tail[end - 1]]] if end else []
        longest = max((equal for _, equal in ends), default=0)
        return [(found, equal) for found, equal in ends if equal == longest]

    def _equal(self, found: _Found, end: int) -> int:
        for many in range(end):
            before = self._by_number.get(found.number - many)
            if before is None or before.fingerprint != self._tail[end - 1 - many]:
                return many
        return end

    def _newest(self) -> _Found:
        """Return the last one of all that were found; at least one was."""
        return next(reversed(self._by_number.values()))

    def _searched(self) -> str:
        return "that is left" if self._range is None else f"from offset {self._range[0]} to {self._range[1]}"


def closer(committed: Match | NoMatch, uncommitted: Match | NoMatch) -> Match | NoMatch:
    """Return the better match of the same destination records: among the source's committed records, or among all of
    them. A tool that reads with the isolation level of Kafka's consumers has replicated all of them.

    If both have as many equal records, no aborted one is among these, and the further match includes records
    from before a restart of the tool.
    """
    if isinstance(uncommitted, NoMatch):
        return committed
    if isinstance(committed, Match) and (committed.equal, committed.offset) >= (uncommitted.equal, uncommitted.offset):
        return committed
    return uncommitted._replace(uncommitted=True)


def too_much_again(since: int, before: Match | NoMatch) -> NoMatch:
    """Return no match for a partition whose records from destination offset ``since`` on may have been replicated
    again, since these are too many to compare with the source. ``before``: the result for its last records."""
    detail = f"from destination offset {since} on, more than {plural(MOST_AGAIN, 'record')} may be from before a restart of the tool"
    return NoMatch(detail, before.offset if isinstance(before, Match) else before.likely)


class Logs(NamedTuple):
    """First offset and end of both partitions, including records of open transactions. ``copy_readable``: the last
    stable offset of the destination partition."""

    first: int
    end: int
    copy_first: int
    copy_end: int
    copy_readable: int


class Begin(NamedTuple):
    """``offset``: the first source offset to replicate, or None; ``forced``: the offset that applies with `--force`
    only."""

    verdict: Verdict
    offset: int | None
    detail: str
    forced: int | None = None


def first_to_search(stored: int | None, first: int) -> int:
    """Return the source offset at which the search starts: 10 * `TAIL_RECORDS` offsets before the stored position if
    there is one, but not before ``first``.

    Args:
        first: the first source offset that may hold one of the destination's last records.
    """
    return first if stored is None else max(first, stored - 10 * TAIL_RECORDS)


def oldest(contents: Iterable[Content]) -> int | None:
    """Return the oldest timestamp of the destination's last records, in Unix ms; None if one of them has none. No
    source record before the first with this timestamp or a later one can equal any of them."""
    first = min(content.timestamp_ms for content in contents)
    return None if first < 0 else first


def where_to_begin(stored: int | None, logs: Logs, found: Match | NoMatch | None) -> Begin:
    """Judge one partition.

    Args:
        stored: the position that the tool has stored.
        found: the result for the destination's last records; None: it holds no record.
    """
    force = max(stored, logs.first) if stored is not None and stored <= logs.end else None
    if logs.copy_readable < logs.copy_end:
        detail = f"a transaction is open at destination offset {logs.copy_readable}; wait until it has ended"
        return Begin("refused", None, detail)
    if isinstance(found, Match):
        distance = "" if stored is None or found.offset == stored else f", {_distance(found.offset - stored)}"
        twice = f"; the tool replicated {plural(found.twice, 'record')} before it twice" if found.twice else ""
        raw = "; the tool replicated records of aborted or open transactions, too" if found.uncommitted else ""
        return Begin("ready", found.offset, f"last replicated source offset {found.offset - 1}{distance}{twice}{raw}")
    if isinstance(found, NoMatch):
        forced = force if found.likely is None else found.likely
        how = "" if forced is not None else "; no position is stored that `--force` could use: name one in a file"
        return Begin("refused", None, f"{found.detail}{how}", forced)
    if stored is None:
        if logs.copy_end:
            return Begin(
                "refused", None, "no position is stored, and all records of the destination partition are deleted"
            )
        return Begin(
            "nothing", None, "no position is stored, and the destination partition is empty: it starts as a new one"
        )
    if logs.copy_end:
        return Begin("refused", None, _DELETED, force)
    if stored > logs.first:
        return Begin("refused", None, f"the destination partition is empty, but the stored position is {stored}", force)
    return Begin(
        "ready",
        logs.first,
        "the destination partition is empty, and the source has no record before the stored position",
    )


def _distance(records: int) -> str:
    return f"{plural(abs(records), 'offset')} {'after' if records > 0 else 'before'} the stored position"


def fingerprints(contents: Iterable[Content]) -> tuple[bytes, ...]:
    """Return the fingerprint of each record."""
    return tuple(content.fingerprint() for content in contents)
