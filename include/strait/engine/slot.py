"""One slot: follows the plan, copies, reports changes, keeps the map's checkpoints current and writes the ledger."""

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from typing import Protocol

from strait.config.app_spec import AppSpec
from strait.config.racks import rack_of
from strait.engine.checkpointer import Checkpointer, Rounds
from strait.engine.evaluation import Evaluators
from strait.engine.garbage import Garbage
from strait.engine.heartbeat_emitter import HeartbeatEmitter
from strait.engine.ledger import IntervalLedger
from strait.engine.partition.partition import Partition
from strait.engine.replicator import Replicator
from strait.engine.reporter import Reported, Reporter
from strait.engine.slot_history import SlotHistory
from strait.engine.slot_metrics import SlotMetrics
from strait.engine.standby import is_for, plan_to_take_over, until_it_is_back
from strait.engine.zone_traffic import Side, ZoneTraffics
from strait.errors import StateError, StraitError
from strait.net.event_loop import Loop
from strait.state.admission import Admission
from strait.state.presence import Presence
from strait.state.reader import StateReader
from strait.state.schema import OffsetMapping, Plan
from strait.state.signing import Proof
from strait.state.writer import StateWriter
from strait.waiting import unix_ms

STATE_POLL_SECONDS = 0.1
PROMISE_POLL_SECONDS = 0.001  # while batches wait for a write barrier, or a partition for the map
CHECKPOINT_SECONDS = 60.0
DRAIN_SECONDS = 2.0
FIRST_LOOK_SECONDS = 5.0
_FLUSH_SECONDS = 3.0


def run_slot(
    spec: AppSpec,
    slot: int,
    application: str,
    should_stop: Callable[[], bool],
    *,
    begin: Callable[[], None] = lambda: None,
    evaluators: Evaluators | None = None,
) -> None:
    """Copy the partitions that the plan assigns to this slot, and follow the plan, until ``should_stop()`` returns
    True, the plan is stopped, or it has another number of slots than ``spec.slots`` or another producer ID, or topics to
    transform that the evaluator does not serve. A slot of a standby copies nothing while another application reports for
    it. ``begin`` is called once the link's state has been read, before anything is copied.

    Args:
        evaluators: of the task; None: topics that are to be transformed wait.

    Raises:
        StraitError: access to the state topics is denied, or they hold nothing to start from.
    """
    garbage = Garbage()
    with ExitStack() as opened:
        state = opened.enter_context(
            StateReader(spec.destination, spec.destination_name, spec.link, some_partitions=True)
        )
        plan = _first_plan(state, spec, should_stop)
        begin()
        other = opened.enter_context(Presence.of_slot(spec, slot, application)) if plan and spec.standby else None
        while True:
            if plan is not None and other is not None:
                plan = plan_to_take_over(other, state, spec, should_stop, evaluators)
            if plan is None or not is_for(plan, spec, evaluators):
                return
            ends = should_stop if other is None else until_it_is_back(should_stop, other)
            _run_alone(spec, slot, application, state, plan, ends, garbage, evaluators)
            if other is None:
                return


def _run_alone(
    spec: AppSpec,
    slot: int,
    application: str,
    state: StateReader,
    plan: Plan,
    should_stop: Callable[[], bool],
    garbage: Garbage,
    evaluators: Evaluators | None,
) -> None:
    """Run the slot to its end in a separate process."""
    writer = StateWriter(spec.destination, spec.destination_name, spec.link)
    with closing(Loop()) as loop:
        one = Slot(loop, spec, slot, state, writer, plan, SlotMetrics(spec, slot, application), evaluators)
        try:
            with closing(one.turns(should_stop)) as turns:
                for until in turns:
                    loop.run_once(max(0.0, until - time.monotonic()))
                    garbage.step(loop.now, lambda: one.idle)
        finally:
            writer.flush(_FLUSH_SECONDS)


