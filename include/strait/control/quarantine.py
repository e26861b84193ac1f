"""The quarantine of a link on its destination: its records, and resolving them: replaying them into their topics, or
discarding them.

Replayed records and their resolutions are written in the same transaction, so an interrupted transaction has no effect,
and no record is replayed twice. If two processes resolve at the same time, the first one fails with an error.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop
from typing import Any, NamedTuple

from confluent_kafka import Message

from strait.config import naming
from strait.control.other_links import other_links
from strait.control.registration import repair_writer
from strait.kafka.reading import log_range, read_topic
from strait.kafka.transactions import TransactionalWriter, chunks
from strait.state.link_handle import LinkHandle
from strait.state.quarantine_log import (
    Chosen,
    Contents,
    Entry,
    Headers,
    Outcome,
    original_headers,
    settlement,
)
from strait.state.quarantine_replay import in_source_order, targets
from strait.text import readable
from strait.waiting import unix_ms

_LOOKED_AT = 100  # newest offsets in which a settlement is searched for
_MOST_BYTES = 64 << 20


class Record(NamedTuple):
    """A quarantined record as it is on the source."""

    entry: Entry
    key: bytes | None
    value: bytes | None
    headers: Headers

    def readable(self, most_bytes: int, *, with_value: bool) -> dict[str, Any]:
        """Return it in human-readable form, each part up to ``most_bytes``; its value only if asked for.

        Returns: the entry's attributes; `key` and `value`, see `strait.text.Readable`, None for null; `headers`, pairs of a
            name and such a value; `value_bytes`, None for null.
        """
        shown = self.entry._asdict() | {
            "key": _readable(self.key, most_bytes),
            "headers": [[name, _readable(value, most_bytes)] for name, value in self.headers],
            "value_bytes": None if self.value is None else len(self.value),
        }
        return shown | ({"value": _readable(self.value, most_bytes)} if with_value else {})


class Quarantine:
    """Reads the quarantine. Every method raises ClusterUnavailable or NotAuthorized if the destination does not serve
    it.

    Args:
        keeps_settled: False: `contents` has only unresolved records. The amount that it reads grows with these, not with all
            that were ever quarantined. A record that is quarantined again after it was resolved then counts as unresolved.
    """

    def __init__(self, link: LinkHandle, *, keeps_settled: bool = True) -> None:
        self._link = link
        self._topic = naming.quarantine_topic(link.name)
        self._keeps_settled = keeps_settled
        self._contents = Contents(keeps_settled=keeps_settled)
        self._next = 0
        self._open_from = self._began = -1

    def contents(self) -> Contents:
        """Return all records that are committed now; each call reads only those that are new since the previous one. A
        link that has no such topic yet has no quarantined records."""
        if self._began < 0 and not self._keeps_settled:
            self.skip_settled()
        for message in self._read(self._next):
            if message.offset() < self._next:  # the topic was created again
                self._contents = Contents(keeps_settled=self._keeps_settled)
            self._contents.apply(message.offset(), message.key(), message.value(), _headers(message))
            self._next = message.offset() + 1
        return self._contents

    def skip_settled(self, most_offsets: int | None = None) -> None:
        """Have `contents` start at the first record that may be unresolved, by the newest settlement.

        Args:
            most_offsets: read at most this number of the newest offsets, and about 64 MB.
        """
        start, end = log_range(*self._link.destination, self._topic)
        newest, size, read = Contents(keeps_settled=False), 0, 0
        for message in self._read(max(start, end - _LOOKED_AT)):
            newest.apply(message.offset(), message.key(), message.value(), _headers(message))
            size, read = size + len(message), read + 1
        self._open_from = self._next = max(start, newest.open_from)
        if most_offsets is not None:
            fitting = _MOST_BYTES * read // size if size else most_offsets
            self._next = max(self._next, end - min(most_offsets, max(_LOOKED_AT, fitting)))
        self._began = self._next

    @property
    def unread(self) -> int:
        """Number of offsets before those that `contents` has read which may hold unresolved records."""
        return max(0, self._began - max(self._open_from, self._contents.open_from))

    def open_places(self) -> tuple[list[int], int]:
        """Return the offsets of the unresolved records among those that were read, and the offset after these."""
        return [entry.at for entry in self._contents.entries() if not entry.settled], self._next

    def unsettled(self, chosen: Chosen) -> list[Entry]:
        """Return the chosen entries that are unresolved."""
        return [entry for entry in self.contents().entries() if chosen.includes(entry) and not entry.settled]

    def targets(self, entries: Sequence[Entry], to: str | None) -> dict[str, str]:
        """Return source topic -> the destination topic to replay into, according to the current plans; ``to``: a topic
        to use instead.

        Raises (besides): ConfigError with every reason against it.
        """
        with self._link.state("plan") as state:
            state.catch_up()
            plans = list(state.plans.values())
        unread: Mapping[str, str] = {}
        if to is not None:
            others = other_links(*self._link.destination, self._link.name)
            plans += [plan for of_link in others.plans.values() for plan in of_link]
            unread = others.unread
        there = self._link.admin("destination").observe(lambda _: False).topics
        return targets(entries, to, plans, there, unread)

    def records(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Message]]:
        """Yield the entries with their quarantined records, in the order of the topic."""
        wanted = {entry.at: entry for entry in entries}
        for message in self._read(min(wanted)) if wanted else ():
            entry = wanted.pop(message.offset(), None)
            if entry is not None:
                yield entry, message
            if not wanted:
                return

    def record(self, at: int) -> "Record | None":
        """Return the quarantined record at this offset of the quarantine topic; None if there is none."""
        for message in self._read(at):
            contents = Contents()
            contents.apply(message.offset(), message.key(), message.value(), _headers(message))
            entry = next(iter(contents.entries()), None)
            if entry is None or entry.at != at:
                return None
            return Record(entry, message.key(), message.value(), original_headers(_headers(message)))
        return None

    @contextlib.contextmanager
    def settling(self) -> Iterator["Settling"]:
        """Become the only process that resolves entries; results of `contents` from now on stay valid until another
        process takes over. Replayed records are registered as the link's, so that a link in the opposite direction does
        not copy them back.

        Raises:
            PlanConflict: another process has taken over; every record that was written is resolved.
            StateError: the registrations cannot be read.
        """
        with repair_writer(
            self._link.admin("destination"),
            self._link.name,
            naming.quarantine_transactional_id(self._link.name),
            doing="taking over the quarantine",
            taken_over="somebody else settles the quarantine now",
            hint="list it again to see what is left",
        ) as writer:
            yield Settling(writer, self)

    @property
    def topic(self) -> str:
        return self._topic

    def _read(self, first: int) -> Iterator[Message]:
        # If resolved records were deleted, the topic starts after them.
        return read_topic(*self._link.destination, self._topic, first=first)


class Settling:
    """One process's turn at resolving, over after its first error. Each transaction has a few hundred records."""

    def __init__(self, writer: TransactionalWriter, quarantine: Quarantine) -> None:
        self._writer = writer
        self._quarantine = quarantine
        self._settled: set[int] = set()
        self._open: list[int] = []
        self._read_to = 0

    def replay(self, entries: Sequence[Entry], into: Mapping[str, str]) -> int:
        """Write the original records, each into its own partition of another topic; return the number of records.

        Args:
            into: source topic -> topic to write into.

        Raises:
            ClusterError: one of them was rejected again; entries that were resolved before stay resolved.
        """
        self._begin()
        done = 0
        for chunk in chunks(in_source_order(entries), lambda entry: entry.bytes):
            messages = dict(self._quarantine.records(chunk))
            with self._writer.transaction("replaying"):
                for entry, message in ((entry, messages[entry]) for entry in chunk if entry in messages):
                    target = into[entry.topic]
                    doing = f"replaying {entry} into {target}"
                    headers = original_headers(_headers(message))
                    self._writer.produce(
                        doing,
                        topic=target,
                        partition=entry.partition,
                        timestamp=entry.timestamp_ms,
                        key=message.key(),
                        value=message.value(),
                        headers=headers,
                    )
                    self._settle(entry, "replayed")
            done += len(messages)
        return done

    def drop(self, entries: Sequence[Entry]) -> int:
        """Discard records; return the number of records. They stay in the topic, marked as discarded."""
        self._begin()
        for chunk in chunks(entries, lambda _: 0):
            with self._writer.transaction("dropping"):
                for entry in chunk:
                    self._settle(entry, "dropped")
        return len(entries)

    def _begin(self) -> None:
        self._open, self._read_to = self._quarantine.open_places()
        heapify(self._open)

    def _settle(self, entry: Entry, outcome: Outcome) -> None:
        self._settled.add(entry.at)
        while self._open and self._open[0] in self._settled:
            heappop(self._open)
        open_from = self._open[0] if self._open else self._read_to
        headers = settlement(entry.at, outcome, unix_ms(), open_from)
        self._writer.produce(f"settling {entry}", topic=self._quarantine.topic, partition=0, headers=headers)


def _headers(message: Message) -> Headers:
    return message.headers() or []


def _readable(data: bytes | None, most_bytes: int) -> dict[str, Any] | None:
    found = readable(data, most_bytes)
    return None if found is None else found._asdict()
