"""One slot for one epoch: follow the plan, copy, report once a second, keep the map's checkpoints fresh."""

import gc
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from strait.config.app_spec import AppSpec
from strait.engine.checkpointer import Checkpointer, Rounds
from strait.engine.epoch_row import LedgerRow
from strait.engine.heartbeat_emitter import HeartbeatEmitter
from strait.engine.partition.partition import Partition
from strait.engine.partition.report import reason_of, state_of
from strait.engine.replicator import Replicator
from strait.engine.slot_metrics import SlotMetrics
from strait.engine.standby import is_for, plan_to_take_over, until_it_is_back
from strait.errors import StateError, StraitError
from strait.state.presence import Presence
from strait.state.reader import StateReader
from strait.state.schema import Plan
from strait.state.writer import StateWriter

STATE_POLL_SECONDS = 0.1
PROMISE_POLL_SECONDS = 0.001  # while batches wait for a gap to be written down, or a partition for the map
REPORT_SECONDS = 1.0
CHECKPOINT_SECONDS = 60.0
DRAIN_SECONDS = 2.0
_FIRST_LOOK_SECONDS = 5.0
_FLUSH_SECONDS = 3.0
_NEVER = 1_000_000  # collections of the middle generation, hours apart


def run_epoch(
    spec: AppSpec, slot: int, epoch: int, application: str, should_stop: Callable[[], bool]
) -> list[LedgerRow]:
    """Copy what the plan gives to this slot, and say what was copied.

    Ends after ``spec.epoch_seconds``, or at once when ``should_stop()`` says so or the plan is stopped or has another
    number of slots than ``spec.slots``, with which the epoch was started. The plan is followed while it runs. A slot of
    a standby copies nothing while another application reports for it.

    Raises:
        StraitError: the state topics are forbidden to us or hold nothing that can be started from.
    """
    _spare_the_collector()
    ends_at = time.monotonic() + spec.epoch_seconds

    def is_over() -> bool:
        return should_stop() or time.monotonic() >= ends_at

    rows: list[LedgerRow] = []
    with ExitStack() as opened:
        state = opened.enter_context(
            StateReader(spec.destination, spec.destination_name, spec.link, some_partitions=True)
        )
        plan = _first_plan(state, spec, is_over)
        other = opened.enter_context(Presence.of_slot(spec, slot, application)) if plan and spec.standby else None
        while True:
            if plan is not None and other is not None:
                plan = plan_to_take_over(other, state, spec, is_over)
            if plan is None or not is_for(plan, spec):
                return rows
            writer = StateWriter(spec.destination, spec.destination_name, spec.link)
            ends = should_stop if other is None else until_it_is_back(should_stop, other)
            rows += _Epoch(spec, slot, epoch, application, state, writer, plan).run(ends_at, ends)
            if other is None:
                return rows
            # Spark's epoch lasts as long as another slot's: this one stands by again meanwhile.


