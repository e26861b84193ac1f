"""`strait run`: the control cycle and the Spark application of each task group, together in the foreground until a
signal.

Each instance keeps its submissions, specs and checkpoints in a separate directory, so several may run on one link. The
applications end with this process, even if it is killed; only on YARN and in Kubernetes they outlive a killed one.
"""

import fcntl
import itertools
import math
import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

from strait.cli.cycles import Cycles
from strait.cli.kept_application import KeptApplication
from strait.cli.long_work import now_and_then, stop_signals
from strait.cli.options import Output
from strait.cli.progress import Progress
from strait.cli.silence import Silence, patience_of, why_hangs
from strait.config import naming
from strait.config.app_spec import AppSpec
from strait.config.home import home
from strait.config.links import Link, LinksFile, load_link
from strait.control.outcome import Outcome
from strait.control.pausing import why_stopped
from strait.control.plane import GROUP, Control
from strait.errors import LaunchError, SetupError, StraitError
from strait.launch.base import Application, State
from strait.launch.launchers import launcher_for
from strait.planning.plan.planner import Proposal
from strait.planning.review.effects import Effects
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import Plan
from strait.text import plural

LOOK_SECONDS = 1.0
PROGRESS_SECONDS = 5.0
STOP_GRACE_SECONDS = 6.0  # of the 10 s in which everything must have stopped
_STARTING_SECONDS = 60.0  # after a submission; until then, missing reports mean that Spark is starting
_LOCK = "lock"
_LEFT_SECONDS = 86400.0
"""Age after which a directory that an earlier version made, without a lock, may be removed."""


def run_in_foreground(config: Path, link: str, interval_seconds: float, output: Output, *, start: bool) -> None:
    """Run until SIGINT or SIGTERM, or until the link is stopped by its plan. Return immediately if the link is already
    stopped, unless ``start``, which starts it.

    Raises:
        StraitError: it cannot be started, or an application reports that only a change of configuration helps.
    """
    with stop_signals() as stopped:
        file = load_link(config, link)
        _require_cores(link, file.links[link])
        with folder_of(link) as folder, Control(file, link) as control:
            progress = Progress(link, output=output)
            if not start and (why := why_stopped(ConfiguredLink.of(file, link))):
                text = f"{why}; `strait start {link}` or `strait run {link} --start` starts it"
                progress.say("stopped_by_plan", text, detail=why)
                return
            Foreground(file, link, folder, control, progress, stopped).run(interval_seconds, start=start)


