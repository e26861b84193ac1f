"""Reading the quarantine topic: quarantined records, and which of them were resolved. Pure.

The outcome for a quarantined record is another record of the topic, a *settlement*, without key and value; its headers
name the offset that it resolves, and an offset before which every record is resolved by then: readers of unresolved
records start there. Nothing is ever removed from the topic.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from strait.config.route_names import is_meant
from strait.state.quarantine_records import PREFIX

Outcome = Literal["replayed", "dropped"]
Headers = Sequence[tuple[str, bytes | None]]

_ADDED = ("topic", "partition", "offset", "timestamp_ms", "destination", "reason", "detail", "quarantined_at_ms")
_OUTCOMES: Mapping[str, Outcome] = {"replayed": "replayed", "dropped": "dropped"}
_SETTLEMENT = ("settles", "outcome", "settled_at_ms")
_OPEN_FROM = PREFIX + "open_from"  # before those of `_SETTLEMENT`: earlier versions ignore it there


class Entry(NamedTuple):
    """One quarantined record.

    Attributes:
        at: its offset in the quarantine topic.
        topic, partition, offset: its source coordinates.
        settled: its outcome; "" until it is resolved.
    """

    at: int
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    destination: str
    reason: str
    detail: str
    quarantined_at_ms: int
    bytes: int
    settled: Outcome | Literal[""] = ""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} offset {self.offset}"


class Chosen(NamedTuple):
    """A selection of entries; None: any."""

    topic: str | None = None
    partition: int | None = None
    reason: str | None = None

    def includes(self, entry: Entry) -> bool:
        return (self.topic is None or is_meant(self.topic, entry.topic)) and all(
            wanted in (None, found)
            for wanted, found in (
                (self.partition, entry.partition),
                (self.reason, entry.reason),
            )
        )


class Contents:
    """The content of the topic, added record by record. A record that several slots quarantined is one entry.

    ``unknown``: offset -> error, for a record that Strait did not write. ``keeps_settled`` False: a resolved entry is
    dropped, except for its identity, which shows that it was resolved. ``open_from``: every record before this offset is
    resolved, by the newest settlement; 0: that is not known.
    """

    def __init__(self, *, keeps_settled: bool = True) -> None:
        self._keeps_settled = keeps_settled
        self.unknown: dict[int, str] = {}
        self.open_from = 0
        self._entries: dict[bytes, Entry] = {}
        self._identity: dict[int, bytes] = {}
        self._settled: dict[bytes, Outcome] = {}

    def apply(self, at: int, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Add the record at offset ``at``."""
        try:
            added = _added(headers, _ADDED)
            if added is not None:
                self._take_entry(_entry(at, len(key or b"") + len(value or b""), added), key, value)
            elif (said := _added(headers, _SETTLEMENT)) is not None:
                self._take_settlement(said)
                self._take_open_from(headers[: -len(_SETTLEMENT)])
            else:
                raise ValueError("it has neither the headers of a quarantined record nor those of a settlement")
        except ValueError as error:
            self.unknown[at] = str(error)

    def _take_entry(self, entry: Entry, key: bytes | None, value: bytes | None) -> None:
        identity = _identity(entry, key, value)
        if not self._keeps_settled and identity in self._settled:
            return
        self._identity[entry.at] = identity
        self._entries.setdefault(identity, entry)

    def _take_settlement(self, said: dict[str, str]) -> None:
        at, outcome = int(said["settles"]), _OUTCOMES.get(said["outcome"])
        if outcome is None:
            raise ValueError(f"it settles a record with the unknown outcome {said['outcome']!r}")
        if at not in self._identity:
            return
        identity = self._identity[at]
        self._settled[identity] = outcome
        if not self._keeps_settled:
            del self._identity[at]
            self._entries.pop(identity, None)

    def _take_open_from(self, headers: Headers) -> None:
        for name, value in headers:
            if name == _OPEN_FROM:
                self.open_from = max(self.open_from, int(value or b"0"))

    def entries(self) -> list[Entry]:
        """Return all entries, in the order in which they were quarantined."""
        first = 0 if self._keeps_settled else self.open_from  # an earlier one repeats an entry that is not known
        entries = ((key, entry) for key, entry in self._entries.items() if entry.at >= first)
        return [entry._replace(settled=self._settled.get(key, "")) for key, entry in entries]


def original_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return the record's own headers: those before the added ones."""
    return list(headers[: -len(_ADDED)])


def settlement(at: int, outcome: Outcome, now_ms: int, open_from: int = 0) -> list[tuple[str, bytes | None]]:
    """Return the headers of the settlement of the record at offset ``at``; ``open_from``: with it, every record before
    this offset is resolved."""
    said = zip(_SETTLEMENT, (at, outcome, now_ms), strict=True)
    return [(_OPEN_FROM, b"%d" % open_from), *((PREFIX + name, str(value).encode()) for name, value in said)]


def _added(headers: Headers, names: Sequence[str]) -> dict[str, str] | None:
    """Return the last headers if they have exactly these names, else None. Those before may be the record's own."""
    last = headers[-len(names) :]
    if [name for name, _ in last] != [PREFIX + name for name in names]:
        return None
    return {name.removeprefix(PREFIX): (value or b"").decode() for name, value in last}


def _entry(at: int, size: int, added: dict[str, str]) -> Entry:
    return Entry(
        at=at,
        topic=added["topic"],
        partition=int(added["partition"]),
        offset=int(added["offset"]),
        timestamp_ms=int(added["timestamp_ms"]),
        destination=added["destination"],
        reason=added["reason"],
        detail=added["detail"],
        quarantined_at_ms=int(added["quarantined_at_ms"]),
        bytes=size,
    )


def _identity(entry: Entry, key: bytes | None, value: bytes | None) -> bytes:
    place = (
        entry.topic,
        entry.partition,
        entry.offset,
        entry.timestamp_ms,
        entry.destination,
        key is None,
        value is None,
    )
    digest = hashlib.sha256(repr(place).encode())
    for part in (key or b"", value or b""):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()
