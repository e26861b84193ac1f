"""The pump of one slot: partitions given by the plan, fetched from their leaders, produced to their copies' leaders.

One thread and no locks. Every partition stands for itself: what goes wrong with one is shown on it and stops no other.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kafka.protocol.consumer import ListOffsetsResponse

from strait.engine import codes, recovery
from strait.engine.buffers import BufferPool
from strait.engine.cluster import Cluster
from strait.engine.fetcher import Fetcher, chain_digest
from strait.engine.lookup import EARLIEST, Lookup, list_offsets_request, offsets_of
from strait.engine.loop import Loop
from strait.engine.meter import Meter
from strait.engine.partition import OutBatch, Partition, Phase
from strait.engine.sender import Sender
from strait.errors import StraitError
from strait.model import topic_id_text, topic_uuid
from strait.reasons import Reason
from strait.spec import AppSpec
from strait.state.schema import Plan, Run
from strait.wire.produce import Produced

FIND_SECONDS = 0.02
STALL_SECONDS = 30.0
"""A process that stood still this long (suspended, swapped out) may hold batches from before others went on. It looks
every position up again before it sends anything."""

RunsOf = Mapping[tuple[str, int], Sequence[Run]]
Key = tuple[str, int]


class Pump:
    """Copies what the plan gives to one slot, until it is closed. ``runs`` is the map, kept up to date by its owner."""

    def __init__(self, spec: AppSpec, slot: int, producer_id: int, runs: RunsOf, meter: Meter) -> None:
        self._slot = slot
        self._producer_id = producer_id
        self._runs = runs
        self._meter = meter
        self._loop = Loop()
        self._pool = BufferPool(spec.slot_memory_bytes)
        self._source = Cluster(self._loop, self._pool, spec.source_name, spec.source)
        self._destination = Cluster(self._loop, self._pool, spec.destination_name, spec.destination)
        self._source.on_metadata = self._assign_sources
        self._destination.on_metadata = self._assign_destinations
        self._partitions: dict[Key, Partition] = {}
        self._retired: list[Partition] = []
        self._fetchers: dict[int, Fetcher] = {}
        self._senders: dict[int, Sender] = {}
        self._to_find: set[Partition] = set()
        self._fetching = True
        self._expire_at = 0.0
        self._find_at = 0.0

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
        for key in wanted.keys() - self._partitions.keys():
            topic = wanted[key]
            self._partitions[key] = Partition(
                key[0], key[1], topic.destination, topic_uuid(topic.source_id), topic_uuid(topic.destination_id)
            )
            self._to_find.add(self._partitions[key])
        self._source.interest = {partition.topic for partition in self._partitions.values()}
        self._destination.interest = {partition.destination for partition in self._partitions.values()}
        self._source.refresh()
        self._destination.refresh()

    def start(self) -> None:
        self._source.keep_fresh()
        self._destination.keep_fresh()

    def step(self, max_wait_seconds: float) -> float:
        """Serve what is due; wait at most that long for it. Returns the time, in seconds of a monotonic clock."""
        before = self._loop.now
        self._loop.run_once(max_wait_seconds)
        if self._loop.now - before > STALL_SECONDS + max_wait_seconds:
            self._doubt_all(f"the slot stood still for {self._loop.now - before:.0f} s")
        if self._loop.now >= self._expire_at:
            self._expire_at = self._loop.now + 1.0
            self._source.expire()
            self._destination.expire()
        if self._to_find and self._loop.now >= self._find_at:
            self._find_at = self._loop.now + FIND_SECONDS
            self._find()
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
        self._to_find.discard(partition)
        self._retired.append(partition)

    # --- who leads what -----------------------------------------------------------------------------------------------

    def _assign_sources(self) -> None:
        """Metadata of the source came: each partition is fetched from its leader."""
        led: dict[int, list[Partition]] = defaultdict(list)
        troubled = False
        for partition in self.partitions:
            node = self._source.leader(partition.topic, partition.number).node
            problem = self._source_problem(partition, node)
            if problem is not None:
                partition.block(*problem, until=0.0)
                troubled = True
            else:
                led[node].append(partition)
        if troubled:
            self._loop.call_later(codes.SHORTLY_SECONDS[0], self._source.refresh)
        for node in led.keys() - self._fetchers.keys():
            self._fetchers[node] = Fetcher(
                self._loop,
                self._pool,
                self._source,
                node,
                producer_id=self._producer_id,
                emit=self._emit,
                out_of_range=self._look_into_range,
            )
        for node, fetcher in self._fetchers.items():
            fetcher.reply_bytes = Fetcher.share_of(self._pool.budget_bytes, len(self._fetchers))
            fetcher.assign(led.get(node, ()))

    def _source_problem(self, partition: Partition, node: int) -> tuple[Reason, str] | None:
        topic = partition.topic
        error = self._source.topic_errors.get(topic, 0)
        if error == 29:
            return Reason.SOURCE_DENIED, f"metadata of {topic}: {codes.name(error)}"
        if error == 3:
            return Reason.SOURCE_MISSING, f"the source has no topic {topic} any more"
        if self._source.topic_ids.get(topic, partition.source_id) != partition.source_id:
            return Reason.SOURCE_RECREATED, f"topic {topic} is not the one that was planned: its id has changed"
        if node < 0:
            return Reason.SOURCE_LEADERLESS, f"partition {partition.number} has no leader"
        return None

    def _assign_destinations(self) -> None:
        """Metadata of the destination came: whoever's leader has changed is in doubt, who waited for one is looked up."""
        for partition in self.partitions:
            node = self._destination.leader(partition.destination, partition.number).node
            if node != partition.destination_node:
                partition.destination_node = node
                if partition.phase is not Phase.LOST:
                    self._doubt(partition, None, "the destination's leader has changed", codes.SOON_SECONDS)
            if node >= 0 and node not in self._senders:
                self._senders[node] = Sender(
                    self._loop, self._destination, node, on_result=self._take_result, on_lost=self._take_loss
                )

    def _destination_problem(self, partition: Partition) -> tuple[Reason, str] | None:
        topic = partition.destination
        error = self._destination.topic_errors.get(topic, 0)
        if error == 29:
            return Reason.DESTINATION_DENIED, f"metadata of {topic}: {codes.name(error)}"
        if error == 3:
            return Reason.DESTINATION_MISSING, f"the destination has no topic {topic}"
        if self._destination.topic_ids.get(topic, partition.destination_id) != partition.destination_id:
            return Reason.DESTINATION_RECREATED, f"topic {topic} is not the one that was planned: its id has changed"
        if partition.destination_node < 0 and (topic, partition.number) in self._destination.leaders:
            return Reason.DESTINATION_LEADERLESS, f"partition {partition.number} has no leader"
        return None

    # --- the way of a batch -------------------------------------------------------------------------------------------

    def _emit(self, batch: OutBatch) -> None:
        partition = batch.partition
        partition.enqueue(batch)
        sender = self._senders.get(partition.destination_node)
        if sender is not None:
            sender.schedule(partition)

    def _take_result(self, batch: OutBatch, result: Produced) -> None:
        partition = batch.partition
        if batch.generation != partition.generation:
            return  # from before a doubt: the look-up finds out whether it counts
        if result.error in codes.CONFLICTS:
            partition.conflicts += 1
            self._doubt(partition, None, codes.name(result.error), codes.SOON_SECONDS)
        elif result.error:
            answer = codes.answer(codes.PRODUCE, result.error, Reason.BATCH_REFUSED)
            if answer.refresh:
                self._destination.refresh()
            text = f"produce of record {batch.sequence}: {codes.name(result.error)}"
            self._doubt(
                partition, answer.reason, f"{text}: {result.message}" if result.message else text, answer.wait_seconds
            )
        elif result.base_offset != partition.expected_offset:
            self._doubt(
                partition,
                Reason.FOREIGN_WRITER,
                f"record {batch.sequence} came to offset {result.base_offset} instead of {partition.expected_offset}",
                codes.SLOW_SECONDS,
            )
        else:
            partition.acked(batch, self._loop.now)
            partition.digest = chain_digest(partition.digest, batch.source_crc)
            self._meter.acked(batch, self._loop.now)
            if partition.queue:
                self._senders[partition.destination_node].schedule(partition)

    def _take_loss(self, batch: OutBatch, cause: str) -> None:
        partition = batch.partition
        if batch.generation == partition.generation:
            self._destination.refresh()
            self._doubt(partition, Reason.DESTINATION_UNREACHABLE, cause, codes.SOON_SECONDS)

    # --- doubt and the one recovery path ------------------------------------------------------------------------------

    def _doubt(
        self, partition: Partition, reason: Reason | None, detail: str, wait_seconds: tuple[float, float]
    ) -> None:
        shortest, longest = wait_seconds
        wait = min(longest, shortest * 2 ** min(partition.failures, 8)) * random.uniform(0.6, 1.0)  # noqa: S311
        partition.doubt(reason, detail, self._loop.now + max(wait, shortest))
        self._to_find.add(partition)

    def _doubt_all(self, detail: str) -> None:
        for partition in self._partitions.values():
            if partition.phase is not Phase.LOST:
                self._doubt(partition, None, detail, codes.SOON_SECONDS)

    def _find(self) -> None:
        """Look up those whose time has come and of whom nothing is in flight any more."""
        by_node: dict[int, list[Partition]] = defaultdict(list)
        for partition in self._to_find:
            if partition.in_flight or partition.retry_at > self._loop.now:
                continue
            problem = self._destination_problem(partition)
            if problem is None and self._run_of(partition) is None:
                problem = Reason.MAP_RUN_MISSING, "the map has no run for these two topics"
            if problem is not None:
                partition.reason, partition.detail = problem
                partition.retry_at = self._loop.now + codes.SHORTLY_SECONDS[0]
                self._destination.refresh()
            elif partition.destination_node >= 0:
                by_node[partition.destination_node].append(partition)
        for node, partitions in by_node.items():
            self._look_up(node, partitions)

    def _look_up(self, node: int, partitions: list[Partition]) -> None:
        channel = self._destination.channel(node)
        if channel is None:
            trouble = self._destination.trouble(node)
            for partition in partitions if trouble else ():
                partition.reason, partition.detail = Reason.DESTINATION_UNREACHABLE, trouble
            return
        self._to_find.difference_update(partitions)
        for partition in partitions:
            partition.recoveries += 1
        Lookup(
            channel,
            self._producer_id,
            partitions,
            self._newest_run,
            on_outcome=self._take_outcome,
            on_failed=self._look_up_failed,
        ).start()

    def _take_outcome(self, partition: Partition, run: Run, outcome: recovery.Found | recovery.Refused) -> None:
        if isinstance(outcome, recovery.Refused):
            self._doubt(partition, outcome.reason, outcome.detail, codes.wait_for(outcome.reason))
            return
        partition.found(run, outcome.sequence)
        if partition.reason is Reason.DESTINATION_UNREACHABLE:
            partition.clear()

    def _look_up_failed(self, partition: Partition, code: int, cause: str) -> None:
        answer = codes.answer(codes.PRODUCE, code, Reason.DESTINATION_UNREACHABLE)
        self._destination.refresh()
        text = f"looking up {cause}: {codes.name(code)}" if code else f"looking up the position: {cause}"
        self._doubt(partition, answer.reason, text, answer.wait_seconds)

    def _run_of(self, partition: Partition) -> Run | None:
        """The newest run for exactly these two topics."""
        ids = (topic_id_text(partition.source_id), topic_id_text(partition.destination_id))
        runs = [
            run
            for run in self._runs.get((partition.topic, partition.number), ())
            if (run.source_id, run.destination_id) == ids and run.destination == partition.destination
        ]
        return runs[-1] if runs else None

    def _newest_run(self, partition: Partition) -> Run:
        run = self._run_of(partition)
        if run is None:  # it was there when the look-up began, and runs are only ever added
            raise StraitError(f"{partition}: its run vanished from the map during a look-up")
        return run

    # --- the source's ends --------------------------------------------------------------------------------------------

    def _look_into_range(self, partition: Partition) -> None:
        """The source does not hold the position any more: is it before its log's start or behind its end?"""
        node = self._source.leader(partition.topic, partition.number).node
        channel = self._source.channel(node) if node >= 0 else None
        partition.block(Reason.SOURCE_LEADERLESS, "the range of its log is being looked up", self._loop.now + 1.0)
        if channel is not None:
            request = list_offsets_request(channel.version(2, (6, 7)), [(partition.topic, partition.number)], EARLIEST)
            channel.ask(
                request,
                ListOffsetsResponse,
                on_reply=partial(self._take_range, partition, partition.position),
                on_lost=lambda _: self._source.refresh(),
            )

    def _take_range(self, partition: Partition, position: int, reply: Any) -> None:
        error, log_start = next(iter(offsets_of(reply).values()))
        if error or partition.position != position:
            return
        until = self._loop.now + codes.wait_for(Reason.SOURCE_DATA_LOST)[0]
        if position < log_start:
            partition.block(
                Reason.SOURCE_DATA_LOST,
                f"offsets {position} to {log_start - 1} were removed before they were copied",
                until,
            )
        else:
            partition.block(
                Reason.SOURCE_TRUNCATED, f"its log ends before offset {position}, up to which it was copied", until
            )