class Foreground:
    """One `strait run`: control cycles with a pause between them, and a check of all task groups' applications every
    second."""

    def __init__(
        self,
        file: LinksFile,
        link: str,
        folder: Path,
        control: Control,
        progress: Progress,
        stopped: threading.Event,
    ) -> None:
        self._file = file
        self._link = link
        self._folder = folder
        self._launcher = launcher_for(file.links[link].spark, folder / "applications", parent_pid=os.getpid())
        self._control = control  # for status only; the cycles have their own
        self._progress = progress
        self._stopped = stopped
        self._plans: Mapping[str, Plan] = {}
        self._groups = file.links[link].groups
        self._applications: dict[str, KeptApplication] = {}
        self._found: dict[str, Application | None] = {}  # task group -> its application as last seen
        self._patience = patience_of(file.links[link].spark)
        self._silence = Silence(self._patience)
        self._heard_at = -math.inf  # time of the last check that found a slot reporting
        self._last_error = ""
        self._pending: Effects = ()

    def run(self, interval_seconds: float, *, start: bool) -> None:
        """See `run_in_foreground`."""
        working = now_and_then(lambda text: self._progress.say("working", text))
        cycles = Cycles(self._file, self._link, interval_seconds, working, start=start)
        cycles.start()
        try:
            if not self._first_cycle(cycles):
                return
            self._watch(cycles)
        finally:
            cycles.stop(0.0)
            self._end_applications()
            cycles.stop(1.0)
        self._progress.say("stopped", "stopped")

    def _first_cycle(self, cycles: Cycles) -> bool:
        """Wait for the first plan, since without a plan there is nothing to run. Return False if stopped meanwhile."""
        while not self._stopped.is_set():
            if not cycles.results.empty():
                first = cycles.results.get()
                if isinstance(first, StraitError):
                    raise first
                if isinstance(first, Proposal):
                    self._begin(first)
                    continue
                self._plans = first.plans
                self._pending = first.pending
                self._progress.begin(self._control.written())
                self._progress.say("planned", first.as_text(), plan_version=first.plan.version)
                if where := cycles.topics_from:
                    text = f"topics are those in force, from {where}; `strait apply --from-file` takes the links file's"
                    self._progress.say("topics_from", text, topics_from=where)
                return True
            self._stopped.wait(0.05)
        return False

    def _begin(self, proposal: Proposal) -> None:
        """Submit the applications while the plan is being published, since Spark takes longer to start. Do nothing if
        the plan needs an operator's approval."""
        if self._file.links[self._link].approval == "none":
            for group, draft in proposal.groups.items():
                plan = draft.as_plan(link=self._link, group=group, version=1, producer_id=0, now_ms=0)
                self._keep(group, plan)

    def _watch(self, cycles: Cycles) -> None:
        progress_at = time.monotonic()
        while not self._stopped.is_set():
            self._tell_cycles(cycles)
            if why := self._stopped_by_plan(self._keep_running()):
                self._progress.say("stopped_by_plan", why, detail=why)
                return
            if time.monotonic() >= progress_at:
                progress_at = time.monotonic() + PROGRESS_SECONDS
                self._show()
            self._stopped.wait(LOOK_SECONDS)

    def _keep_running(self) -> Application | None:
        """Keep all task groups' applications running. Return that of `default`, the task group that every link has."""
        for group, plan in self._plans.items():
            if group in self._groups and self._groups[group].standby:
                self._keep(group, plan, standby=True)
        self._found = {group: self._keep(group, plan) for group, plan in self._plans.items()}
        return self._found[GROUP]

    def _keep(self, group: str, plan: Plan, *, standby: bool = False) -> Application | None:
        def make_spec() -> AppSpec:
            return self._control.spec(
                plan,
                ledger_dir=home() / "ledger" / self._link / group,
                checkpoint_dir=self._folder
                / "checkpoints"
                / naming.application_name(self._link, group, standby=standby),
                standby=standby,
            )

        return self._of(group, standby=standby).keep(make_spec, stopped=plan.stopped)

    def _of(self, group: str, *, standby: bool = False) -> KeptApplication:
        name = naming.application_name(self._link, group, standby=standby)
        if name not in self._applications:
            spark = self._file.links[self._link].spark
            self._applications[name] = KeptApplication(
                f"link {self._link}", name, self._folder, self._launcher, spark, self._progress
            )
        return self._applications[name]

    def _end_applications(self) -> None:
        """Stop all applications in parallel, since each may need the whole grace period."""
        with ThreadPoolExecutor(max(1, len(self._applications))) as pool:
            ends = [pool.submit(one.stop, STOP_GRACE_SECONDS) for one in self._applications.values()]
        for end in ends:
            end.result()

    def _stopped_by_plan(self, application: Application | None) -> str:
        if application is None or application.state is not State.FINISHED:
            return ""
        try:
            return why_stopped(ConfiguredLink.of(self._file, self._link))
        except StraitError as error:
            self._tell(error)
            return ""

    def _tell_cycles(self, cycles: Cycles) -> None:
        while not cycles.results.empty():
            result = cycles.results.get()
            if isinstance(result, StraitError):
                self._tell(result)
            elif isinstance(result, Outcome):
                self._last_error = ""
                self._plans = result.plans
                if result.published or result.created or result.done or result.pending != self._pending:
                    self._progress.say("planned", result.as_text(), plan_version=result.plan.version)
                self._pending = result.pending

    def _show(self) -> None:
        try:
            groups = self._control.statuses()
        except StraitError as error:
            self._silence.forget()
            self._tell(error)
            return
        self._silence.hear(groups)
        self._restart_hanging()
        now, submitted_at = time.monotonic(), self._of(GROUP).submitted_at
        if any(not slot.silent for group in groups for slot in group.slots):
            self._heard_at = now
        if self._heard_at > submitted_at or now > submitted_at + _STARTING_SECONDS:
            self._progress.show(groups)
        else:
            self._progress.say("starting", "Spark is starting")

    def _restart_hanging(self) -> None:
        """Restart applications that run while slots of theirs do not report."""
        for group, plan in self._plans.items():
            kept = self._of(group)
            if why := why_hangs(plan, self._found.get(group), kept, self._silence.silent(group), self._patience):
                self._progress.say("replaced", f"starting application {kept.name} again: {why}", because=why)
                try:
                    kept.replace()
                except LaunchError as error:  # as when its cluster does not respond
                    self._tell(error)
                self._silence.forget()

    def _tell(self, error: StraitError) -> None:
        """Print an error once, until another error occurs or a cycle succeeds. Copying continues with the last plan."""
        if str(error) != self._last_error:
            self._last_error = str(error)
            self._progress.say("error", f"error: {error}; copying goes on by the plan in force", error=str(error))


