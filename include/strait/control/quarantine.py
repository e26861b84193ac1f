"""The quarantine of a link on its destination: what is quarantined there, and settling it: writing it where it belongs,
or letting it go.

Replayed records and their settlements are written in one transaction, so a replay that is cut off is as if it had not
begun, and no record is replayed twice. Of two people who settle at once, the one who came first is told so.
"""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from strait.config import naming
from strait.errors import ClusterUnavailable, PlanConflict, StraitError
from strait.kafka.clients import Watch, ask, make_producer
from strait.kafka.reading import read_topic
from strait.state.quarantine_log import (
    Contents,
    Entry,
    Headers,
    Outcome,
    original_headers,
    settlement,
)
from strait.state.writer import QUARANTINED_BYTES

_SECONDS = 60.0  # that a step may take
_TRANSACTION_TIMEOUT_MS = 90_000
_CHUNK_BYTES = 16 << 20
_CHUNK_RECORDS = 500


class Quarantine:
    """Reads it. Every method raises ClusterUnavailable or NotAuthorized where the destination does not serve."""

    def __init__(self, properties: Mapping[str, str], cluster: str, link: str) -> None:
        self._properties = properties
        self._cluster = cluster
        self._link = link
        self._topic = naming.quarantine_topic(link)

    def contents(self) -> Contents:
        """All that is committed now. A link that has no such topic yet keeps nothing aside."""
        contents = Contents()
        for message in self._read(0):
            contents.apply(message.offset(), message.key(), message.value(), _headers(message))
        return contents

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
        """Become the one who settles; what `contents` says from now on stays true until somebody else does.

        Raises:
            PlanConflict: somebody else settles since; nothing was written that is not settled.
        """
        watch = Watch(self._cluster)
        producer = make_producer(
            self._properties,
            watch,
            transactional_id=naming.quarantine_transactional_id(self._link),
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            message_max_bytes=QUARANTINED_BYTES,
            compression_type="lz4",
        )
        settling = Settling(producer, watch, self)
        try:
            settling.step("taking over the quarantine", producer.init_transactions)
            yield settling
        finally:
            with warnings.catch_warnings():  # it tries to abort even what a fencing has ended, and says so
                warnings.simplefilter("ignore", RuntimeWarning)
                producer.close()

    @property
    def topic(self) -> str:
        return self._topic

    def _read(self, first: int) -> Iterator[Message]:
        # Where records were deleted that are settled, it begins behind them.
        return read_topic(self._properties, self._cluster, self._topic, first=first)


class Settling:
    """One person's turn at settling, over after its first error. A few hundred records go into each transaction."""

    def __init__(self, producer: Producer, watch: Watch, quarantine: Quarantine) -> None:
        self._producer = producer
        self._watch = watch
        self._quarantine = quarantine
        self._refused: StraitError | None = None

    def replay(self, entries: Sequence[Entry], into: Mapping[str, str]) -> int:
        """Write the records as they were, each into its own partition of another topic; return how many.

        Args:
            into: source topic -> topic to write into.

        Raises:
            ClusterError: one of them was refused again; what was settled before stays settled.
        """
        done = 0
        for chunk in _chunks(self._quarantine.records(entries)):
            with self._transaction("replaying"):
                for entry, message in chunk:
                    target = into[entry.topic]
                    doing = f"replaying {entry} into {target}"
                    headers = original_headers(_headers(message))
                    place = {"topic": target, "partition": entry.partition, "timestamp": entry.timestamp_ms}
                    self._produce(doing, key=message.key(), value=message.value(), headers=headers, **place)
                    self._settle(entry, "replayed")
            done += len(chunk)
        return done

    def drop(self, entries: Sequence[Entry]) -> int:
        """Let records go; return how many. They stay in the topic, marked."""
        for first in range(0, len(entries), _CHUNK_RECORDS):
            with self._transaction("dropping"):
                for entry in entries[first : first + _CHUNK_RECORDS]:
                    self._settle(entry, "dropped")
        return len(entries)

    def step(self, doing: str, call: Callable[[float], None]) -> None:
        """Take one step of the transaction, again while librdkafka says that it may be tried again."""

        def served(seconds: float) -> None:
            with _fatal_error_itself():
                try:
                    call(seconds)
                finally:
                    self._producer.poll(0)  # librdkafka tells what is wrong with a connection only to those who poll

        ask(self._watch, doing, _SECONDS, served)

    @contextlib.contextmanager
    def _transaction(self, doing: str) -> Iterator[None]:
        self._refused = None
        self.step(doing, lambda _: self._producer.begin_transaction())
        try:
            yield
            self.step(doing, self._commit)
        except StraitError as error:
            raise self._given_up(doing, error) from error

    def _given_up(self, doing: str, error: StraitError) -> StraitError:
        """Take the transaction back; return why, as well as it can be known: which record was refused is heard last, and
        that somebody took over shows at first in one of many ways, but at last in this step."""
        try:
            self.step(doing, self._producer.abort_transaction)
        except PlanConflict as conflict:  # whoever took over has ended the transaction
            error = conflict
        except StraitError:
            pass  # the cluster is away, and the broker ends the transaction after its timeout
        if isinstance(error, PlanConflict):
            what = f"cluster {self._watch.cluster}: {doing}: somebody else settles the quarantine now"
            return PlanConflict(what, hint="list it again to see what is left")
        return self._refused or error

    def _commit(self, seconds: float) -> None:
        if waiting := self._producer.flush(seconds):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{waiting} records are not acknowledged"))  # noqa: SLF001
        self._producer.commit_transaction(seconds)

    def _settle(self, entry: Entry, outcome: Outcome) -> None:
        headers = settlement(entry.at, outcome, time.time_ns() // 1_000_000)
        self._produce(f"settling {entry}", topic=self._quarantine.topic, partition=0, headers=headers)

    def _produce(self, doing: str, **record: Any) -> None:
        def done(error: KafkaError | None, _: Message) -> None:
            if error is not None and self._refused is None and error.code() != KafkaError._PURGE_QUEUE:  # noqa: SLF001
                self._refused = self._watch.translate(error, doing)

        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                self._producer.produce(on_delivery=done, **record)
            except BufferError:  # the local queue is full
                if time.monotonic() > deadline:
                    raise ClusterUnavailable(self._watch.cluster, f"{doing}: not acknowledged in time") from None
                with _fatal_error_itself():
                    self._producer.poll(0.1)
            except KafkaException as exception:
                raise self._watch.translate(exception, doing) from exception
            else:
                return


@contextlib.contextmanager
def _fatal_error_itself() -> Iterator[None]:
    """confluent-kafka raises a fatal error from inside a poll and then still calls back, which Python takes amiss."""
    try:
        yield
    except SystemError as error:
        inner: BaseException | None = error
        while inner is not None and not isinstance(inner, KafkaException):
            inner = inner.__cause__ or inner.__context__
        if inner is None:
            raise
        raise inner from None


def _chunks(records: Iterable[tuple[Entry, Message]]) -> Iterator[list[tuple[Entry, Message]]]:
    chunk: list[tuple[Entry, Message]] = []
    size = 0
    for entry, message in records:
        chunk.append((entry, message))
        size += entry.bytes
        if len(chunk) == _CHUNK_RECORDS or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _headers(message: Message) -> Headers:
    return message.headers() or []
