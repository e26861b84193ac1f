"""Applications as detached processes of this machine: `spark-submit` in client mode, local or to a Standalone master.

The submitter may exit at any time; its applications continue, and any later process finds them again.
"""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from strait.config.app_spec import PoolSpec, Spec, read_spec
from strait.config.audit import NICENESS
from strait.config.links import Spark
from strait.errors import LaunchError
from strait.launch import class_data, processes, submission
from strait.launch.base import LOG_TAIL_BYTES, REPLICATE, Application, State
from strait.launch.cause import cause_of
from strait.launch.java import find_java, inherited
from strait.launch.parent_watch import tied_environment
from strait.launch.properties import spark_environment, spark_properties, written
from strait.launch.spark_home import find_spark_submit
from strait.launch.submission import Submission

# SIGTERM and SIGINT are ignored before the processes have the mark by which they are found, and so stopped. The shell
# and the JVM inherit that, so only the Python driver handles them: it stops its query, and all exit with 0.
_GUARDED = 'trap "" TERM INT; exec env "$0" "$@"'
# The shell stays as the parent to record the application's exit code, even if the application was killed.
_ATTENDED = '"$@"; code=$?; echo $code >"$0.partial" && mv "$0.partial" "$0"'
_HEAD_START = '"$PYSPARK_PYTHON" -m strait.spark.head_start "$1" $$ & shift; '

_SHOWS_SECONDS = 0.005
_LOOKS = 3
_PAUSE_SECONDS = 0.05
"""A process that is executing another program shows no environment for a moment. So an application without an exit code
is treated as dead, or started again, only if several checks do not find it."""