def _require_cores(name: str, link: Link) -> None:
    slots = sum(group.most_slots for group in link.groups.values())
    cores = len(os.sched_getaffinity(0))
    if link.spark.master == "local" and slots > cores:
        raise SetupError(
            f"link {name}: its groups have {plural(slots, 'slot')}, each needs a core, and this process may use {plural(cores, 'core')}",
            hint="give its groups fewer slots, or name a Spark Standalone master",
        )


@contextmanager
def folder_of(name: str) -> Iterator[Path]:
    """Create this process's directory and delete it afterwards. Also delete those of processes that were killed.

    Each process holds the lock of its directory: other hosts and containers, which cannot see the process, may use the
    same STRAIT_HOME.
    """
    runs = home() / "run"
    own = f"{name}-{os.getpid()}"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        for left in runs.glob("*-*"):
            _remove_if_left(left)
        folder, held = _made(runs, own)
    except OSError as error:
        raise SetupError(f"{name}: making {runs / own}: {error.strerror}", hint="free or change that disk") from error
    with held:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _made(runs: Path, name: str) -> tuple[Path, IO[bytes]]:
    """Create a directory, and return it with its lock. A process elsewhere may have the same pid, and so the same name."""
    names = itertools.chain([name], (f"{name}~{number}" for number in itertools.count(2)))
    for folder in (runs / each for each in names):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            held = (folder / _LOCK).open("wb")
            if _locks(held) and (folder / _LOCK).exists():
                return folder, held
            held.close()  # another process took it for one that was left, and removes it
    raise AssertionError


def _remove_if_left(folder: Path) -> None:
    """Delete a directory whose process has ended."""
    try:
        held = (folder / _LOCK).open("rb+")
    except OSError:
        if _is_left_by_earlier_version(folder):
            shutil.rmtree(folder, ignore_errors=True)
        return
    with held:
        if _locks(held):
            shutil.rmtree(folder, ignore_errors=True)


def _locks(file: IO[bytes]) -> bool:
    """Lock the file until it is closed. Return False if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_left_by_earlier_version(folder: Path) -> bool:
    """Return whether a directory without a lock is taken as left by a killed process: the process is not on this host, and
    the directory has not changed for a day."""
    pid = folder.name.rpartition("-")[2]
    try:
        age_seconds = time.time() - folder.stat().st_mtime
    except OSError:
        return False  # it is being removed
    return pid.isdecimal() and age_seconds > _LEFT_SECONDS and not psutil.pid_exists(int(pid))
