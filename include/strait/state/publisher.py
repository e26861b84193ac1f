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
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from strait.config import naming
from strait.errors import ClusterError, PlanConflict
from strait.kafka.transactions import TransactionalWriter, transactional_writer
from strait.state.codec import encode
from strait.state.reader import StateReader
from strait.state.schema import Loss, OffsetMapping, Plan

_LARGEST_PLAN_BYTES = 100 << 20  # before compression; of what is left of it the topic takes a tenth of that
_MARKER_PAUSE_SECONDS = 0.02
_TRANSACTION_TIMEOUT_MS = 30_000  # after which the broker ends the transaction of a control plane that died inside one


_CONFLICTS_MOST = 8
_CONFLICT_PAUSE_SECONDS = 1.0

_T = TypeVar("_T")


def after_conflicts(publish: Callable[[], _T]) -> _T:
    """Decide and publish again where another control plane came first. Raises the last PlanConflict of eight."""
    for _ in range(_CONFLICTS_MOST - 1):
        try:
            return publish()
        except PlanConflict:
            time.sleep(random.uniform(0, _CONFLICT_PAUSE_SECONDS))  # noqa: S311  only to get out of step
    return publish()


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
        deadline = time.monotonic() + timeout_seconds

        def left() -> float:
            return max(1.0, deadline - time.monotonic())

        with transactional_writer(
            self._properties,
            self._cluster,
            naming.control_transactional_id(self._link),
            doing="taking over the control of the link",
            seconds=left,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            compression_type="zstd",
            message_max_bytes=_LARGEST_PLAN_BYTES,
        ) as writer:
            reader.catch_up(left())
            yield Publication(writer, reader, self._link, deadline)


class Publication:
    """One chance to publish. No transaction is open before `publish`, and none stays open after it."""

    def __init__(self, writer: TransactionalWriter, reader: StateReader, link: str, deadline: float) -> None:
        self._writer = writer
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
            forgotten: runs of topics that are gone on both sides; the map holds them no longer.

        Raises:
            PlanConflict: decided from another state than the one in force, or another control plane took over.
            ClusterUnavailable: nothing was published, or the answer to the last request was lost; the next cycle sees.
        """
        for plan in plans:
            self._check_follows(plan)
        doing = "publishing " + ", ".join(f"plan {plan.version} of group {plan.group}" for plan in plans)
        with self._writer.transaction(doing):
            for run in first_runs:
                self._write(doing, naming.map_topic(self._link), *encode(run))
            for run in forgotten:
                self._write(doing, naming.map_topic(self._link), encode(run)[0], None)
            for loss in losses:
                self._write(doing, naming.losses_topic(self._link), *encode(loss))
            for plan in plans:
                self._write(doing, naming.plan_topic(self._link), *encode(plan))
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

    def _write(self, doing: str, topic: str, key: bytes, value: bytes | None) -> None:
        self._writer.write(doing, topic=topic, key=key, value=value, partition=0)

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
