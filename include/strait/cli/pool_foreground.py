"""`strait run --pool`: the control cycles of all links of a pool, and the pool's one Spark application, in the foreground
until a signal.

A link whose clusters do not respond, or whose plan cannot be made, does not stop the others: it is planned again later,
and copies by its current plan meanwhile.
"""

import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from strait.cli.cycles import Cycles
from strait.cli.foreground import (
    LOOK_SECONDS,
    PROGRESS_SECONDS,
    STOP_GRACE_SECONDS,
    folder_of,
)
from strait.cli.kept_application import KeptApplication
from strait.cli.long_work import now_and_then, stop_signals
from strait.cli.options import Output
from strait.cli.progress import Progress
from strait.cli.silence import Silence, patience_of, why_hangs
from strait.config import naming
from strait.config.app_spec import AppSpec, PoolSpec, Seat
from strait.config.home import home
from strait.config.links import LinksFile, Pool, load, pool_of
from strait.control.outcome import Outcome
from strait.control.plane import Control
from strait.control.pool import plans_in_force
from strait.errors import LaunchError, SetupError, StraitError
from strait.launch.applications import Replace, Update, decide
from strait.launch.base import Application, State
from strait.launch.launchers import launcher_for
from strait.model import TopicPartition
from strait.planning.assignment.pools import pool_spec
from strait.planning.review.effects import Effects
from strait.planning.status.status import Status
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import Plan
from strait.text import duration, plural
from strait.waiting import unix_ms

BALANCE_SECONDS = 60.0
"""Time between two placements by measured load. New slots are placed immediately."""
_QUERIES_AT_ONCE = 8


def run_pool_in_foreground(config: Path, pool: str, interval_seconds: float, output: Output, *, start: bool) -> None:
    """Run until SIGINT or SIGTERM, or until all links of the pool are stopped.

    Raises:
        ConfigError: the links file is invalid, or has no such pool.
        StraitError: it cannot be started, or its application reports that only a change of configuration helps.
    """
    with stop_signals() as stopped:
        file = load(config)
        _require_cores(pool, pool_of(file, pool, f"links file {config}"))
        with folder_of(f"pool.{pool}") as folder:
            PoolForeground(file, pool, folder, output, stopped).run(interval_seconds, start=start)