def _first_plan(state: StateReader, spec: AppSpec, should_stop: Callable[[], bool]) -> Plan | None:
    """Return the current plan. Wait for the destination to respond and for a first plan to be published; None if
    stopped before."""
    while not should_stop():
        try:
            state.catch_up(FIRST_LOOK_SECONDS, should_stop)
        except StateError:
            if spec.group not in state.plans:
                raise
            # A record that cannot be read: the last good plan stays current, as it does in a slot that runs.
        except StraitError as error:
            if not error.retriable:
                raise
            continue
        if spec.group in state.plans and not should_stop():
            return state.plans[spec.group]
        state.poll(STATE_POLL_SECONDS)
    return None


class FollowedState(Protocol):
    """The state of a link that a slot follows; `strait.state.reader` implements it.

    Attributes:
        plans: task group -> its current plan. ``proofs``: task group -> whether that plan is proven.
        runs: (source topic, partition) -> its offset segments, by sequence_base.
        map_end: first offset of the map topic that was not read yet.
    """

    @property
    def plans(self) -> Mapping[str, Plan]: ...

    @property
    def proofs(self) -> Mapping[str, Proof]: ...

    @property
    def runs(self) -> Mapping[tuple[str, int], tuple[OffsetMapping, ...]]: ...

    @property
    def map_end(self) -> int: ...

    def poll(self) -> bool: ...

    def read_plans_again(self) -> None: ...


