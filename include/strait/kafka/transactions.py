"""Writing records in transactions, by one process at a time: the next process that opens the writer takes over."""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from strait.errors import ClusterUnavailable, PlanConflict, StraitError
from strait.kafka.clients import Watch, ask, make_producer
from strait.kafka.verified import identify
from strait.text import plural

_SECONDS = 60.0  # time limit of a step
TRANSACTION_MS = 90_000
_FIRST_MS = 1  # earliest timestamp that librdkafka writes unchanged: 0 means now

_CHUNK_BYTES = 16 << 20
_CHUNK_RECORDS = 500

Item = TypeVar("Item")


class TransactionalWriter:
    """A transactional producer, not to be used after its first error.

    Args:
        taken_over: error text: the action of another process that has opened the same writer since.
        hint: the hint of that error.
    """

    def __init__(self, producer: Producer, watch: Watch, taken_over: str, hint: str) -> None:
        self._producer = producer
        self._watch = watch
        self._taken_over = taken_over
        self._hint = hint
        self._refused: StraitError | None = None

    @contextlib.contextmanager
    def transaction(self, doing: str) -> Iterator[None]:
        """Commit all records that are produced inside together, or none of them.

        Raises:
            PlanConflict: another process has taken over.
            ClusterUnavailable, NotAuthorized, ClusterError: the record that was rejected first is named.
        """
        self._refused = None
        self.step(doing, lambda _: self._producer.begin_transaction())
        try:
            yield
            self.step(doing, self._commit)
        except StraitError as error:
            raise self._given_up(doing, error) from error

    def produce(self, doing: str, *, timestamp: int | None = None, **record: Any) -> None:
        """Queue one record, as `confluent_kafka.Producer.produce` takes it. A rejection is reported at the commit.

        Args:
            timestamp: in ms; 0 becomes 1, the earliest that librdkafka writes. None: now.
        """
        if timestamp is not None:
            record["timestamp"] = max(_FIRST_MS, timestamp)

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

    def step(self, doing: str, call: Callable[[float], None]) -> None:
        """Take one step of the transaction, repeated while librdkafka reports an error that may be retried."""

        def served(seconds: float) -> None:
            with _fatal_error_itself():
                try:
                    call(seconds)
                finally:
                    self._producer.poll(0)  # librdkafka reports connection errors only during a poll

        ask(self._watch, doing, _SECONDS, served)

    def _given_up(self, doing: str, error: StraitError) -> StraitError:
        """Abort the transaction; return the most precise cause known. The rejected record is reported last. A takeover
        may first appear as one of many errors, but it appears as itself in this step at the latest."""
        try:
            self.step(doing, self._producer.abort_transaction)
        except PlanConflict as conflict:  # the process that took over has ended the transaction
            error = conflict
        except StraitError:
            pass  # cluster unavailable: the broker ends the transaction after its timeout
        if isinstance(error, PlanConflict):
            return PlanConflict(f"cluster {self._watch.cluster}: {doing}: {self._taken_over}", hint=self._hint)
        return self._refused or error

    def _commit(self, seconds: float) -> None:
        if waiting := self._producer.flush(seconds):
            left = f"{plural(waiting, 'record is', 'records are')} not acknowledged"
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, left))  # noqa: SLF001
        self._producer.commit_transaction(seconds)


@contextlib.contextmanager
def transactional_writer(
    properties: Mapping[str, str],
    cluster: str,
    transactional_id: str,
    *,
    doing: str,
    taken_over: str,
    hint: str,
    message_max_bytes: int,
) -> Iterator[TransactionalWriter]:
    """Become the only writer under this transactional ID; records read from now on were written by earlier ones.

    Args:
        doing: the takeover, as named in errors.
        taken_over, hint: for the error if another process takes over from this one.

    Raises:
        PlanConflict: another process takes over at the same moment.
        ClusterUnavailable, NotAuthorized
    """
    watch = Watch(cluster)
    producer = make_producer(
        properties,
        watch,
        transactional_id=transactional_id,
        transaction_timeout_ms=TRANSACTION_MS,
        message_max_bytes=message_max_bytes,
        compression_type="lz4",
    )
    writer = TransactionalWriter(producer, watch, taken_over, hint)
    try:
        identify(producer, properties, watch, doing)
        writer.step(doing, producer.init_transactions)
        yield writer
    finally:
        with warnings.catch_warnings():  # it tries to abort even a fenced transaction, and warns of that
            warnings.simplefilter("ignore", RuntimeWarning)
            producer.close()


def chunks(items: Iterable[Item], size_of: Callable[[Item], int], most: int = _CHUNK_RECORDS) -> Iterator[list[Item]]:
    """Yield the items in their order, in lists that each fit one transaction.

    Args:
        size_of: size of an item in bytes.
        most: items of a list at most.
    """
    chunk: list[Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += size_of(item)
        if len(chunk) == most or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


@contextlib.contextmanager
def _fatal_error_itself() -> Iterator[None]:
    """Raise a fatal error itself instead of SystemError: confluent-kafka raises it from inside a poll and then still
    calls back, to which Python objects. Sometimes the error itself is lost on the way."""
    try:
        yield
    except SystemError as error:
        inner: BaseException | None = error
        while inner is not None and not isinstance(inner, KafkaException):
            inner = inner.__cause__ or inner.__context__
        raise inner or KafkaException(KafkaError(KafkaError._FATAL, str(error), fatal=True)) from None  # noqa: SLF001