class LocalLauncher:
    """See strait.launch.base.Launcher.

    Args:
        directory: directory with a subdirectory for each submission; launchers with the same directory know of each
            other's.
        parent_pid: pid of the process that its applications must not outlive; None lets them run until they are
            stopped.
        job: the Spark entry point.
        spark_submit: Spark's own command; default: that of the pyspark that this interpreter would import.
    """

    passes_on_specs = True

    def __init__(
        self, directory: Path, *, parent_pid: int | None = None, job: Path = REPLICATE, spark_submit: Path | None = None
    ) -> None:
        self.directory = directory.resolve()
        self._tied_to = parent_pid
        self._job = job
        self._spark_submit = spark_submit
        # A live process of each name that was found, so that most calls need not read every process.
        self._seen: dict[str, tuple[psutil.Process, Path]] = {}
        self._children: list[subprocess.Popen[bytes]] = []  # kept to reap those that exit before this process does

    def submit(self, name: str, spec_path: Path, spark: Spark) -> Application:
        """Start ``spark-submit`` detached; its output goes to the submission's log."""
        spec = read_spec(spec_path)
        spark_submit = self._spark_submit or find_spark_submit()
        java = find_java()
        folder = self.directory / name
        with submission.locked(self.directory, name):
            if running := self._surely_running(name):
                return self._application(running, alive=True)
            new = submission.following(folder)
            quick = class_data.option(spark_submit.parents[1], java)
            properties = written(
                spark_properties(name, spec.slots, spark, new.scratch, quick, evaluates=spec.evaluates)
            )
            try:
                submission.write(new, spec, properties)
                if spark.head_start and spark.master == "local" and spec.copies_at_once and self._job == REPLICATE:
                    new.head_start.mkdir()
                self._start(new, spark, spark_submit, java, gives_way=spec.gives_way)
                submission.drop_old(folder)
            except OSError as error:
                if not self._running(name):
                    shutil.rmtree(new.folder, ignore_errors=True)
                raise LaunchError(
                    f"application {name}: starting it: {error.filename or spark_submit}: {error.strerror}",
                    hint="check that the file exists and is executable, and that its disk has space",
                ) from error
        return self._application(new, alive=True)

    def update(self, application: Application, spec: PoolSpec) -> bool:
        """Replace the spec in its submission's directory, which its tasks check."""
        submission.rewrite(self._submission(application), spec)
        return True

    def state(self, name: str) -> Application | None:
        """Return the state; whether the application is alive is read from this machine's processes, not from
        records."""
        if running := self._surely_running(name):
            return self._application(running, alive=True)
        kept = submission.of_name(self.directory / name)
        return self._application(kept[0], alive=False) if kept else None

    def stop(self, name: str, *, grace_seconds: float = 15.0) -> None:
        """Stop every submission of this name, including one whose directory was deleted."""
        with submission.locked(self.directory, name):
            left = processes.end(lambda: self._processes(name), grace_seconds=grace_seconds)
            self._reap()
        if left:
            raise LaunchError(
                f"application {name}: ending it: processes {[process.pid for process in left]} survive SIGKILL",
                hint="they wait for a disk or device of this machine: check the kernel log",
            )

    def list(self) -> Sequence[Application]:
        """Return all applications. Running ones are found by their processes, so a lost or deleted directory hides
        none."""
        self._reap()
        running = {mark.parent.name for mark in processes.find(self.directory)}
        known = submission.names_in(self.directory)
        found = (self.state(name) for name in sorted(running | known))
        return tuple(application for application in found if application is not None)

    def history(self, name: str) -> Sequence[Application]:
        """Return the submissions that are kept. Only the newest one can be alive."""
        newest = self.state(name)
        kept = submission.of_name(self.directory / name)
        ended = (self._application(one, alive=False) for one in kept if newest is None or one.folder.name != newest.id)
        return ((newest,) if newest is not None else ()) + tuple(ended)

    def spec(self, application: Application) -> Spec | None:
        """Return the spec in its submission's directory."""
        return submission.spec_of(self._submission(application))

    def log_tail(self, application: Application, max_bytes: int = LOG_TAIL_BYTES) -> str:
        """Return the end of its submission's log."""
        return submission.log_tail(self._submission(application), max_bytes)

    def cause(self, application: Application) -> str:
        """Determine the cause from the exit code that the parent shell wrote, and the log."""
        return cause_of(application.exit_code, self.log_tail(application), self.spec(application))

    def _start(self, new: Submission, spark: Spark, spark_submit: Path, java: Path, *, gives_way: bool) -> None:
        mark = f"{processes.MARK}={new.folder}"
        command: list[object] = [spark_submit, "--properties-file", new.properties, self._job, "--spec", new.spec]
        script = _ATTENDED
        if gives_way:
            command = ["nice", "-n", str(NICENESS), *command]
        if new.head_start.is_dir():
            script, command = _HEAD_START + _ATTENDED, [new.spec, *command]
        with new.log.open("ab") as log:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _GUARDED, mark, "/bin/sh", "-c", script, str(new.exit), *map(str, command)],
                env=self._environment(new, spark, spark_submit, java),
                cwd=new.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children.append(child)
        shell = psutil.Process(child.pid)
        while child.poll() is None and not processes.bears(shell, new.folder):
            time.sleep(_SHOWS_SECONDS)  # until its environment is visible, other launchers cannot find it

    def _environment(self, new: Submission, spark: Spark, spark_submit: Path, java: Path) -> Mapping[str, str]:
        home = {"SPARK_HOME": str(spark_submit.parents[1])}
        return inherited(java) | tied_environment(self._tied_to) | spark_environment(spark, new.scratch) | home

    def _processes(self, name: str) -> Sequence[psutil.Process]:
        self._reap()
        return [one for found in processes.find(self.directory / name).values() for one in found]

    def _running(self, name: str) -> Submission | None:
        """Return the newest live submission of this name."""
        self._reap()
        seen = self._seen.get(name)
        if seen is not None and processes.bears(*seen):
            return Submission(seen[1])  # while it is alive no other is started
        found = processes.find(self.directory / name)
        newest = max(map(Submission, found), key=lambda one: one.submitted_at_ms, default=None)
        if newest is not None:
            self._seen[name] = found[newest.folder][0], newest.folder
        return newest

    def _surely_running(self, name: str) -> Submission | None:
        """Like `_running`, but check several times if the newest submission has not recorded an exit code."""
        for look in range(_LOOKS):
            if running := self._running(name):
                return running
            kept = submission.of_name(self.directory / name)
            if not kept or kept[0].exit_code is not None or look == _LOOKS - 1:
                break
            time.sleep(_PAUSE_SECONDS)
        return None

    def _reap(self) -> None:
        self._children = [child for child in self._children if child.poll() is None]

    def _submission(self, application: Application) -> Submission:
        return Submission(self.directory / application.name / application.id)

    @staticmethod
    def _application(one: Submission, *, alive: bool) -> Application:
        exit_code = None if alive else one.exit_code
        if alive:
            state = State.RUNNING if one.started else State.SUBMITTED
        else:
            state = State.FINISHED if exit_code == 0 else State.DEAD
        return Application(one.name, one.folder.name, state, str(one.log), one.submitted_at_ms, exit_code)
