"""Publication of plans: compare and publish, with Kafka transactions.

Any number of control planes may run for a link: two Airflow schedulers, an operator's `strait apply`. Each publication
must be based on the state that the previous one left, or the link would get two producer IDs, or a partition two first
offset segments. Three steps ensure this, and their order matters:

1. `init_transactions` under the link's only transactional ID. It fences every other control plane, and returns only
   when their transactions have ended, committed or aborted.
2. Read the state topics to their ends: they now hold all that any other control plane will ever have published.
3. Compute the plan, and write it in one transaction. If another control plane has done step 1 since, the broker rejects
   the write.
"""

import contextlib
import random
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import KafkaException, Producer

from strait.config import naming
from strait.errors import ClusterError, ClusterUnavailable, PlanConflict, StateError, StraitError
from strait.kafka.clients import Watch, ask, make_producer
from strait.kafka.verified import identify
from strait.state.bounds import bound_of
from strait.state.codec import Unreadable, decode, encode
from strait.state.reader import StateReader
from strait.state.schema import Loss, LossAcknowledgement, OffsetMapping, Plan
from strait.state.signing import Keys, Proof, with_key

_LARGEST_PLAN_BYTES = bound_of(Plan).bytes + (1 << 10)  # before compression: the largest readable value, and its key
_TAKING_OVER = "taking over the control of the link"
_MARKER_PAUSE_SECONDS = 0.02
_FIRST_MS = 1
_SECONDS = 30.0
_CONFLICTS_MOST = 8
_CONFLICT_PAUSE_SECONDS = 1.0
_TRANSACTION_TIMEOUT_MS = 30_000  # after which the broker aborts the transaction of a control plane that crashed

Result = TypeVar("Result")


class ControlPublisher:
    """Publishes plans, first offset segments and losses of one link."""

    def __init__(self, properties: Mapping[str, str], cluster: str, link: str) -> None:
        self._properties = properties
        self._cluster = cluster
        self._link = link

    @contextlib.contextmanager
    def exclusive(self, reader: StateReader, timeout_seconds: float = _SECONDS) -> Iterator["Publication"]:
        """Become the link's only control plane and bring ``reader`` up to date; the caller then may publish.

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
        keys = Keys.of(self._cluster, with_key(self._properties))
        publication = Publication(producer, watch, reader, self._link, keys, deadline)
        try:
            identify(producer, self._properties, watch, _TAKING_OVER)
            publication.step(_TAKING_OVER, producer.init_transactions)
            reader.catch_up(max(1.0, deadline - time.monotonic()))
            yield publication
        finally:
            with warnings.catch_warnings():  # it tries to abort even a transaction that fencing has ended, and warns
                warnings.simplefilter("ignore", RuntimeWarning)
                producer.close()

    def until_published(self, reader: StateReader, publish: Callable[["Publication"], Result]) -> Result:
        """Call ``publish`` as the link's only control plane, again if another one takes over meanwhile; return its
        result. Raises as `exclusive`; PlanConflict only if others were faster each time."""
        for _ in range(_CONFLICTS_MOST):
            try:
                with self.exclusive(reader) as publication:
                    return publish(publication)
            except PlanConflict as error:
                conflict = error
                time.sleep(random.uniform(0, _CONFLICT_PAUSE_SECONDS))  # noqa: S311  only to get out of step
        raise conflict


class CopiedRecord(NamedTuple):
    """A record to write into a destination topic. Without a timestamp, or with 0, it gets timestamp 1: librdkafka writes
    the current time for 0."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp_ms: int


