"""Applications whose drivers run on the workers of a Spark Standalone cluster, which restarts a lost driver.

The submitting host may be lost: running applications are found through the master and its workers. Any other host that
sees the same directory can find them, too.
"""

import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from strait.config.app_spec import PoolSpec, Spec, read_spec
from strait.config.links import Spark
from strait.errors import LaunchError, SetupError
from strait.launch import submission, supervised
from strait.launch.base import LOG_TAIL_BYTES, REPLICATE, Application, State
from strait.launch.cause import cause_of
from strait.launch.properties import LOGGING
from strait.launch.standalone import drivers, unpack
from strait.launch.standalone.drivers import Drivers, Found
from strait.launch.standalone.master import Driver, Master, Seen
from strait.launch.standalone.request import create_request, session_properties
from strait.launch.submission import Submission
from strait.text import plural
from strait.waiting import tries

_POLL_SECONDS = 0.5
_GONE_SECONDS = 60.0
"""How long a cluster may take to end a driver after a request: the worker gives it ten seconds."""
_EXECUTORS_SECONDS = 10.0
"""How long executors may take to end after their driver."""


class StandaloneLauncher:
    """See strait.launch.base.Launcher.

    Args:
        directory: directory with a subdirectory for each submission. The workers must see it under the same path, with
            the permissions of the same user.
    """

    passes_on_specs = True

    def __init__(self, spark: Spark, directory: Path, *, job: Path = REPLICATE) -> None:
        self.directory = directory.resolve()
        self._job = job
        self._master = Master(spark)
        self._drivers = Drivers(self._master, self.directory)

    def submit(self, name: str, spec_path: Path, spark: Spark) -> Application:
        """Ask the master for a driver. It may have to wait for a worker with a free core and enough memory."""
        spec = read_spec(spec_path)
        with submission.locked(self.directory, name):
            seen = self._master.look()
            if (found := self._state(name, seen)) is not None and found.state.alive:
                return found
            needed = spec.slots + spark.standalone.driver_cores
            if needed > seen.cores:
                raise SetupError(
                    f"application {name}: needs {plural(needed, 'core')} for its {plural(spec.slots, 'slot')} and its driver, "
                    f"Spark cluster {self._master.url} has {seen.cores}",
                    hint="add workers to the cluster, or set fewer `slots` for its task group",
                )
            new = submission.following(self.directory / name)
            with submission.undone_if_refused(new):
                submission.write(new, spec)
                self._prepare(new, name, spec, spark)
                drivers.record(new, self._master.create(self._request(new, name, spark)))
                submission.drop_old(self.directory / name)
        return self._application(new, State.SUBMITTED)

    def update(self, application: Application, spec: PoolSpec) -> bool:
        """Replace the spec in its submission's directory, which its tasks check."""
        submission.rewrite(self._submission(application), spec)
        return True

    def state(self, name: str) -> Application | None:
        """Return the state from the master; unknown while no master responds."""
        try:
            return self._state(name, self._master.look())
        except LaunchError:
            return self._unseen(name)

    def stop(self, name: str, *, grace_seconds: float = 15.0) -> None:
        """Stop every driver of this name, including one that waits for a worker after its own was lost."""
        with submission.locked(self.directory, name):
            for one in submission.of_name(self.directory / name)[:1]:
                supervised.ask_to_stop(one.folder)
            for _, one in self._living(name):
                supervised.ask_to_stop(one.folder)
            for _ in tries(grace_seconds, _POLL_SECONDS):
                if not self._living(name):
                    break
            began = time.monotonic()
            while self._runs(name):
                living, waited = self._living(name), time.monotonic() - began
                for driver, _ in living:
                    self._master.kill(driver.id)
                if not living and waited > _EXECUTORS_SECONDS:
                    break  # a foreign application: the cluster lists applications by name only
                if waited > _GONE_SECONDS:
                    raise LaunchError(
                        f"application {name}: ending it: Spark master {self._master.url} still shows it after "
                        f"{_GONE_SECONDS:g} s",
                        hint="check that its workers are alive",
                    )
                time.sleep(_POLL_SECONDS)
            for one in submission.of_name(self.directory / name):
                shutil.rmtree(one.scratch, ignore_errors=True)

    def list(self) -> Sequence[Application]:
        """Return the applications of this directory: another installation may use the same cluster."""
        known = submission.names_in(self.directory)
        try:
            seen = self._master.look()
        except LaunchError:
            return tuple(self._unseen(name) for name in sorted(known))
        found = self._drivers.find(seen).owned
        known |= {one.name for _, one in found}
        states = (self._state(name, seen) for name in sorted(known))
        return tuple(application for application in states if application is not None)

    def history(self, name: str) -> Sequence[Application]:
        """Return the submissions that are kept. A driver that the cluster restarted is the same submission."""
        newest = self.state(name)
        kept = submission.of_name(self.directory / name)
        ended = (self._ended(one) for one in kept if newest is None or one.folder.name != newest.id)
        return ((newest,) if newest is not None else ()) + tuple(ended)

    def spec(self, application: Application) -> Spec | None:
        """Return the spec in its submission's directory."""
        return submission.spec_of(self._submission(application))

    def log_tail(self, application: Application, max_bytes: int = LOG_TAIL_BYTES) -> str:
        """Return the end of the JVM's output, then of the application's, as long as its worker keeps them."""
        one = self._submission(application)
        page, driver = supervised.log_address(one.folder).partition("/logPage/")[0], _last(drivers.ids(one))
        if not page:
            page = self._pages().get(driver, "")
        if not page or not driver:
            return ""
        return "".join(self._master.log(page, driver, kind, last=max_bytes) or "" for kind in ("stderr", "stdout"))

    def cause(self, application: Application) -> str:
        """Determine the cause from the exit code that the application wrote, and its log."""
        return cause_of(application.exit_code, self.log_tail(application), self.spec(application))

    def _prepare(self, new: Submission, name: str, spec: Spec, spark: Spark) -> None:
        """Write the files that the driver reads on its host. Only its owner can read them, since a link's Spark
        properties can contain secrets."""
        submission.write_place(new, spark)
        text = json.dumps(session_properties(name, spec, spark), indent=1)
        with os.fdopen(os.open(new.folder / "session.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        shutil.copyfile(unpack.__file__, new.folder / "unpack.py")
        shutil.copyfile(LOGGING, new.folder / LOGGING.name)

    def _request(self, new: Submission, name: str, spark: Spark) -> Mapping[str, object]:
        return create_request(name, new.folder, self._job, spark, version("pyspark"))

    def _state(self, name: str, seen: Seen) -> Application | None:
        found = self._drivers.find(seen)
        if living := found.of(name):
            one = living[0][1]
            return self._application(one, self._alive(one, name, seen))
        kept = submission.of_name(self.directory / name)
        if not kept:
            return None
        if self._may_be_back(kept[0], found, seen):
            return self._application(kept[0], State.SUBMITTED)
        return self._ended(kept[0])

    def _unseen(self, name: str) -> Application:
        kept = submission.of_name(self.directory / name)
        return self._application(kept[0] if kept else Submission(self.directory / name / "0"), State.UNKNOWN)

    @staticmethod
    def _alive(one: Submission, name: str, seen: Seen) -> State:
        """Return whether it is running or submitted: by its own announcement, or by the master's list if this host does
        not see its directory."""
        started = one.started if one.folder.is_dir() else name in seen.applications
        return State.RUNNING if started else State.SUBMITTED

    @staticmethod
    def _may_be_back(one: Submission, found: Found, seen: Seen) -> bool:
        """Return whether one of the unknown drivers may be the replacement of this submission's driver."""
        if not found.unknown or one.exit_code is not None:
            return False
        last = next((driver for driver in seen.drivers if driver.id == _last(drivers.ids(one))), None)
        return last is None or last.replaced

    def _living(self, name: str) -> Sequence[tuple[Driver, Submission]]:
        return self._drivers.find(self._master.look()).of(name)

    def _runs(self, name: str) -> bool:
        """Whether the cluster still has a driver or executors of this name."""
        seen = self._master.look()
        return name in seen.applications or bool(self._drivers.find(seen).of(name))

    def _pages(self) -> Mapping[str, str]:
        try:
            return {driver.id: driver.page for driver in self._master.look().drivers}
        except LaunchError:
            return {}

    def _submission(self, application: Application) -> Submission:
        return Submission(self.directory / application.name / application.id)

    def _ended(self, one: Submission) -> Application:
        return self._application(one, State.FINISHED if one.exit_code == 0 else State.DEAD)

    def _application(self, one: Submission, state: State) -> Application:
        log = supervised.log_address(one.folder) or self._master.page
        exit_code = None if state.alive or state is State.UNKNOWN else one.exit_code
        return Application(one.name, one.folder.name, state, log, one.submitted_at_ms, exit_code)


def _last(found: Iterable[str]) -> str:
    *_, last = ("", *found)
    return last
