"""The replicator of one slot: partitions given by the plan, fetched from their leaders, produced to their copies'
leaders.

One thread and no locks. Every partition stands for itself: what goes wrong with one is shown on it and stops no other.
"""

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Sequence

from strait.config import naming
from strait.config.app_spec import AppSpec
from strait.engine import produce_results
from strait.engine.batch_stamper import BatchStamper
from strait.engine.fetcher import Fetcher
from strait.engine.loop_filter import LoopFilter
from strait.engine.loss_ledger import LossLedger
from strait.engine.partition import OutBatch, Partition, Phase, Repetition
from strait.engine.recovery import contention, decision
from strait.engine.recovery.coordinator import RecoveryCoordinator
from strait.engine.recovery.map_end import Map
from strait.engine.recovery.placement import Placed
from strait.engine.recovery.truncation import Truncation
from strait.engine.sender import LINES, Sender
from strait.engine.slot_metrics import SlotMetrics
from strait.engine.state_sink import StateSink
from strait.engine.throttle import Throttle
from strait.model import topic_id_bytes, topic_id_text
from strait.net import error_policy
from strait.net.buffers import BufferPool
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.state.schema import Plan
from strait.wire import error_codes
from strait.wire.produce import Produced

EXPIRE_SECONDS = 0.25  # between two looks for requests that are not answered
Key = tuple[str, int]


