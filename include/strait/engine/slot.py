"""One slot for one epoch: follow the plan, pump, report once a second, keep the map's checkpoints fresh."""

import time
from collections.abc import Callable

from strait.engine.ledger import LedgerRow
from strait.engine.meter import Meter
from strait.engine.partition import Partition
from strait.engine.pump import Pump
from strait.errors import StateError, StraitError
from strait.offset_map import destination_offset, source_offset
from strait.spec import AppSpec
from strait.state.reader import StateReader
from strait.state.schema import Plan
from strait.state.writer import StateWriter

STATE_POLL_SECONDS = 0.1
REPORT_SECONDS = 1.0
CHECKPOINT_SECONDS = 60.0
DRAIN_SECONDS = 2.0
_FIRST_LOOK_SECONDS = 5.0
_FLUSH_SECONDS = 3.0


def run_epoch(
    spec: AppSpec, slot: int, epoch: int, application: str, should_stop: Callable[[], bool]
) -> list[LedgerRow]:
    """Copy what the plan gives to this slot, and say what was copied.

    Ends after ``spec.epoch_seconds``, or at once when ``should_stop()`` says so or the plan is stopped or has another
    number of slots than ``spec.slots``, with which the epoch was started. The plan is followed while it runs.

    Raises:
        StraitError: the state topics are forbidden to us or hold nothing that can be started from.
    """
    ends_at = time.monotonic() + spec.epoch_seconds
    with StateReader(spec.destination, spec.destination_name, spec.link) as state:
        plan = _first_plan(state, spec, lambda: should_stop() or time.monotonic() >= ends_at)
        if plan is None or plan.stopped or plan.slots != spec.slots:
            return []
        writer = StateWriter(spec.destination, spec.destination_name, spec.link)
        return _Epoch(spec, slot, epoch, application, state, writer, plan).run(ends_at, should_stop)


def _first_plan(state: StateReader, spec: AppSpec, should_stop: Callable[[], bool]) -> Plan | None:
    """The plan in force; waits for the destination to answer and for a first plan to be published."""
    while not should_stop():
        try:
            state.catch_up(_FIRST_LOOK_SECONDS)
        except StateError:
            if spec.group not in state.plans:
                raise
            # A record that cannot be read: the last good plan stays in force, as it does in a slot that runs.
        except StraitError as error:
            if not error.retriable:
                raise
            continue
        if spec.group in state.plans:
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
        self._started_at_ms = int(time.time() * 1000)
        self._meter = Meter(spec, slot, application)
        self._pump = Pump(spec, slot, plan.producer_id, state.runs, self._meter)

    def run(self, ends_at: float, should_stop: Callable[[], bool]) -> list[LedgerRow]:
        try:
            self._pump.follow(self._plan)
            self._pump.start()
            self._copy(ends_at, should_stop)
            self._drain()
            self._write_checkpoints()
            self._report(time.monotonic())
            return self._rows()
        finally:
            self._pump.close()
            self._writer.flush(_FLUSH_SECONDS)

    def _copy(self, ends_at: float, should_stop: Callable[[], bool]) -> None:
        now = time.monotonic()
        poll_at = report_at = now
        checkpoint_at = now + CHECKPOINT_SECONDS
        while now < ends_at and not self._plan.stopped and self._plan.slots == self._spec.slots:
            now = self._pump.step(max(0.0, min(poll_at, ends_at) - now))
            if now < poll_at:
                continue
            poll_at = now + STATE_POLL_SECONDS
            self._follow_plan()
            self._writer.poll()
            if now >= checkpoint_at:
                checkpoint_at = now + CHECKPOINT_SECONDS
                self._write_checkpoints()
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
            self._pump.follow(plan)

    def _drain(self) -> None:
        """What was fetched goes out, so that the ledger's row ends where the next epoch begins."""
        self._pump.drain()
        deadline = time.monotonic() + DRAIN_SECONDS
        while not self._pump.idle and time.monotonic() < deadline:
            self._pump.step(STATE_POLL_SECONDS)

    def _write_checkpoints(self) -> None:
        """Refresh the runs of what has moved. Never backwards: another copy of this link may be ahead of us."""
        at_ms = int(time.time() * 1000)
        for partition in self._pump.partitions:
            run, end = partition.run, partition.acked_sequence
            if run is None or end <= partition.checkpoint_sequence:
                continue
            known = self._state.runs.get((partition.topic, partition.number), ())
            newest = max((item.sequence_end for item in known if item.sequence_base == run.sequence_base), default=0)
            if end > newest:
                self._writer.write_run(run.model_copy(update={"sequence_end": end, "checkpoint_at_ms": at_ms}))
            partition.checkpoint_sequence = end

    def _report(self, now: float) -> None:
        for report in self._meter.reports(self._pump.partitions, self._plan.version, now):
            self._writer.write_report(report)

    def _rows(self) -> list[LedgerRow]:
        ended_at_ms = int(time.time() * 1000)
        partitions = [*self._pump.partitions, *self._pump.retired]
        return [self._row(partition, ended_at_ms) for partition in partitions]

    def _row(self, partition: Partition, ended_at_ms: int) -> LedgerRow:
        run = partition.run
        first, last = partition.first_sequence, partition.acked_sequence
        return LedgerRow(
            link=self._spec.link,
            group=self._spec.group,
            epoch=self._epoch,
            slot=self._slot,
            application=self._application,
            topic=partition.topic,
            partition=partition.number,
            destination=partition.destination,
            source_from=-1 if run is None else source_offset(run, first),
            source_to=-1 if run is None else source_offset(run, last),
            destination_from=-1 if run is None else destination_offset(run, first),
            destination_to=-1 if run is None else destination_offset(run, last),
            records=partition.records,
            batches=partition.batches,
            bytes=partition.bytes,
            digest=partition.digest,
            state=partition.report(ended_at_ms).state,
            reason=partition.reason.value if partition.reason else "",
            started_at_ms=self._started_at_ms,
            ended_at_ms=ended_at_ms,
        )
