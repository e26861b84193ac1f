"""Writing in transactions: the one place that takes their steps, again while that may help, and takes them back."""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from strait.errors import ClusterUnavailable, PlanConflict, StraitError
from strait.kafka.clients import Watch, ask, make_producer

_ROOM_SECONDS = 0.1


@contextlib.contextmanager
def transactional_writer(
    properties: Mapping[str, str],
    cluster: str,
    transactional_id: str,
    *,
    doing: str,
    seconds: Callable[[], float],
    **overrides: Any,
) -> Iterator["TransactionalWriter"]:
    """Fence whoever else writes under this id, and become the one who does.

    Args:
        doing: what that is called in an error.
        seconds: how long the next step may take.
        overrides: settings of the producer, with ``_`` for ``.``.

    Raises:
        PlanConflict: somebody else did the same since; ClusterUnavailable, NotAuthorized.
    """
    watch = Watch(cluster)
    producer = make_producer(properties, watch, transactional_id=transactional_id, **overrides)
    writer = TransactionalWriter(producer, watch, seconds)
    try:
        writer.step(doing, producer.init_transactions)
        yield writer
    finally:
        with warnings.catch_warnings():  # it tries to abort even what a fencing has ended, and says so
            warnings.simplefilter("ignore", RuntimeWarning)
            producer.close()


class TransactionalWriter:
    """One turn at writing, over after its first error. No transaction is open but inside `transaction`."""

    def __init__(self, producer: Producer, watch: Watch, seconds: Callable[[], float]) -> None:
        self._producer = producer
        self._watch = watch
        self._seconds = seconds
        self._refused: StraitError | None = None

    def step(self, doing: str, call: Callable[[float], None]) -> None:
        """Take one step of the protocol, again while librdkafka says that it may be tried again."""

        def served(seconds: float) -> None:
            with _fatal_error_itself():
                try:
                    call(seconds)
                finally:
                    self._producer.poll(0)  # librdkafka tells what is wrong with a connection only to those who poll

        ask(self._watch, doing, self._seconds(), served)

    @contextlib.contextmanager
    def transaction(self, doing: str) -> Iterator[None]:
        """All that is written inside, or nothing. Where the answer to the last request was lost, only the log knows which."""
        self._refused = None
        self.step(doing, lambda _: self._producer.begin_transaction())
        try:
            yield
            self.step(doing, self._commit)
        except StraitError as error:
            raise self._taken_back(doing, error) from error

    def write(self, doing: str, **record: Any) -> None:
        """Queue one record, as `Producer.produce` takes it; wait where the local queue is full."""
        deadline = time.monotonic() + self._seconds()
        while True:
            try:
                self._producer.produce(on_delivery=lambda error, _: self._heard(doing, error), **record)
            except BufferError:
                if time.monotonic() > deadline:
                    what = f"{doing}: the brokers do not take the records in time"
                    raise ClusterUnavailable(self._watch.cluster, what) from None
                with _fatal_error_itself():
                    self._producer.poll(_ROOM_SECONDS)
            except KafkaException as exception:
                raise self._watch.translate(exception, doing) from exception
            else:
                return

    def _heard(self, doing: str, error: KafkaError | None, _: Message | None = None) -> None:
        if error is not None and self._refused is None and error.code() != KafkaError._PURGE_QUEUE:  # noqa: SLF001
            self._refused = self._watch.translate(error, doing)

    def _commit(self, seconds: float) -> None:
        if waiting := self._producer.flush(seconds):
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"{waiting} records are not acknowledged"))  # noqa: SLF001
        self._producer.commit_transaction(seconds)

    def _taken_back(self, doing: str, error: StraitError) -> StraitError:
        """Abort; return why, as well as it can be known: which record was refused is heard last, and that somebody took
        over shows at first in one of many ways, but at last in this step."""
        if isinstance(error, PlanConflict):
            return error  # whoever fenced us has ended the transaction
        try:
            self.step(doing, self._producer.abort_transaction)
        except PlanConflict as conflict:
            return conflict
        except StraitError:
            pass  # the cluster is away, and the broker ends the transaction after its timeout
        return self._refused or error


@contextlib.contextmanager
def _fatal_error_itself() -> Iterator[None]:
    """confluent-kafka raises a fatal error from inside a poll and then still calls back, which Python takes amiss: the
    error is only the cause of another, or is lost. If it is lost the next step says what it was."""
    try:
        yield
    except SystemError as error:
        inner: BaseException | None = error
        while inner is not None and not isinstance(inner, KafkaException):
            inner = inner.__cause__ or inner.__context__
        lost = KafkaException(KafkaError(KafkaError._FATAL, "the producer has failed for good"))  # noqa: SLF001
        raise (inner or lost) from None
