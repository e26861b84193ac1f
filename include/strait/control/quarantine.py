"""The quarantine of a link on its destination: what is quarantined there, and settling it: writing it where it belongs,
or letting it go.

Replayed records and their settlements are written in one transaction, so a replay that is cut off is as if it had not
begun, and no record is replayed twice. Of two people who settle at once, the one who came first is told so.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence

from confluent_kafka import Message

from strait.config import naming
from strait.control.registration import repair_writer
from strait.kafka.admin import Admin
from strait.kafka.reading import log_range, read_topic
from strait.kafka.transactions import TransactionalWriter, chunks
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
from strait.state.reader import StateReader


class Quarantine:
    """Reads it. Every method raises ClusterUnavailable or NotAuthorized where the destination does not serve.

    Args:
        keeps_settled: False: of records that were replayed or dropped nothing is kept in memory, and `contents` does not
            have them.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str, link: str, *, keeps_settled: bool = True) -> None:
        self._properties = properties
        self._cluster = cluster
        self._link = link
        self._topic = naming.quarantine_topic(link)
        self._keeps_settled = keeps_settled
        self._contents = Contents(keeps_settled=keeps_settled)
        self._next = 0

    def contents(self) -> Contents:
        """All that is committed now; each call reads only what is new since the one before. A link that has no such
        topic yet keeps nothing aside."""
        for message in self._read(self._next):
            if message.offset() < self._next:  # the topic was created again
                self._contents = Contents(keeps_settled=self._keeps_settled)
            self._contents.apply(message.offset(), message.key(), message.value(), _headers(message))
            self._next = message.offset() + 1
        return self._contents

    def skip_to_newest(self, offsets: int) -> int:
        """Read no more than that many of the newest offsets; return how many are left unread before them."""
        first, end = log_range(self._properties, self._cluster, self._topic)
        self._next = max(first, end - offsets)
        return self._next - first

    def unsettled(self, chosen: Chosen) -> list[Entry]:
        """Those of the chosen entries that nobody has settled."""
        return [entry for entry in self.contents().entries() if chosen.includes(entry) and not entry.settled]

    def targets(self, entries: Sequence[Entry], to: str | None) -> dict[str, str]:
        """Source topic -> the destination topic to replay into, by the plans in force; ``to``: a topic named instead.

        Raises (besides): ConfigError with every reason why not.
        """
        with StateReader(self._properties, self._cluster, self._link, follow=("plan",)) as state:
            state.catch_up()
            plans = list(state.plans.values())
        there = Admin(self._properties, self._cluster).observe(lambda _: False).topics
        return targets(entries, to, plans, there)

    def records(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Message]]:
        """The entries with what is kept of them, in the order of the topic."""
        wanted = {entry.at: entry for entry in entries}
        for message in self._read(min(wanted)) if wanted else ():
            entry = wanted.pop(message.offset(), None)
            if entry is not None:
                yield entry, message
            if not wanted:
                return

    @contextlib.contextmanager
    def settling(self) -> Iterator["Settling"]:
        """Become the one who settles; what `contents` says from now on stays true until somebody else does. What is
        replayed is registered as the link's, so that it does not come back by a link in the other direction.

        Raises:
            PlanConflict: somebody else settles since; nothing was written that is not settled.
            StateError: the registrations cannot be read.
        """
        with repair_writer(
            Admin(self._properties, self._cluster),
            self._properties,
            self._link,
            naming.quarantine_transactional_id(self._link),
            doing="taking over the quarantine",
            taken_over="somebody else settles the quarantine now",
            hint="list it again to see what is left",
        ) as writer:
            yield Settling(writer, self)

    @property
    def topic(self) -> str:
        return self._topic

    def _read(self, first: int) -> Iterator[Message]:
        # Where records were deleted that are settled, it begins behind them.
        return read_topic(self._properties, self._cluster, self._topic, first=first)


class Settling:
    """One person's turn at settling, over after its first error. A few hundred records go into each transaction."""

    def __init__(self, writer: TransactionalWriter, quarantine: Quarantine) -> None:
        self._writer = writer
        self._quarantine = quarantine

    def replay(self, entries: Sequence[Entry], into: Mapping[str, str]) -> int:
        """Write the records as they were, each into its own partition of another topic; return how many.

        Args:
            into: source topic -> topic to write into.

        Raises:
            ClusterError: one of them was refused again; what was settled before stays settled.
        """
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
        """Let records go; return how many. They stay in the topic, marked."""
        for chunk in chunks(entries, lambda _: 0):
            with self._writer.transaction("dropping"):
                for entry in chunk:
                    self._settle(entry, "dropped")
        return len(entries)

    def _settle(self, entry: Entry, outcome: Outcome) -> None:
        headers = settlement(entry.at, outcome, time.time_ns() // 1_000_000)
        self._writer.produce(f"settling {entry}", topic=self._quarantine.topic, partition=0, headers=headers)


def _headers(message: Message) -> Headers:
    return message.headers() or []
