"""The replicator of one slot: partitions assigned by the plan are fetched from their leaders and produced to the
leaders of their destination partitions.

One thread and no locks. Partitions are independent: a failure of one is shown on it and stops no other.
"""

import itertools
import os
import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from strait.config import naming, racks
from strait.config.app_spec import AppSpec
from strait.engine.batch_stamper import BatchStamper
from strait.engine.destination_quota import DestinationQuota
from strait.engine.evaluation import Evaluator
from strait.engine.fetcher import Fetcher
from strait.engine.foreign_stretches import ForeignStretches
from strait.engine.leadership import Leadership
from strait.engine.loop_filter import LoopFilter
from strait.engine.loss_ledger import LossLedger
from strait.engine.open_transactions import OpenTransactions
from strait.engine.partition.changes import Changes
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.partition.send_queue import LINES, OutBatch
from strait.engine.produce_results import ProduceResults
from strait.engine.read_replicas import ReadReplicas
from strait.engine.recovery.coordinator import RecoveryCoordinator
from strait.engine.recovery.known_runs import Map
from strait.engine.sender import Sender
from strait.engine.slot_metrics import SlotMetrics
from strait.engine.source_ends import SourceEnds
from strait.engine.throttle import Throttle
from strait.engine.zone_traffic import Side
from strait.model import topic_id_bytes
from strait.net import error_policy
from strait.net.buffers import BufferPool
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.traffic import Traffic
from strait.reasons import Reason
from strait.state.schema import Plan, PlannedTopic
from strait.state.sink import StateSink

EXPIRE_SECONDS = 0.25  # between two checks for requests without a response
Key = tuple[str, int]