class Publication:
    """One opportunity to publish. No transaction is open before `publish`, and none stays open after it. The time limit
    starts again with each call of `publish`."""

    def __init__(
        self, producer: Producer, watch: Watch, reader: StateReader, link: str, keys: Keys, deadline: float
    ) -> None:
        self._producer = producer
        self._watch = watch
        self._reader = reader
        self._link = link
        self._keys = keys
        self._deadline = deadline

    def publish(
        self,
        plans: Sequence[Plan],
        first_runs: Iterable[OffsetMapping] = (),
        losses: Iterable[Loss | LossAcknowledgement] = (),
        forgotten: Iterable[OffsetMapping] = (),
        records: Iterable[CopiedRecord] = (),
        *,
        vouched: bool = False,
        limited: Collection[str] = (),
    ) -> None:
        """Write plans of task groups, first offset segments and losses in one transaction.

        Args:
            plans: empty if first segments are published before the plans that refer to them.
            vouched: the plans contain no topics but those that the link's settings select, except those of the task groups in
                ``limited``. Otherwise a plan is signed as its predecessor is: an edit must not give a forged plan a signature.
            forgotten: segments of topics that were deleted on both sides, to be removed from the map.
            records: records of the source that the link does not replicate itself; the segments pass over them.

        Raises:
            PlanConflict: the plans are based on another state than the current one, or another control plane took over.
            StateError: no version of Strait could read a plan; nothing was published.
            ClusterUnavailable: nothing was published, or the response to the last request was lost; the next cycle
                detects which.
        """
        for plan in plans:
            self._check_follows(plan)
        encoded = [self._encoded(plan) for plan in plans]
        self._deadline = time.monotonic() + _SECONDS  # the caller may have used up the time by its own requests
        named = ", ".join(f"plan {plan.version} of group {plan.group}" for plan in plans)
        doing = f"publishing {named or 'where partitions begin'}"
        self.step(doing, lambda _: self._producer.begin_transaction())
        try:
            for record in records:
                place = {"partition": record.partition, "timestamp": max(_FIRST_MS, record.timestamp_ms)}
                self._produce(doing, record.topic, record.key, record.value, headers=list(record.headers), **place)
            for run in first_runs:
                self._produce(doing, naming.map_topic(self._link), *encode(run))
            for run in forgotten:
                self._produce(doing, naming.map_topic(self._link), encode(run)[0], None)
            for loss in losses:
                self._produce(doing, naming.losses_topic(self._link), *encode(loss))
            topic = naming.plan_topic(self._link)
            for plan, (key, value) in zip(plans, encoded, strict=True):
                proof = Proof.PROVEN if vouched else self._reader.proofs.get(plan.group, Proof.PROVEN)
                proof = Proof.LIMITED if plan.group in limited else proof
                self._produce(doing, topic, key, value, headers=self._keys.signature(topic, key, value, proof))
            self.step(doing, self._producer.commit_transaction)
        except PlanConflict:
            raise  # the control plane that fenced this one has ended the transaction
        except StraitError:
            # If this fails too, the cluster is unavailable, and the broker aborts the transaction after its timeout. A
            # takeover may be reported only here: before, librdkafka returns no more than "fatal error" for it.
            with contextlib.suppress(ClusterError):
                self.step(doing, self._producer.abort_transaction)
            raise
        self._await_readable(plans)

    def _encoded(self, plan: Plan) -> tuple[bytes, bytes]:
        """Return a plan's key and value. Every control plane reads the plan before it replaces it, so a plan that none can
        read would block the control of the link."""
        key, value = encode(plan)
        try:
            decode(Plan, key, value)
        except Unreadable as error:
            raise StateError(
                f"link {self._link}: publishing plan {plan.version} of group {plan.group}: no version of Strait could read "
                f"it, so it was not written: {error}",
                hint="the current plan stays active; report this as a defect of Strait",
            ) from error
        return key, value

    def _await_readable(self, plans: Sequence[Plan]) -> None:
        """Wait until the plans can be read.

        Kafka acknowledges a commit before its markers are in the logs, and until then no consumer gets the records. The
        next reader must find the new plan, not its predecessor.
        """
        with contextlib.suppress(ClusterError):  # it is published, even if it cannot be read yet
            while time.monotonic() < self._deadline:
                self._reader.catch_up(max(1.0, self._deadline - time.monotonic()))
                if all(self._sees(plan) for plan in plans):
                    return
                time.sleep(_MARKER_PAUSE_SECONDS)

    def _sees(self, plan: Plan) -> bool:
        found = self._reader.plans.get(plan.group)
        return found is not None and found.version >= plan.version

    def step(self, doing: str, call: Callable[[float], None]) -> None:
        """Run one step of the protocol, and retry it while librdkafka reports a retriable error."""

        def served(wait: float) -> None:
            try:
                call(wait)
            finally:
                self._producer.poll(0)  # librdkafka reports connection errors only to callers of poll

        ask(self._watch, doing, max(1.0, self._deadline - time.monotonic()), served)

    def _produce(self, doing: str, topic: str, key: bytes | None, value: bytes | None, **where: Any) -> None:
        while True:
            try:
                self._producer.produce(topic, key=key, value=value, **{"partition": 0} | where)
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
