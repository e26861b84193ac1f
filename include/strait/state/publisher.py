"""Publishing plans: compare and publish, by Kafka's transactions.

Any number of control planes may run for a link: two Airflow schedulers, somebody's `strait apply`. Each publication
must be decided from the state that the one before it left, or the link would get two producer ids, or a partition two
first runs. Kafka gives this in three steps, and their order is what makes it hold:

1. `init_transactions` under the link's one transactional id. It fences every other control plane, and returns only when
   their transactions are over, committed or aborted.
2. Read the state topics to their ends: they now hold all that any other control plane will ever have published.
3. Decide, and write in one transaction. Where somebody else has done step 1 since, the broker refuses the write.
"""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from confluent_kafka import KafkaException, Producer

from strait.config import naming
from strait.errors import ClusterError, ClusterUnavailable, PlanConflict, StraitError
from strait.kafka.clients import Watch, ask, make_producer
from strait.state.codec import encode
from strait.state.reader import StateReader
from strait.state.schema import Loss, OffsetMapping, Plan

_LARGEST_PLAN_BYTES = 100 << 20  # before compression; of what is left of it the topic takes a tenth of that
_MARKER_PAUSE_SECONDS = 0.02
_TRANSACTION_TIMEOUT_MS = 30_000  # after which the broker ends the transaction of a control plane that died inside one


class ControlPublisher:
    """Publishes plans, first runs and losses of one link."""

    def __init__(self, properties: Mapping[str, str], cluster: str, link: str) -> None:
        self._properties = properties
        self._cluster = cluster
        self._link = link

    @contextlib.contextmanager
    def exclusive(self, reader: StateReader, timeout_seconds: float = 30.0) -> Iterator["Publication"]:
        """Become the link's one control plane and bring ``reader`` up to date; decide inside, then publish or not.

        Raises:
            PlanConflict: another control plane took over meanwhile; nothing was published.
            ClusterUnavailable, NotAuthorized, StateError
        """
        watch = Watch(self._cluster)
        producer = make_producer(
            self._properties,
            watch,
            transactional_id=naming.control_transactional_id(self._link),
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            compression_type="zstd",
            message_max_bytes=_LARGEST_PLAN_BYTES,
        )
        deadline = time.monotonic() + timeout_seconds
        publication = Publication(producer, watch, reader, self._link, deadline)
        try:
            publication.step("taking over the control of the link", producer.init_transactions)
            reader.catch_up(max(1.0, deadline - time.monotonic()))
            yield publication
        finally:
            with warnings.catch_warnings():  # it tries to abort even what a fencing has ended, and says so
                warnings.simplefilter("ignore", RuntimeWarning)
                producer.close()


class Publication:
    """One chance to publish. No transaction is open before `publish`, and none stays open after it."""

    def __init__(self, producer: Producer, watch: Watch, reader: StateReader, link: str, deadline: float) -> None:
        self._producer = producer
        self._watch = watch
        self._reader = reader
        self._link = link
        self._deadline = deadline

    def publish(
        self,
        plans: Sequence[Plan],
        first_runs: Iterable[OffsetMapping] = (),
        losses: Iterable[Loss] = (),
        forgotten: Iterable[OffsetMapping] = (),
    ) -> None:
        """Write plans of task groups, their first runs, and what they make of lost topics: all of it or nothing.

        Args:
            plans: none, where first runs come before the plans that follow them.
            forgotten: runs of topics that are gone on both sides; the map holds them no longer.

        Raises:
            PlanConflict: decided from another state than the one in force, or another control plane took over.
            ClusterUnavailable: nothing was published, or the answer to the last request was lost; the next cycle sees.
        """
        for plan in plans:
            self._check_follows(plan)
        named = ", ".join(f"plan {plan.version} of group {plan.group}" for plan in plans)
        doing = f"publishing {named or 'where partitions begin'}"
        self.step(doing, lambda _: self._producer.begin_transaction())
        try:
            for run in first_runs:
                self._produce(doing, naming.map_topic(self._link), *encode(run))
            for run in forgotten:
                self._produce(doing, naming.map_topic(self._link), encode(run)[0], None)
            for loss in losses:
                self._produce(doing, naming.losses_topic(self._link), *encode(loss))
            for plan in plans:
                self._produce(doing, naming.plan_topic(self._link), *encode(plan))
            self.step(doing, self._producer.commit_transaction)
        except PlanConflict:
            raise  # whoever fenced us has ended the transaction
        except StraitError:
            # Where this fails too, the cluster is away, and the broker ends the transaction after its timeout. That
            # somebody took over may show here alone: before, librdkafka says of it no more than "fatal error".
            with contextlib.suppress(ClusterError):
                self.step(doing, self._producer.abort_transaction)
            raise
        self._await_readable(plans)

    def _await_readable(self, plans: Sequence[Plan]) -> None:
        """Kafka says that a transaction is committed before its markers are in the logs, and until then nobody sees
        what it wrote. Whoever looks next is to find the plan in force, not its predecessor."""
        with contextlib.suppress(ClusterError):  # it is published, seen or not
            while time.monotonic() < self._deadline:
                self._reader.catch_up(max(1.0, self._deadline - time.monotonic()))
                if all(self._sees(plan) for plan in plans):
                    return
                time.sleep(_MARKER_PAUSE_SECONDS)

    def _sees(self, plan: Plan) -> bool:
        found = self._reader.plans.get(plan.group)
        return found is not None and found.version >= plan.version

    def step(self, doing: str, call: Callable[[float], None]) -> None:
        """Take one step of the protocol, again and again while librdkafka says that it may be tried again."""

        def served(wait: float) -> None:
            try:
                call(wait)
            finally:
                self._producer.poll(0)  # librdkafka tells what is wrong with a connection only to those who poll

        ask(self._watch, doing, max(1.0, self._deadline - time.monotonic()), served)

    def _produce(self, doing: str, topic: str, key: bytes, value: bytes | None) -> None:
        while True:
            try:
                self._producer.produce(topic, key=key, value=value, partition=0)
            except BufferError:  # the local queue is full
                self._check_deadline(doing)
                self._producer.poll(0.1)
            except KafkaException as exception:
                raise self._watch.translate(exception, doing) from exception
            else:
                return

    def _check_deadline(self, doing: str) -> None:
        if time.monotonic() > self._deadline:
            raise ClusterUnavailable(
                self._watch.cluster, f"{doing}: the brokers did not acknowledge the records in time"
            )

    def _check_follows(self, plan: Plan) -> None:
        before = self._reader.plans.get(plan.group)
        expected = 1 if before is None else before.version + 1
        producer_ids = {other.producer_id for other in self._reader.plans.values()}
        if plan.version != expected:
            raise PlanConflict(
                f"link {self._link}: publishing plan {plan.version} of group {plan.group}: "
                f"the next version is {expected}, so this plan was decided from another state"
            )
        if producer_ids - {plan.producer_id}:
            raise PlanConflict(
                f"link {self._link}: publishing plan {plan.version} of group {plan.group}: it has producer id "
                f"{plan.producer_id}, and the link's is {min(producer_ids)} for ever"
            )