class Replicator:
    """Copies the partitions that the plan assigns to one slot, until it is closed. ``loop`` is closed by its owner, as
    is ``known``, the offset map, which the owner keeps up to date and whose ``state_sink`` it serves. ``evaluator``
    transforms records; None: topics that are to be transformed wait."""

    def __init__(
        self,
        loop: Loop,
        spec: AppSpec,
        slot: int,
        producer_id: int,
        known: Map,
        state_sink: StateSink,
        metrics: SlotMetrics,
        evaluator: Evaluator | None = None,
    ) -> None:
        self._slot = slot
        self._transforms = evaluator is not None
        self._loop = loop
        loop.on_stall = self._take_stall
        self._metrics = metrics
        pool = self.memory = BufferPool(spec.slot_memory_bytes)
        source = self._source = ClusterClient(loop, pool, spec.source_name, spec.source, "source")
        destination = self._destination = ClusterClient(
            loop, pool, spec.destination_name, spec.destination, "destination"
        )
        map_topic = naming.map_topic(spec.link)
        self._planned: dict[str, PlannedTopic] = {}
        self._outside: frozenset[str] = frozenset()
        self._refused: frozenset[str] = frozenset()
        self._partitions: dict[Key, Partition] = {}
        self._retired: list[Partition] = []
        self.changes: Changes[Partition] = Changes()
        """Partitions that have something to report."""
        self._lines = itertools.cycle(range(LINES))
        self._budgets = Throttle()
        self._quotas: dict[int, DestinationQuota] = defaultdict(DestinationQuota)  # by destination broker
        self._stamper = BatchStamper(
            pool,
            state_sink,
            producer_id,
            LoopFilter(loop, source, destination),
            emit=self._emit,
            stop=self._stop,
            broken=self._promise_broken,
            freed=self._schedule,
            evaluator=evaluator,
        )
        loss_ledger = self._loss_ledger = LossLedger(spec.link, state_sink, self._stamper)
        self._recovery = RecoveryCoordinator(
            loop,
            source,
            destination,
            producer_id,
            known,
            map_topic,
            state_sink,
            loss_ledger,
            schedule=self._schedule,
        )
        self._transactions = OpenTransactions(loop, source)
        self._foreign = ForeignStretches(loop, source, destination, producer_id, self._recovery.marks)
        self._source_ends = SourceEnds(loop, source, self._budgets, self._transactions.note)
        self._results = ProduceResults(loop, destination, self._recovery, loss_ledger, acked=self._take_ack)
        self._replicas = ReadReplicas(
            loop, source, racks.rack_of(spec.source, os.environ), racks.expire_seconds(spec.source)
        )
        self._leadership = Leadership(
            source,
            destination,
            map_topic,
            self._recovery,
            self._replicas,
            make_fetcher=self._make_fetcher,
            make_sender=self._make_sender,
        )
        self._plan_topic = naming.plan_topic(spec.link)
        destination.interest.add(self._plan_topic)
        self._fetching = True
        self._expire_at = 0.0

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions that the plan assigns to this slot now, in order."""
        return [self._partitions[key] for key in sorted(self._partitions)]

    @property
    def plan_topic_id(self) -> bytes | None:
        """Kafka's ID of the link's plan topic, which changes if the topic is deleted and recreated. None: unknown."""
        return self._destination.topic_ids.get(self._plan_topic)

    @property
    def traffic(self) -> Mapping[Side, Mapping[str, Traffic]]:
        """Bytes exchanged with the brokers of each rack, by cluster."""
        return {"source": self._source.traffic, "destination": self._destination.traffic}

    def partition(self, topic: str, number: int) -> Partition | None:
        """Return one of the slot's partitions; None if the slot does not have it."""
        return self._partitions.get((topic, number))

    def take_placed(self) -> Sequence[Partition]:
        """Return the partitions whose position has become known, for the first time, since the last call."""
        return self._recovery.take_placed()

    def take_retired(self) -> Sequence[Partition]:
        """Return the partitions that the plan has taken away since the last call."""
        retired, self._retired = self._retired, []
        return retired

    def follow(self, plan: Plan, refused: Collection[str] = ()) -> None:
        """Add the partitions that the plan assigns to this slot, and drop those that it does not; all others continue
        untouched. Topics that are planned as before are not checked. Partitions of ``refused`` source topics only show
        the reason."""
        before_refused, self._outside = self._refused, frozenset(refused)
        self._refused = self._outside | (frozenset() if self._transforms else plan.transformed)
        turned = before_refused ^ self._refused
        self._budgets.follow(plan.budgets, self._slot, self._loop.now, plan.backfill)
        planned = {topic.source: topic for topic in plan.topics}
        removed: list[Partition] = []
        for name, before in self._planned.items():
            topic = planned.get(name)
            if name in turned:
                removed += self._follow_topic(before, None)
            elif topic is not before and topic != before:
                removed += self._follow_topic(before, topic)
        added = [
            self._add(topic, number)
            for name, topic in sorted(planned.items())
            if self._planned.get(name) != topic or name in turned
            for number, slot in enumerate(topic.slots)
            if slot == self._slot and (name, number) not in self._partitions
        ]
        self._planned = planned
        self._leadership.follow(
            [partition for partition in added if partition.topic not in self._refused],
            [partition for partition in removed if partition.topic not in before_refused],
        )

    def _follow_topic(self, before: PlannedTopic, topic: PlannedTopic | None) -> list[Partition]:
        """Apply a topic's changed plan. Return the partitions of it that this slot had, and that it must drop or
        replace."""
        same = topic is not None and _what_is_copied(topic) == _what_is_copied(before)
        removed = []
        for number in range(len(before.slots)):
            held = self._partitions.get((before.source, number))
            if held is None:
                continue
            if topic is not None and same and number < len(topic.slots) and topic.slots[number] == self._slot:
                held.obey(topic.policy)
            else:
                removed.append(self._retire((before.source, number)))
        return removed

    def _add(self, topic: PlannedTopic, number: int) -> Partition:
        partition = self._partitions[topic.source, number] = Partition(
            topic.source,
            number,
            topic.destination,
            topic_id_bytes(topic.source_id),
            topic_id_bytes(topic.destination_id),
            topic.policy,
            next(self._lines),
            self.changes,
        )
        if topic.source in self._refused - self._outside:
            partition.show(Reason.TRANSFORM_STARTING, "its expressions are evaluated by Spark, which is not there yet")
        elif topic.source in self._refused:
            partition.show(Reason.OUTSIDE_SELECTION, f"planned for destination topic {topic.destination}")
        else:
            self._recovery.add(partition)
        return partition

    def start(self) -> None:
        self._source.keep_fresh()
        self._destination.keep_fresh()

    def step(self) -> float:
        """Do the work that is due after the loop has served its events. Returns the time of the loop."""
        self._stamper.go_on()
        if self._loop.now >= self._expire_at:
            self._expire_at = self._loop.now + EXPIRE_SECONDS
            self._source.expire()
            self._destination.expire()
            self._leadership.tell_away()
            if self._destination.topic_errors.get(self._plan_topic):
                self._destination.look_again(self._plan_topic)
        self._recovery.step()
        self._replicas.step()
        self._transactions.step()
        self._foreign.step(lambda: self.partitions)
        self._source_ends.step(lambda: self.partitions)
        self._loss_ledger.step(self._loop.now)
        self._leadership.send()
        if self._fetching:
            self._leadership.fetch()
        return self._loop.now

    def drain(self) -> None:
        """Stop fetching; queued batches are still sent."""
        self._fetching = False

    def use_memory(self, budget_bytes: int) -> None:
        """Use at most this much memory for fetched batches from now on. Memory in use beyond
        that is released as its batches are sent."""
        self.memory.resize(budget_bytes)
        self._leadership.fit()

    @property
    def unfinished(self) -> bool:
        """Whether fetched batches wait for the next step."""
        return self._stamper.unfinished

    @property
    def needs_state(self) -> bool:
        """Whether anything waits for the state topics: for the map to be read further, or for a write barrier."""
        return self._recovery.reads_map or self._stamper.unwritten > 0

    @property
    def idle(self) -> bool:
        """Whether nothing is queued or in flight."""
        return all(partition.idle for partition in self._partitions.values())

    def close(self) -> None:
        self._loss_ledger.close()
        for partition in self._partitions.values():
            partition.position.abandon()
        self._source.close()
        self._destination.close()

    def _retire(self, key: Key) -> Partition:
        partition = self._partitions.pop(key)
        partition.retire()
        self._recovery.forget(partition)
        self._retired.append(partition)
        return partition

    def take_led_anew(self) -> set[Partition]:
        """Return the partitions whose source leader has changed since the last call. They are checkpointed immediately,
        since the leader epoch in the checkpoint reveals truncation."""
        return self._results.take_led_anew()

    def _make_fetcher(self, node: int, line: int) -> Fetcher:
        return Fetcher(
            self._loop,
            self.memory,
            self._source,
            node,
            line,
            budgets=self._budgets,
            replicas=self._replicas,
            stamper=self._stamper,
            out_of_range=self._recovery.out_of_range,
            diverged=self._recovery.diverged,
            held_back=self._transactions.note,
        )

    def _make_sender(self, node: int, line: int) -> Sender:
        return Sender(
            self._loop,
            self._destination,
            node,
            line,
            quota=self._quotas[node],
            looks_first=self._recovery.confirmation.looks_first,
            may_continue=self._recovery.confirmation.may_continue,
            on_result=self._results.take,
            on_lost=self._results.lost,
        )

    def _emit(self, partition: Partition, batch: OutBatch) -> None:
        partition.queue.append(batch)
        self._recovery.confirmation.note_age(partition, batch)
        self._leadership.schedule(partition, self._loop.now)

    def _take_ack(self, partition: Partition, batch: OutBatch) -> None:
        self._metrics.acked(batch, self._loop.now)
        if partition.queue.batches:
            self._leadership.schedule(partition, self._loop.now)

    def _schedule(self, partition: Partition) -> None:
        self._leadership.schedule(partition, self._loop.now)

    def _stop(self, partition: Partition, reason: Reason, detail: str) -> None:
        """Block a partition whose source holds something that cannot be copied. It is tried again later, as an operator
        may have changed the rules."""
        wait = random.uniform(*error_policy.wait_for(reason))  # noqa: S311
        partition.block(reason, detail, self._loop.now + wait)

    def _promise_broken(self, partition: Partition, cause: str) -> None:
        detail = f"waiting until the state topic holds: {cause}"
        self._recovery.reset(partition, Reason.DESTINATION_UNREACHABLE, detail, error_policy.SHORTLY_SECONDS)

    def _take_stall(self, seconds: float) -> None:
        """Reset every position after the process was suspended, so that it is looked up again. Other instances may have
        continued meanwhile, and the link's producer state may have expired on the destination. So no queued batch is
        sent, not even one that a connection already holds."""
        detail = f"the slot's process was suspended for {seconds:.0f} s"
        self._destination.drop_connections(detail)
        for partition in self._partitions.values():
            if partition.position.phase is not Phase.AWAIT_POSITION:
                self._recovery.reset(partition, None, detail, error_policy.SOON_SECONDS)


def _what_is_copied(topic: PlannedTopic) -> tuple[str, ...]:
    return topic.source_id, topic.destination_id, topic.destination, topic.policy.transform_digest