class Member:
    """One link of the pool: its control cycles, its plans and its progress."""

    def __init__(self, file: LinksFile, link: str, folder: Path, output: Output) -> None:
        self.link = link
        self.progress = Progress(link, output=output, named=True)
        self.plans: Mapping[str, Plan] = {}
        self._file = file
        self._folder = folder
        self._control = Control(file, link)
        self._cycles: Cycles | None = None
        self._status: Future[tuple[Status, ...]] | None = None
        self._before: Future[dict[TopicPartition, int]] | None = None
        self._counts = False  # whether `progress` has the counts of records copied before
        self._former: Future[Mapping[str, Plan]] | None = None
        self._last_error = ""
        self._pending: Effects = ()
        self.silence = Silence(patience_of(file.links[link].spark))

    def begin(self, interval_seconds: float, *, start: bool) -> None:
        """Plan again and again, on a separate thread."""
        working = now_and_then(lambda text: self.progress.say("working", text))
        self._cycles = Cycles(self._file, self.link, interval_seconds, working, start=start)
        self._cycles.start()

    def look(self, pool: ThreadPoolExecutor) -> None:
        """Take the results of the control cycles. While these fail, the plans are those that were published before."""
        assert self._cycles is not None
        if self._former is not None and self._former.done():
            self.plans = self.plans or self._former.result()
            self._former = None
        while not self._cycles.results.empty():
            result = self._cycles.results.get()
            if isinstance(result, StraitError):
                self._tell(result)
                if not self.plans and self._former is None:
                    self._former = pool.submit(plans_in_force, ConfiguredLink.of(self._file, self.link))
            elif isinstance(result, Outcome):
                is_first = not self.plans
                self.plans = result.plans
                if is_first or result.published or result.created or result.done or result.pending != self._pending:
                    self.progress.say("planned", result.as_text(), plan_version=result.plan.version)
                self._pending = result.pending
                self._last_error = ""
        if not self._counts:
            self._begin_to_count(pool)

    def specs(self) -> list[AppSpec]:
        """Return the specs of the task groups that run."""
        return [
            self._control.spec(
                plan, ledger_dir=home() / "ledger" / self.link / group, checkpoint_dir=self._folder / "checkpoints"
            )
            for group, plan in sorted(self.plans.items())
            if not plan.stopped
        ]

    @property
    def is_stopped(self) -> bool:
        """Whether the link has plans and all of them are stopped."""
        return bool(self.plans) and all(plan.stopped for plan in self.plans.values())

    def show(self, pool: ThreadPoolExecutor) -> Mapping[Seat, float]:
        """Print the progress as last seen, and ask for the next; the destination may not respond. Return the bytes per
        second of the slots that report."""
        if not self._counts:
            return {}
        status, loads = self._status, {}
        if status is not None and status.done():
            self._status = None
            try:
                groups = status.result()
            except StraitError as error:
                self.silence.forget()
                self._tell(error)
            else:
                self.silence.hear(groups)
                self.progress.show(groups)
                loads = {
                    Seat(self.link, group.group, slot.slot): slot.bytes_per_second
                    for group in groups
                    for slot in group.slots
                    if not slot.silent
                }
        if self._status is None and self.plans:
            self._status = pool.submit(self._control.statuses)
        return loads

    def _begin_to_count(self, pool: ThreadPoolExecutor) -> None:
        """Read the number of records that the link had copied before, from which progress is counted; retry if that fails."""
        before = self._before
        if before is not None and before.done():
            self._before = None
            try:
                self.progress.begin(before.result())
                self._counts = True
            except StraitError as error:
                self._tell(error)
        if not self._counts and self._before is None and self.plans:
            self._before = pool.submit(self._control.written)

    def end(self, timeout_seconds: float) -> None:
        """Stop planning."""
        if self._cycles is not None:
            self._cycles.stop(timeout_seconds)

    def _tell(self, error: StraitError) -> None:
        """Print an error once, until another error occurs or a cycle succeeds."""
        if str(error) != self._last_error:
            self._last_error = str(error)
            self.progress.say("error", f"error: {error}; copying goes on by the plan in force", error=str(error))


