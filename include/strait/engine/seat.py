"""One slot of one link in a task of a pool, beside slots of other links.

An error ends this slot alone. It is started again, after a longer pause if it fails soon.
"""

import logging
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing

import psutil

from strait.config.app_spec import AppSpec
from strait.config.app_spec import Seat as Place
from strait.engine.reporter import WHOLE_SECONDS
from strait.engine.slot import STATE_POLL_SECONDS, Slot
from strait.engine.slot_metrics import SlotMetrics, Usage
from strait.net.event_loop import Loop
from strait.state.feed import StateFeed
from strait.state.presences import OtherSlot
from strait.state.report_changes import FailureReport
from strait.state.schema import Plan
from strait.state.writer import StateProducer, StateWriter
from strait.waiting import unix_ms

log = logging.getLogger(__name__)

RESTART_SECONDS = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Pauses before a slot that failed is started again; the last one also after more failures."""
SETTLED_SECONDS = 600.0
"""A slot that ran this long is started again after the first pause."""


class Seat:
    """Reads the link's state, and copies while there is a plan for the slot. `turn` does the work that is due.

    Args:
        hub: the loop of the task, which calls ``is_due`` when this slot has something to do.
        neighbors: returns how many slots share the process.
        may_copy: returns whether the task has begun to copy.
        other: another instance of the slot, while which reports this one copies nothing; None: it is no standby.
    """

    def __init__(
        self,
        place: Place,
        spec: AppSpec,
        application: str,
        hub: Loop,
        feed: StateFeed,
        producer: StateProducer,
        is_due: Callable[["Seat"], None],
        neighbors: Callable[[], int],
        may_copy: Callable[[], bool] = lambda: True,
        other: OtherSlot | None = None,
    ) -> None:
        self.place = place
        self.spec = spec
        self.due_at = 0.0
        """When there is something to do at the latest, in monotonic seconds."""
        self.ended = False
        self.failure = ""
        """Why it was started again the last time; "" if it never failed."""
        self._application = application
        self._hub = hub
        self._producer = producer
        self._is_due: Callable[[], None] = lambda: is_due(self)
        self._neighbors = neighbors
        self._may_copy = may_copy
        self._other = other
        self._state = feed.follow(place.link, self._is_due)
        self._ending = False
        self._loop: Loop | None = None
        self._slot: Slot | None = None
        self._cpu_seconds = 0.0
        self._failures = 0
        self._began_at = 0.0
        self._turns: Iterator[float] = self._lives(0.0)

    @property
    def idle(self) -> bool:
        """Whether nothing is queued or in flight."""
        return self._slot is None or self._slot.idle

    @property
    def has_read(self) -> bool:
        """Whether the link's state is read."""
        return self._state.caught_up

    @property
    def is_short(self) -> bool:
        """Whether more memory for fetched batches would help now."""
        return self._slot is not None and self._slot.is_short

    def use_memory(self, budget_bytes: int) -> None:
        """Use at most this much memory for fetched batches from now on."""
        self.spec = self.spec.model_copy(update={"slot_memory_bytes": budget_bytes})
        if self._slot is not None:
            self._slot.use_memory(budget_bytes)

    def on_ready(self, readable: bool, writable: bool) -> None:
        self._is_due()

    def turn(self) -> None:
        """Do the work that is due. Sets ``due_at``, or ``ended`` after `end`."""
        began = time.thread_time()
        try:
            if self._loop is not None:
                self._loop.run_once(0.0)
            until = next(self._turns)
            self.due_at = until if self._loop is None else min(until, self._loop.next_at)
        except StopIteration:
            self._leave()
        except Exception as error:  # noqa: BLE001  a defect, which must not stop the other links
            self._fail(error)
        finally:
            self._cpu_seconds += time.thread_time() - began

    def end(self) -> None:
        """Ask it to send the fetched records and to end; further turns do that."""
        self._ending = True
        self._is_due()

    def abandon(self) -> None:
        """End it immediately."""
        self._close_turns()
        self._leave()

    def _leave(self) -> None:
        if not self.ended:
            self.ended = True
            self._state.close()
            if self._other is not None:
                self._other.close()

    def _fail(self, error: Exception) -> None:
        self._close_turns()
        if time.monotonic() - self._began_at > SETTLED_SECONDS:
            self._failures = 0
        pause = RESTART_SECONDS[min(self._failures, len(RESTART_SECONDS) - 1)]
        self._failures += 1
        self.failure = f"{type(error).__name__}: {error}"
        log.error("slot %s failed and is started again in %g s: %s", self.place, pause, error, exc_info=error)
        self.due_at = time.monotonic()
        self._turns = self._lives(self.due_at + pause)

    def _close_turns(self) -> None:
        if isinstance(self._turns, Generator):
            try:
                self._turns.close()
            except Exception:  # the same error may occur again while it is closed
                log.exception("slot %s: closing it", self.place)

    def _lives(self, start_at: float) -> Generator[float]:
        """Yield the end of each turn's work; see `Slot.turns`. Report the failure until it starts again."""
        while (left := start_at - time.monotonic()) > 0 and not self._ending:
            self._report_failure(left)
            yield min(start_at, time.monotonic() + WHOLE_SECONDS)
        while (plan := (yield from self._plan_to_copy())) is not None:
            self._began_at = time.monotonic()
            yield from self._life(plan)
            current = self._state.plans.get(plan.group)
            if (
                not self._ending
                and not self._other_is_back()
                and current is not None
                and not current.stopped
                and current.slots == plan.slots
            ):
                self._state.read_from_start()  # the link was created again: its former map must not be used

    def _report_failure(self, restart_seconds: float) -> None:
        report = FailureReport(
            group=self.place.group,
            slot=self.place.slot,
            application=self._application,
            at_ms=unix_ms(),
            failure=self.failure,
            restart_seconds=restart_seconds,
        )
        self._writer().write_report(report)

    def _writer(self) -> StateWriter:
        return StateWriter(self.spec.destination, self.spec.destination_name, self.spec.link, self._producer)

    def _plan_to_copy(self) -> Generator[float, None, Plan | None]:
        """Wait until the link's state is read and its plan has this slot. None if the seat ends before."""
        told = ""
        while not self._ending:
            plan = self._state.plans.get(self.place.group)
            is_its = plan is not None and not plan.stopped and self.place.slot < plan.slots
            if is_its and self._state.caught_up and self._may_copy() and (self._other is None or self._other.is_gone):
                if self._other is not None:
                    log.warning("slot %s takes over: no other instance reports", self.place)
                return plan
            if (trouble := str(self._state.trouble or "")) and trouble != told:
                log.warning("slot %s waits: %s", self.place, trouble)
                told = trouble
            yield time.monotonic() + STATE_POLL_SECONDS
        return None

    def _life(self, plan: Plan) -> Generator[float]:
        """Copy by this plan and its successors, until one of them is not for this slot."""
        spec = self.spec.model_copy(update={"slots": plan.slots})
        metrics = SlotMetrics(spec, self.place.slot, self._application, self._usage)
        writer = self._writer()
        with closing(Loop()) as loop:
            self._hub.watch(loop.fileno(), self, writable=False)
            try:
                slot = Slot(loop, spec, self.place.slot, self._state, writer, plan, metrics)
                self._loop, self._slot = loop, slot
                with closing(slot.turns(lambda: self._ending or self._other_is_back())) as turns:
                    yield from turns
            finally:
                self._loop = self._slot = None
                self._hub.forget(loop.fileno())

    def _other_is_back(self) -> bool:
        return self._other is not None and self._other.is_back

    def _usage(self) -> Usage:
        """Return the CPU time of this slot's own turns, and its equal part of the process's memory."""
        memory_bytes = psutil.Process().memory_info().rss // max(1, self._neighbors())
        return Usage(self._cpu_seconds, memory_bytes)