class Replicator:
    """Copies what the plan gives to one slot, until it is closed. ``known`` is the map, kept up to date by its owner,
    who also serves the ``state_sink``."""

    def __init__(
        self, spec: AppSpec, slot: int, producer_id: int, known: Map, state_sink: StateSink, metrics: SlotMetrics
    ) -> None:
        self._slot = slot
        self._metrics = metrics
        self._loop = Loop()
        self._loop.on_stall = self._take_stall
        self._pool = BufferPool(spec.slot_memory_bytes)
        self._source = ClusterClient(self._loop, self._pool, spec.source_name, spec.source)
        self._destination = ClusterClient(self._loop, self._pool, spec.destination_name, spec.destination)
        self._source.on_metadata = self._assign_sources
        self._destination.on_metadata = self._assign_destinations
        self._partitions: dict[Key, Partition] = {}
        self._retired: list[Partition] = []
        self._fetchers: dict[int, Fetcher] = {}
        self._senders: dict[tuple[int, int], Sender] = {}  # by broker and line
        self._lines = itertools.cycle(range(LINES))
        self._stamper = BatchStamper(
            self._pool,
            state_sink,
            producer_id,
            LoopFilter(self._loop, self._source, self._destination),
            emit=self._emit,
            stop=self._stop,
            broken=self._promise_broken,
            freed=self._schedule,
        )
        self._loss_ledger = LossLedger(spec.link, state_sink, self._stamper)
        self._truncation = Truncation(self._loop, self._source, self._loss_ledger)
        self._map_topic = naming.map_topic(spec.link)
        self._recovery = RecoveryCoordinator(
            self._loop,
            self._source,
            self._destination,
            producer_id,
            known,
            self._map_topic,
            state_sink,
            problem=self._destination_problem,
            reset_position=self._reset_position,
            placed=self._take_placed,
        )
        self._budgets = Throttle()
        self._led_anew: set[Partition] = set()
        self._unwatched: set[Partition] = set()
        self._fetching = True
        self._expire_at = 0.0

    @property
    def partitions(self) -> Sequence[Partition]:
        """Those that the plan gives to this slot now, in order."""
        return [self._partitions[key] for key in sorted(self._partitions)]

    @property
    def retired(self) -> Sequence[Partition]:
        """Those that the plan has taken away since the start."""
        return self._retired

    def follow(self, plan: Plan) -> None:
        """Take up what the plan gives to this slot and drop what it does not; all else goes on untouched."""
        self._budgets.follow(plan.budgets, self._slot, self._loop.now)
        wanted = {
            (topic.source, number): topic
            for topic in plan.topics
            for number, slot in enumerate(topic.slots)
            if slot == self._slot
        }
        for key, held in list(self._partitions.items()):
            topic = wanted.get(key)
            ids = (topic_id_text(held.source_id), topic_id_text(held.destination_id))
            if topic is None or (topic.source_id, topic.destination_id) != ids or topic.destination != held.destination:
                self._retire(key)
            else:
                held.obey(topic.policy)
        for key in sorted(wanted.keys() - self._partitions.keys()):
            topic = wanted[key]
            partition = self._partitions[key] = Partition(
                key[0],
                key[1],
                topic.destination,
                topic_id_bytes(topic.source_id),
                topic_id_bytes(topic.destination_id),
                topic.policy,
            )
            partition.line = next(self._lines)
            self._recovery.add(partition)
        self._source.interest = {partition.topic for partition in self._partitions.values()}
        self._destination.interest = {partition.destination for partition in self._partitions.values()}
        self._destination.interest.add(self._map_topic)
        if all(map(self._has_leaders, self._partitions.values())):  # what goes on again need not wait for news
            self._assign_sources()
            self._assign_destinations()
        self._source.refresh()
        self._destination.refresh()

    def _has_leaders(self, partition: Partition) -> bool:
        """As last heard, on both sides."""
        ends = (self._source, partition.topic), (self._destination, partition.destination)
        return all((topic, partition.number) in cluster.leaders for cluster, topic in ends)

    def start(self) -> None:
        self._source.keep_fresh()
        self._destination.keep_fresh()

    def step(self, max_wait_seconds: float) -> float:
        """Serve what is due; wait at most that long for it. Returns the time, in seconds of a monotonic clock."""
        self._loop.run_once(max_wait_seconds)
        if self._loop.now >= self._expire_at:
            self._expire_at = self._loop.now + EXPIRE_SECONDS
            self._source.expire()
            self._destination.expire()
        self._watch()
        self._recovery.step()
        for sender in self._senders.values():
            sender.send()
        if self._fetching:
            for fetcher in self._fetchers.values():
                fetcher.ask()
        return self._loop.now

    def drain(self) -> None:
        """Fetch nothing more; what is queued still goes out."""
        self._fetching = False

    @property
    def needs_state(self) -> bool:
        """Something waits for the state topics: for the map to be read on, or for a promise to be kept."""
        return self._recovery.reads_map or self._stamper.unwritten > 0

    @property
    def idle(self) -> bool:
        """Nothing is queued or in flight."""
        return not any(partition.queue or partition.in_flight for partition in self._partitions.values())

    def close(self) -> None:
        for key in list(self._partitions):
            self._partitions[key].generation += 1
        self._source.close()
        self._destination.close()
        self._loop.close()

    def _retire(self, key: Key) -> None:
        partition = self._partitions.pop(key)
        partition.retired = True
        partition.generation += 1
        partition.drop_queue()
        self._recovery.forget(partition)
        self._retired.append(partition)

    # --- who leads what -----------------------------------------------------------------------------------------------

    def _assign_sources(self) -> None:
        """Metadata of the source came: each partition is fetched from its leader."""
        led: dict[int, list[Partition]] = defaultdict(list)
        troubled = False
        for partition in self.partitions:
            node, partition.source_leader_epoch = self._source.leader(partition.topic, partition.number)
            problem = self._source_problem(partition, node)
            if problem is not None:
                partition.block(*problem, until=0.0)
                troubled = True
            else:
                led[node].append(partition)
        if troubled:
            self._loop.call_later(error_policy.SHORTLY_SECONDS[0], self._source.refresh)
        for node in led.keys() - self._fetchers.keys():
            self._fetchers[node] = Fetcher(
                self._loop,
                self._pool,
                self._source,
                node,
                budgets=self._budgets,
                stamper=self._stamper,
                out_of_range=self._truncation.look_into,
                diverged=self._take_divergence,
            )
        for node, fetcher in self._fetchers.items():
            fetcher.fit(len(self._fetchers))
            fetcher.assign(led.get(node, ()))

    def _source_problem(self, partition: Partition, node: int) -> tuple[Reason, str] | None:
        topic = partition.topic
        error = self._source.topic_errors.get(topic, 0)
        if error == error_codes.TOPIC_AUTHORIZATION_FAILED:
            return Reason.SOURCE_DENIED, f"metadata of {topic}: {error_policy.name(error)}"
        if error == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
            return Reason.SOURCE_MISSING, f"the source has no topic {topic} any more"
        if self._source.topic_ids.get(topic, partition.source_id) != partition.source_id:
            return Reason.SOURCE_RECREATED, f"topic {topic} is not the one that was planned: its id has changed"
        if node < 0:
            return Reason.SOURCE_LEADERLESS, f"partition {partition.number} has no leader"
        return None

    def _assign_destinations(self) -> None:
        """Metadata of the destination came: whoever's leader has changed is in doubt, who waited for one is looked
        up."""
        for partition in self.partitions:
            node = self._destination.leader(partition.destination, partition.number).node
            if node != partition.destination_node:
                partition.destination_node = node
                if partition.phase is not Phase.AWAIT_POSITION:
                    self._reset_position(
                        partition, None, "the destination's leader has changed", error_policy.SOON_SECONDS
                    )
            elif self._recreated(partition) and partition.phase is not Phase.AWAIT_POSITION:
                # Brokers before 4.1 take batches by the topic's name: nothing more may go to its successor.
                self._reset_position(
                    partition, None, "the destination topic was created again", error_policy.SOON_SECONDS
                )
            way = node, partition.line
            if node >= 0 and way not in self._senders:
                self._senders[way] = Sender(
                    self._loop, self._destination, *way, on_result=self._take_result, on_lost=self._take_loss
                )

    def _recreated(self, partition: Partition) -> bool:
        ids = self._destination.topic_ids
        return ids.get(partition.destination, partition.destination_id) != partition.destination_id

    def _destination_problem(self, partition: Partition) -> tuple[Reason, str] | None:
        topic = partition.destination
        error = self._destination.topic_errors.get(topic, 0)
        if error == error_codes.TOPIC_AUTHORIZATION_FAILED:
            return Reason.DESTINATION_DENIED, f"metadata of {topic}: {error_policy.name(error)}"
        if error == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
            return Reason.DESTINATION_MISSING, f"the destination has no topic {topic}"
        if self._recreated(partition):
            return Reason.DESTINATION_RECREATED, f"topic {topic} is not the one that was planned: its id has changed"
        if partition.destination_node < 0 and (topic, partition.number) in self._destination.leaders:
            return Reason.DESTINATION_LEADERLESS, f"partition {partition.number} has no leader"
        return None

    # --- the way of a batch -------------------------------------------------------------------------------------------

    def _emit(self, batch: OutBatch) -> None:
        batch.partition.enqueue(batch)
        if contention.note(batch, int(time.time() * 1000)):
            self._unwatched.add(batch.partition)
        self._schedule(batch.partition)

    def _watch(self) -> None:
        """Before anything of them is sent, see whether another copy does."""
        for partition in self._unwatched:
            if partition.phase is Phase.REPLICATING and not partition.retired:
                contention.watch(partition, self._loop.now)
                self._recovery.add(partition)
        self._unwatched.clear()

    def _take_result(self, batch: OutBatch, result: Produced) -> None:
        partition = batch.partition
        if batch.generation != partition.generation:
            return  # from before a doubt: the look-up finds out whether it counts
        if result.error in error_policy.CONFLICTS:
            partition.conflicts += 1
            contention.beaten(partition)
            self._reset_position(partition, None, error_policy.name(result.error), error_policy.SOON_SECONDS)
        elif result.error in produce_results.ABOUT_THE_RECORDS:
            self._take_refusal(batch, result)
        elif result.error:
            answer = error_policy.answer(error_policy.PRODUCE, result.error, Reason.BATCH_REFUSED)
            if answer.refresh:
                self._destination.refresh()
            text = f"produce of record {batch.sequence}: {error_policy.name(result.error)}"
            self._reset_position(
                partition, answer.reason, f"{text}: {result.message}" if result.message else text, answer.wait_seconds
            )
        elif self._repeats(partition, result):
            contention.beaten(partition)
            if batch.crc:
                partition.repetition = Repetition(result.base_offset, batch.crc, batch.first)
            self._reset_position(
                partition, None, f"another copy had written record {batch.sequence}", error_policy.SOON_SECONDS
            )
        else:
            self._take_appended(batch, result)

    def _take_appended(self, batch: OutBatch, result: Produced) -> None:
        partition, on_foreign = batch.partition, batch.partition.policy.on_foreign
        appended = decision.judge_append(result.base_offset, partition.expected_offset, on_foreign)
        if appended == "expected":
            partition.destination_log_start = result.log_start
            self._take_ack(batch)
        elif appended == "truncated":
            self._destination.refresh()  # it may be another topic by now
            self._loss_ledger.destination_lost(partition, result.base_offset, partition.expected_offset)
            self._reset_position(
                partition,
                Reason.DESTINATION_TRUNCATED,
                f"record {batch.sequence} came to offset {result.base_offset}, though all below "
                f"{partition.expected_offset} had been acknowledged",
                error_policy.SHORTLY_SECONDS,
            )
        elif appended == "shifted":
            partition.shift = result.base_offset - batch.sequence
            partition.destination_log_start = result.log_start
            self._take_ack(batch)
        elif on_foreign == "continue":
            self._loss_ledger.strangers_before(partition, batch.sequence, batch.first, result.base_offset)
            self._take_ack(batch)
        else:
            self._reset_position(
                partition,
                Reason.FOREIGN_WRITER,
                f"record {batch.sequence} came to offset {result.base_offset} instead of {partition.expected_offset}",
                error_policy.SLOW_SECONDS,
            )

    def _repeats(self, partition: Partition, result: Produced) -> bool:
        """The destination had that batch already: nothing is ever sent again blindly, so it is another copy's."""
        return result.log_append_time_ms >= 0 and not partition.policy.destination_append_time

    def _take_ack(self, batch: OutBatch) -> None:
        partition = batch.partition
        if batch.epoch != partition.acked_epoch:
            self._led_anew.add(partition)
        partition.acked(batch, self._loop.now)
        self._metrics.acked(batch, self._loop.now)
        if partition.queue:
            self._schedule(partition)

    def _take_refusal(self, batch: OutBatch, result: Produced) -> None:
        partition = batch.partition
        text = f"produce of source offset {batch.first}: {error_policy.name(result.error)}"
        why = produce_results.learn(
            partition, batch, result.error, f"{text}: {result.message}" if result.message else text
        )
        wait = error_policy.wait_for(why[0]) if why else error_policy.SOON_SECONDS
        reason, detail = why or (None, text)
        self._reset_position(partition, reason, detail, wait)

    def _take_loss(self, batch: OutBatch, cause: str) -> None:
        partition = batch.partition
        if batch.generation == partition.generation:
            self._destination.refresh()
            self._reset_position(partition, Reason.DESTINATION_UNREACHABLE, cause, error_policy.SOON_SECONDS)

    # --- doubt --------------------------------------------------------------------------------------------------------

    def _reset_position(
        self, partition: Partition, reason: Reason | None, detail: str, wait_seconds: tuple[float, float]
    ) -> None:
        shortest, longest = wait_seconds
        wait = min(longest, shortest * 2 ** min(partition.failures, 8)) * random.uniform(0.6, 1.0)  # noqa: S311
        partition.reset_position(reason, detail, self._loop.now + max(wait, shortest))
        self._recovery.add(partition)

    def _take_stall(self, seconds: float) -> None:
        """Others may have gone on meanwhile, and the destination may have forgotten the link. So nothing that is queued
        goes out, not even what a connection holds already, and every position is looked up again."""
        self._destination.drop_connections(f"the slot stood still for {seconds:.0f} s")
        self._reset_all(f"the slot stood still for {seconds:.0f} s")

    def _reset_all(self, detail: str) -> None:
        for partition in self._partitions.values():
            if partition.phase is not Phase.AWAIT_POSITION:
                self._reset_position(partition, None, detail, error_policy.SOON_SECONDS)

    def _take_placed(self, partition: Partition, placed: Placed) -> None:
        if partition.reason in (Reason.SOURCE_UNREACHABLE, Reason.DESTINATION_UNREACHABLE, Reason.LOOKING_UP):
            partition.clear()
        if placed.found.lost is not None:
            self._loss_ledger.destination_lost(partition, *placed.found.lost)
        if placed.unproven is not None:
            self._loss_ledger.position_unproven(partition, *placed.unproven)
        if placed.anew:
            self._loss_ledger.source_recreated(partition)
        if placed.truncated_at >= 0:
            self._truncation.diverged(partition, placed.truncated_at)

    def _take_divergence(self, partition: Partition, end: int) -> None:
        """Its source's log is not the one that was copied. Where that is told by the map alone, the last record
        decides: records of a later leader may have been copied since the last checkpoint."""
        if not partition.epoch_unproven:
            self._truncation.diverged(partition, end)
            return

        def decided(last: tuple[int, int] | None) -> None:
            partition.release()
            if last is None:
                self._truncation.diverged(partition, end)
                return
            place, epoch = last
            if place != partition.copied_to:
                partition.jump(place)  # nothing was to copy between the two, as the log was then; it is read again
            partition.prove(epoch)

        partition.hold(self._loop.now)  # fetched again before, it says the same again
        self._recovery.verify(partition, decided)

    def take_led_anew(self) -> set[Partition]:
        """Those whose source has another leader since the last call. What tells truncation is checkpointed at once."""
        taken, self._led_anew = self._led_anew, set()
        return taken

    def _stop(self, partition: Partition, reason: Reason, detail: str) -> None:
        """The source holds something that cannot be copied; look again later, somebody may have changed the rules."""
        wait = random.uniform(*error_policy.wait_for(reason))  # noqa: S311
        partition.block(reason, detail, self._loop.now + wait)

    def _promise_broken(self, partition: Partition, cause: str) -> None:
        self._reset_position(
            partition, Reason.DESTINATION_UNREACHABLE, f"writing down first: {cause}", error_policy.SHORTLY_SECONDS
        )

    def _schedule(self, partition: Partition) -> None:
        sender = self._senders.get((partition.destination_node, partition.line))
        if sender is not None:
            sender.schedule(partition)