class PoolForeground:
    """One `strait run --pool`."""

    def __init__(self, file: LinksFile, pool: str, folder: Path, output: Output, stopped: threading.Event) -> None:
        self._name = pool
        self._pool = file.pools[pool]
        self._folder = folder
        self._stopped = stopped
        self._progress = Progress(f"pool {pool}", output=output, named=True)
        self._members = [Member(file, link, folder, output) for link in file.members(pool)]
        self._loads: dict[Seat, float] = {}
        self._balance_at = -math.inf
        self._found: Application | None = None
        self._patience = patience_of(self._pool.spark)
        self._current: PoolSpec | None = None
        self._waiting: PoolSpec | None = None  # the standby's
        launcher = launcher_for(self._pool.spark, folder / "applications", parent_pid=os.getpid())
        first, second = (
            KeptApplication(
                f"pool {pool}",
                naming.pool_application_name(pool, standby=standby),
                folder,
                launcher,
                self._pool.spark,
                self._progress,
            )
            for standby in (False, True)
        )
        self._application = first
        self._standby = second if self._pool.standby else None

    def run(self, interval_seconds: float, *, start: bool) -> None:
        """See `run_pool_in_foreground`."""
        if not self._members:
            self._progress.say("stopped", "no link names this pool")
            return
        for member in self._members:
            member.begin(interval_seconds, start=start)
        pool = ThreadPoolExecutor(_QUERIES_AT_ONCE)
        try:
            self._watch(pool)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for member in self._members:
                member.end(0.0)
            self._end_applications()
            for member in self._members:
                member.end(1.0 / len(self._members))
        self._progress.say("stopped", "stopped")

    def _end_applications(self) -> None:
        """Stop both beside one another, since each may need the whole grace period."""
        some = [one for one in (self._application, self._standby) if one is not None]
        with ThreadPoolExecutor(len(some)) as pool:
            for end in [pool.submit(one.stop, STOP_GRACE_SECONDS) for one in some]:
                end.result()

    def _watch(self, pool: ThreadPoolExecutor) -> None:
        progress_at = time.monotonic()
        while not self._stopped.is_set():
            for member in self._members:
                member.look(pool)
            if all(member.is_stopped for member in self._members):
                self._progress.say("stopped_by_plan", "all links of the pool are stopped")
                return
            self._keep_running()
            if time.monotonic() >= progress_at:
                progress_at = time.monotonic() + PROGRESS_SECONDS
                for member in self._members:
                    self._loads |= member.show(pool)
                self._restart_hanging()
            self._stopped.wait(LOOK_SECONDS)

    def _keep_running(self) -> None:
        wanted = self._wanted([spec for member in self._members for spec in member.specs()])
        if wanted is None:
            return
        found, self._current = self._keep(self._application, wanted, self._current)
        self._found = found
        if self._standby is not None:
            checkpoints = str((self._folder / "checkpoints" / self._standby.name).resolve())
            waiting = wanted.as_standby(self._pool.spark.directories("", checkpoints)[1])
            copies = found is not None and found.state is State.RUNNING
            _, self._waiting = self._keep(self._standby, waiting, self._waiting, replace=copies)

    def _restart_hanging(self) -> None:
        """Restart the application if it runs while no slot of any link reports. If some do, the cause is a link's own, and a
        restart would only stop the others."""
        running = [member for member in self._members if member.plans and not member.is_stopped]
        if not running or not all(member.silence.is_total for member in running):
            return
        plan = next(plan for plan in running[0].plans.values() if not plan.stopped)
        silent = running[0].silence.silent(plan.group)
        if not why_hangs(plan, self._found, self._application, silent, self._patience):
            return
        why = f"no report for {duration(self._patience.silent_seconds)} or longer from any of its slots"
        self._progress.say("replaced", f"starting the application again: {why}", because=why)
        try:
            self._application.replace()
        except LaunchError as error:  # as when its cluster does not respond
            self._progress.say("error", f"error: {error}", error=str(error))
        for member in self._members:
            member.silence.forget()

    def _keep(
        self, application: KeptApplication, wanted: PoolSpec, current: PoolSpec | None, *, replace: bool = True
    ) -> tuple[Application | None, PoolSpec | None]:
        """Have an application run, and follow this spec. Return it if it runs, and the spec that it has now.

        Args:
            replace: whether it may be started again; else it keeps its spec until it may.
        """
        found = application.keep(lambda: wanted)
        if found is not None and found.state is State.UNKNOWN:
            return found, current  # it may run with that, and follows once its cluster responds
        if found is None or not found.state.alive:
            return found, wanted
        action = decide(wanted, found, current, (), unix_ms())
        if not isinstance(action, Update | Replace):
            return found, wanted
        if isinstance(action, Update) and application.update(found, wanted):
            return found, wanted
        if not replace:
            return found, current
        self._progress.say("replaced", f"starting the application again: {action.because}", because=action.because)
        application.replace()
        return None, wanted

    def _wanted(self, members: Sequence[AppSpec]) -> PoolSpec | None:
        """Return the spec with these members; None before there is one. Slots are moved by load once in a while only."""
        if not members and self._current is None:
            return None
        now = time.monotonic()
        if balance := now >= self._balance_at and bool(self._loads):
            self._balance_at = now + BALANCE_SECONDS
        _, checkpoints = self._pool.spark.directories("", str((self._folder / "checkpoints").resolve()))
        return pool_spec(
            self._name,
            self._pool,
            members,
            self._current,
            checkpoints,
            measured=self._loads,
            runs=self._current is not None,
            balance=balance,
        )


def _require_cores(name: str, pool: Pool) -> None:
    most, cores = pool.most_slots, len(os.sched_getaffinity(0))
    if pool.spark.master == "local" and most > cores:
        raise SetupError(
            f"pool {name}: it has up to {plural(most, 'slot')}, each needs a core, and this process may use {plural(cores, 'core')}",
            hint="give it fewer `slots` or `max_slots`, or name a Spark cluster as its `spark.master`",
        )
