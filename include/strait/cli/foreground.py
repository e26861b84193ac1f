"""`strait run`: the control cycle and one Spark application, together in the foreground until a signal ends both.

Everything that it makes is in a folder of its own, so several may run on one link; the application is tied to this
process and ends with it, however it ends.
"""

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from strait import naming
from strait.cli.cycles import Cycles
from strait.cli.progress import Progress
from strait.config import Link, LinksFile, load_link
from strait.control import GROUP, Control
from strait.embedded.paths import home
from strait.errors import LaunchError, SetupError, StraitError
from strait.launch.base import EXIT_CONFIG, Application, State
from strait.launch.local import LocalLauncher

LOOK_SECONDS = 0.5
PROGRESS_SECONDS = 5.0
STOP_GRACE_SECONDS = 7.0  # of the ten in which all must have ended
_RESTART_SECONDS = (1.0, 5.0, 15.0, 30.0)  # pauses before the first, second, … restart in a row
_STARTING_SECONDS = 60.0  # so long silent slots are no news
_SETTLED_SECONDS = 60.0  # an application that lived so long is no longer "in a row"


def run_in_foreground(config: Path, link: str, interval_seconds: float, as_json: bool) -> None:
    """Run until SIGINT or SIGTERM, or until the link is stopped by its plan. Returns then.

    Raises:
        StraitError: it cannot be started, or the application says that only a change of configuration helps.
    """
    with _stop_signals() as stopped:
        file = load_link(config, link)
        _require_cores(link, file.links[link])
        with _folder(link) as folder, Control(file, link) as control:
            Foreground(file, link, folder, control, Progress(link, as_json=as_json), stopped).run(interval_seconds)


class Foreground:
    """One run: a control cycle every few seconds, the application watched twice a second."""

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
        self._spark = file.links[link].spark
        self._name = naming.application_name(link, GROUP)
        self._spec_path = folder / "spec.json"
        self._checkpoints = folder / "checkpoints"
        self._launcher = LocalLauncher(folder / "applications", tied_to=os.getpid())
        self._control = control  # for status only; the cycles have their own
        self._progress = progress
        self._stopped = stopped
        self._deaths = 0
        self._start_at = 0.0  # when to start it again; 0.0: it runs, or has not ended yet
        self._submitted_at = 0.0
        self._heard = False  # any slot, since the last submission
        self._last_error = ""

    def run(self, interval_seconds: float) -> None:
        """See `run_in_foreground`."""
        cycles = Cycles(self._file, self._link, interval_seconds)
        cycles.start()
        try:
            if not self._first_cycle(cycles):
                return
            self._write_spec()
            self._watch(cycles)
        finally:
            cycles.stop(0.0)
            self._launcher.stop(self._name, grace_seconds=STOP_GRACE_SECONDS)
            cycles.stop(1.0)
        self._progress.say("stopped", "stopped")

    def _first_cycle(self, cycles: Cycles) -> bool:
        """Wait for it, since without a plan there is nothing to run. False: told to stop meanwhile."""
        while not self._stopped.is_set():
            if not cycles.results.empty():
                first = cycles.results.get()
                if isinstance(first, StraitError):
                    raise first
                self._progress.say("planned", first.as_text(), plan_version=first.plan.version)
                return True
            self._stopped.wait(0.05)
        return False

    def _watch(self, cycles: Cycles) -> None:
        progress_at = time.monotonic()
        while not self._stopped.is_set():
            self._tell_cycles(cycles)
            if self._stopped_by_plan(self._keep_running()):
                self._progress.say("stopped_by_plan", "the plan says that the link is stopped")
                return
            if time.monotonic() >= progress_at:
                progress_at = time.monotonic() + PROGRESS_SECONDS
                self._show()
            self._stopped.wait(LOOK_SECONDS)

    def _keep_running(self) -> Application | None:
        """The application as it is; started again after a pause where it has ended."""
        application = self._launcher.state(self._name)
        if application is not None and application.state.alive:
            self._start_at = 0.0
            return application
        if application is not None and self._start_at == 0.0:
            self._mourn(application)
        if time.monotonic() >= self._start_at:
            started = self._launcher.submit(self._name, self._spec_path, self._spark)
            self._submitted_at, self._heard = time.monotonic(), False
            self._progress.say("submitted", f"submitted application {started.name}, log {started.log_path}")
        return application

    def _mourn(self, application: Application) -> None:
        cause = self._launcher.cause(application)
        if application.exit_code == EXIT_CONFIG:
            raise LaunchError(f"link {self._link}: application {application.name} ended: {cause}")
        lived = time.time() - application.submitted_at_ms / 1000
        self._deaths = 0 if lived > _SETTLED_SECONDS else min(self._deaths + 1, len(_RESTART_SECONDS) - 1)
        pause = _RESTART_SECONDS[self._deaths]
        self._start_at = time.monotonic() + pause
        if application.state is State.DEAD:
            self._progress.say(
                "died", f"application {application.name} died: {cause}; starting it again in {pause:g} s", cause=cause
            )

    def _stopped_by_plan(self, application: Application | None) -> bool:
        if application is None or application.state is not State.FINISHED:
            return False
        try:
            return self._control.status().stopped
        except StraitError as error:
            self._tell(error)
            return False

    def _tell_cycles(self, cycles: Cycles) -> None:
        while not cycles.results.empty():
            result = cycles.results.get()
            if isinstance(result, StraitError):
                self._tell(result)
            else:
                self._last_error = ""
                if result.published or result.created:
                    self._progress.say("planned", result.as_text(), plan_version=result.plan.version)

    def _show(self) -> None:
        try:
            status = self._control.status()
        except StraitError as error:
            self._tell(error)
            return
        self._heard |= any(not slot.silent for slot in status.slots)
        if self._heard or time.monotonic() > self._submitted_at + _STARTING_SECONDS:
            self._progress.show(status)
        else:
            self._progress.say("starting", "Spark is starting")

    def _tell(self, error: StraitError) -> None:
        """Once, until something else is wrong or nothing: copying goes on by the last plan."""
        if str(error) != self._last_error:
            self._last_error = str(error)
            self._progress.say("error", f"error: {error}; copying goes on by the plan in force", error=str(error))

    def _write_spec(self) -> None:
        spec = self._control.spec(ledger_dir=home() / "ledger" / self._link / GROUP, checkpoint_dir=self._checkpoints)
        try:
            spec.write(self._spec_path)
        except OSError as error:
            raise SetupError(
                f"link {self._link}: writing {self._spec_path}: {error.strerror}", hint="free or change that disk"
            ) from error


def _require_cores(name: str, link: Link) -> None:
    slots = sum(group.slots for group in link.groups.values())
    cores = len(os.sched_getaffinity(0))
    if link.spark.master == "local" and slots > cores:
        raise SetupError(
            f"link {name}: its groups have {slots} slots, each needs a core, and this process may use {cores} cores",
            hint="give its groups fewer slots, or name a Spark Standalone master",
        )


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _folder(link: str) -> Iterator[Path]:
    """This run's folder, gone afterwards; with it go those of runs that were killed."""
    runs = home() / "run"
    folder = runs / f"{link}-{os.getpid()}"
    try:
        for left in runs.glob("*-*"):
            if not psutil.pid_exists(int(left.name.rpartition("-")[2])):
                shutil.rmtree(left, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SetupError(f"link {link}: making {folder}: {error.strerror}", hint="free or change that disk") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