def _spare_the_collector() -> None:
    """Collect now, and not while copying: a full collection of all that Spark's worker has loaded takes 30 to 100 ms,
    in which nothing is copied. What an epoch leaves in cycles is little, and goes when the next one begins."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)


def _first_plan(state: StateReader, spec: AppSpec, should_stop: Callable[[], bool]) -> Plan | None:
    """The plan in force; waits for the destination to answer and for a first plan to be published."""
    while not should_stop():
        try:
            state.catch_up(_FIRST_LOOK_SECONDS, should_stop)
        except StateError:
            if spec.group not in state.plans:
                raise
            # A record that cannot be read: the last good plan stays in force, as it does in a slot that runs.
        except StraitError as error:
            if not error.retriable:
                raise
            continue
        if spec.group in state.plans and not should_stop():
            return state.plans[spec.group]
        state.poll(STATE_POLL_SECONDS)
    return None


class _Epoch:
    """The state of a running epoch."""

    def __init__(
        self,
        spec: AppSpec,
        slot: int,
        epoch: int,
        application: str,
        state: StateReader,
        writer: StateWriter,
        plan: Plan,
    ) -> None:
        self._spec = spec
        self._slot = slot
        self._epoch = epoch
        self._application = application
        self._state = state
        self._writer = writer
        self._plan = plan
        self._started_at_ms = _now_ms()
        self._metrics = SlotMetrics(spec, slot, application)
        self._map_keeper = Checkpointer(writer)
        self._heartbeat_emitter = HeartbeatEmitter(spec, slot)
        self._replicator = Replicator(spec, slot, plan.producer_id, state, writer, self._metrics)

    def run(self, ends_at: float, should_stop: Callable[[], bool]) -> list[LedgerRow]:
        try:
            self._replicator.follow(self._plan)
            self._heartbeat_emitter.follow(self._plan)
            self._replicator.start()
            self._copy(ends_at, should_stop)
            self._drain()
            self._write_checkpoints(self._replicator.partitions)
            self._report(time.monotonic())
            return self._rows()
        finally:
            self._heartbeat_emitter.close()
            self._replicator.close()
            self._writer.flush(_FLUSH_SECONDS)

    def _copy(self, ends_at: float, should_stop: Callable[[], bool]) -> None:
        now = time.monotonic()
        poll_at = report_at = now
        rounds = Rounds(CHECKPOINT_SECONDS, now)
        while now < ends_at and is_for(self._plan, self._spec):
            now = self._replicator.step(max(0.0, min(poll_at, ends_at) - now))
            if now < poll_at and not self._replicator.needs_state:
                continue
            poll_at = now + (PROMISE_POLL_SECONDS if self._replicator.needs_state else STATE_POLL_SECONDS)
            self._follow_plan()
            self._writer.poll()
            self._heartbeat_emitter.beat(now, _now_ms())
            self._write_checkpoints(self._replicator.take_led_anew())
            self._write_checkpoints(rounds.due(now, lambda: self._replicator.partitions))
            if now >= report_at:
                report_at = now + REPORT_SECONDS
                self._report(now)
            if should_stop():
                return

    def _follow_plan(self) -> None:
        if not self._state.poll():
            return
        plan = self._state.plans.get(self._spec.group, self._plan)
        if plan.version > self._plan.version and plan.producer_id == self._plan.producer_id:
            self._plan = plan
            retired = len(self._replicator.retired)
            self._replicator.follow(plan)
            self._write_checkpoints(
                self._replicator.retired[retired:]
            )  # the last word on what nobody may take up again
            self._heartbeat_emitter.follow(plan)

    def _drain(self) -> None:
        """What was fetched goes out, so that the ledger's row ends where the next epoch begins."""
        self._replicator.drain()
        began = now = time.monotonic()
        report_at = now  # a standby would take a slot that says nothing for gone
        while not self._replicator.idle and now < began + DRAIN_SECONDS:
            if now >= report_at:
                report_at = now + REPORT_SECONDS
                self._report(now)
            now = self._replicator.step(
                STATE_POLL_SECONDS if not self._replicator.needs_state else PROMISE_POLL_SECONDS
            )
            self._writer.poll()

    def _write_checkpoints(self, partitions: Iterable[Partition]) -> None:
        at_ms = _now_ms()
        for partition in partitions:
            self._map_keeper.check(partition, self._state.runs.get((partition.topic, partition.number), ()), at_ms)

    def _report(self, now: float) -> None:
        partitions = self._replicator.partitions
        heartbeat = self._heartbeat_emitter.report(partitions, now, _now_ms())
        for report in self._metrics.reports(partitions, self._plan.version, now, heartbeat):
            self._writer.write_report(report)

    def _rows(self) -> list[LedgerRow]:
        ended_at_ms = _now_ms()
        partitions = [*self._replicator.partitions, *self._replicator.retired]
        return [self._row(partition, ended_at_ms) for partition in partitions]

    def _row(self, partition: Partition, ended_at_ms: int) -> LedgerRow:
        position, totals = partition.position, partition.totals
        reason, _ = reason_of(partition)
        return LedgerRow(
            link=self._spec.link,
            group=self._spec.group,
            epoch=self._epoch,
            slot=self._slot,
            application=self._application,
            topic=partition.topic,
            partition=partition.number,
            destination=partition.destination,
            source_from=totals.first_source,
            source_to=position.copied_to,
            destination_from=totals.first_offset,
            destination_to=-1 if position.run is None else position.expected_offset,
            records=totals.records,
            batches=totals.batches,
            bytes=totals.bytes,
            digest=totals.digest,
            state=state_of(partition),
            reason=reason.value if reason else "",
            started_at_ms=self._started_at_ms,
            ended_at_ms=ended_at_ms,
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