class Slot:
    """A slot that copies. Its owner serves the loop, so several slots may take turns in one process."""

    def __init__(
        self,
        loop: Loop,
        spec: AppSpec,
        slot: int,
        state: FollowedState,
        writer: StateWriter,
        plan: Plan,
        metrics: SlotMetrics,
        evaluators: Evaluators | None = None,
    ) -> None:
        self._loop = loop
        self._evaluators = evaluators
        self._spec = spec
        self._state = state
        self._writer = writer
        self._metrics = metrics
        self._plan = plan
        self._admission = Admission(spec)
        self._plan_topic_id: bytes | None = None
        self._map_keeper = Checkpointer(writer)
        self._heartbeat_emitter = HeartbeatEmitter(spec, slot)
        evaluator = None if evaluators is None else evaluators.of(loop)
        replicator = self._replicator = Replicator(
            loop, spec, slot, plan.producer_id, state, writer, metrics, evaluator
        )
        racks: dict[Side, str] = {
            "source": rack_of(spec.source, os.environ),
            "destination": rack_of(spec.destination, os.environ),
        }
        self._zone_traffics = ZoneTraffics(racks, lambda: replicator.traffic)
        self._ledger = IntervalLedger(
            spec, slot, metrics.application, writer, lambda: replicator.partitions, time.monotonic(), unix_ms()
        )
        self._reporter = Reporter(
            metrics,
            replicator.changes,
            SlotHistory(spec.group, slot, unix_ms()),
            lambda now: self._heartbeat_emitter.report(replicator.partition, now, unix_ms()),
        )

    @property
    def idle(self) -> bool:
        """Whether nothing is queued or in flight."""
        return self._replicator.idle

    @property
    def is_short(self) -> bool:
        """Whether more memory for fetched batches would help now."""
        return self._replicator.memory.is_short

    def use_memory(self, budget_bytes: int) -> None:
        """Use at most this much memory for fetched batches from now on."""
        self._replicator.use_memory(budget_bytes)

    def turns(self, should_stop: Callable[[], bool]) -> Generator[float]:
        """Copy until ``should_stop()`` returns True or the plan is not for this slot any more. Yields the time, in
        monotonic seconds, until which there is nothing to do unless the loop has an event: the caller serves the loop
        and asks for the next turn. Closing the generator ends the slot immediately."""
        try:
            self._follow(self._plan)
            self._replicator.start()
            yield from self._copy(should_stop)
            yield from self._drain()
            self._write_checkpoints(self._replicator.partitions)
            self._write_reports(self._reporter.close(self._plan.version, time.monotonic()))
            self._write_traffic(time.monotonic(), last=True)
            self._ledger.finish(unix_ms())
        finally:
            self._heartbeat_emitter.close()
            self._replicator.close()

    def _copy(self, should_stop: Callable[[], bool]) -> Generator[float]:
        now = time.monotonic()
        poll_at = now
        rounds = Rounds(CHECKPOINT_SECONDS, now)
        while self._serves(self._plan):
            yield now if self._replicator.unfinished else poll_at
            now = self._replicator.step()
            if placed := self._replicator.take_placed():
                self._ledger.open(placed, unix_ms())  # before their first records are sent
            if now < poll_at and not self._replicator.needs_state:
                continue
            poll_at = now + self._patience
            if not self._follow_plan():
                return
            self._writer.poll()
            self._heartbeat_emitter.beat(now, unix_ms())
            self._write_checkpoints(self._replicator.take_led_anew())
            self._write_checkpoints(rounds.due(now, lambda: self._replicator.partitions))
            self._report(now)
            self._ledger.step(now, unix_ms())
            if should_stop():
                return

    def _serves(self, plan: Plan) -> bool:
        return is_for(plan, self._spec, self._evaluators)

    @property
    def _patience(self) -> float:
        return PROMISE_POLL_SECONDS if self._replicator.needs_state else STATE_POLL_SECONDS

    def _follow_plan(self) -> bool:
        """Apply a new plan. Return False if the link's state was lost and recreated: the slot must be restarted with
        that state."""
        before, self._plan_topic_id = self._plan_topic_id, self._replicator.plan_topic_id or self._plan_topic_id
        if before not in (None, self._plan_topic_id):
            self._state.read_plans_again()
        if not self._state.poll():
            return True
        plan = self._state.plans.get(self._spec.group, self._plan)
        if _is_of_another_life(plan, self._plan):
            return False
        if plan.version > self._plan.version and plan.producer_id == self._plan.producer_id:
            self._plan = plan
            self._follow(plan)
        return True

    def _follow(self, plan: Plan) -> None:
        """Give a plan to all that follow it, within the limits of the spec."""
        proof = self._state.proofs.get(plan.group)
        self._replicator.follow(plan, self._admission.refused_topics(plan, proof))
        retired = self._replicator.take_retired()
        self._write_checkpoints(retired)  # the last checkpoint, in case no slot takes over the partition
        self._ledger.retire(retired)
        admitted = self._admission.admits_heartbeat(plan, proof)
        self._heartbeat_emitter.follow(plan if admitted else plan.model_copy(update={"heartbeat": None}))

    def _drain(self) -> Generator[float]:
        """Send the fetched records, so that the ledger's last row ends at the start of the next process."""
        self._replicator.drain()
        began = now = time.monotonic()
        while not self._replicator.idle and now < began + DRAIN_SECONDS:
            self._report(now)  # a standby would consider a slot that does not report dead
            yield now if self._replicator.unfinished else now + self._patience
            now = self._replicator.step()
            self._writer.poll()

    def _write_checkpoints(self, partitions: Iterable[Partition]) -> None:
        at_ms = unix_ms()
        for partition in partitions:
            self._map_keeper.check(partition, self._state.runs.get((partition.topic, partition.number), ()), at_ms)

    def _report(self, now: float) -> None:
        if now >= self._reporter.next_at:
            self._write_reports(self._reporter.due(self._plan.version, now))
            self._write_traffic(now)

    def _write_traffic(self, now: float, *, last: bool = False) -> None:
        zones = self._zone_traffics.due(now, last=last)
        if zones is not None:
            self._writer.write_report(self._metrics.traffic(zones))

    def _write_reports(self, reported: Iterable[Reported]) -> None:
        for record in reported:
            self._writer.write_report(record)


def _is_of_another_life(plan: Plan, followed: Plan) -> bool:
    """Return whether the state topics were lost since, and the link was created again. Its producer ID may be the same:
    a cluster that was emptied assigns the same IDs again. Plans that are read again, from the topic's start, are
    older."""
    begun_again = plan.version <= followed.version or plan.producer_id != followed.producer_id
    return begun_again and plan.published_at_ms > followed.published_at_ms
