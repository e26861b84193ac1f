"""Applications on YARN. All of their state is found through the ResourceManager, so any host can take over from the
submitting one; its own directories only save requests."""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from strait.config.app_spec import PoolSpec, Spec, read_spec
from strait.config.spark import Spark
from strait.config.yarn_settings import Yarn
from strait.errors import LaunchError
from strait.launch import submission
from strait.launch.base import LOG_TAIL_BYTES, REPLICATE, Application, State
from strait.launch.cause import LAST_WORDS, cause_of
from strait.launch.properties import written
from strait.launch.submission import Submission
from strait.launch.yarn.commands import Commands
from strait.launch.yarn.files import Files
from strait.launch.yarn.manager import ResourceManager
from strait.launch.yarn.properties import yarn_properties
from strait.launch.yarn.replies import Seen
from strait.launch.yarn.site import web_addresses
from strait.waiting import tries

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_GONE_SECONDS = 60.0
"""How long YARN may take to end an application after a request, or to list one that it has accepted."""


class YarnLauncher:
    """See strait.launch.base.Launcher.

    Args:
        directory: directory with a subdirectory for each submission. Other launchers need not see it.
    """

    passes_on_specs = False

    def __init__(self, spark: Spark, yarn: Yarn, directory: Path, *, job: Path = REPLICATE) -> None:
        self.directory = directory.resolve()
        self._job = job
        self._spark = spark
        self._yarn = yarn
        self._manager = ResourceManager(partial(web_addresses, yarn), yarn.tag)
        self._files = Files(yarn)
        self._commands = Commands(yarn)

    def submit(self, name: str, spec_path: Path, spark: Spark) -> Application:
        """Start an application and return once YARN has accepted it."""
        spec = read_spec(spec_path)
        with submission.locked(self.directory, name):
            known = self._manager.of_name(name)
            if known and (alive := next((one for one in known if one.alive), None)):
                return alive.application
            self._remove_old(name, known)
            jars = self._files.spark_jars()
            new = submission.following(self.directory / name)
            with submission.undone_if_refused(new):
                ours = yarn_properties(name, spec, new.spec, spark, self._yarn, jars)
                submission.write(new, spec, written(ours))
                submission.write_place(new, spark)
                self._commands.submit(name, new, self._job, "--spec", new.spec.name, own_code=spark.package is None)
                accepted = self._accepted(name, {one.id for one in known})
                _record(new, accepted)
                submission.drop_old(self.directory / name)
        return accepted.application

    def update(self, application: Application, spec: PoolSpec) -> bool:
        """Return False: YARN copies the spec to its hosts at the start."""
        return False

    def state(self, name: str) -> Application | None:
        """Return the state from the ResourceManager; unknown while none responds."""
        try:
            found = self._manager.of_name(name)
        except LaunchError:
            return self._unknown(name)
        return next((one for one in found if one.alive), found[0]).application if found else None

    def stop(self, name: str, *, grace_seconds: float = 15.0) -> None:
        """Stop every submission of this name, regardless of the submitter, and remove its files from the file
        system."""
        with submission.locked(self.directory, name):
            living = self._living(name)
            if not living:
                return
            if grace_seconds > 0 and any(one.state == "RUNNING" for one in living):
                self._files.ask_to_stop(living)
                self._until_gone(name, grace_seconds)
            for one in self._living(name):
                self._manager.kill(one)
            if left := self._until_gone(name, _GONE_SECONDS):
                raise LaunchError(
                    f"application {name}: ending it: YARN still shows {', '.join(left)} after {_GONE_SECONDS:g} s",
                    hint="check that its NodeManagers are alive",
                )
            self._files.remove(living)

    def list(self) -> Sequence[Application]:
        """Return the applications with the tag of this links file, including those that another host submitted."""
        try:
            found = self._manager.all()
        except LaunchError:
            return tuple(self._unknown(name) for name in sorted(submission.names_in(self.directory)))
        newest = {one.name: one for one in sorted(found, key=lambda one: (one.alive, one.submitted_at_ms))}
        return tuple(newest[name].application for name in sorted(newest))

    def history(self, name: str) -> Sequence[Application]:
        """Return the submissions that the ResourceManager remembers. A driver that YARN restarted is the same
        submission."""
        try:
            return tuple(one.application for one in self._manager.of_name(name))
        except LaunchError:
            return (self._unknown(name),)

    def spec(self, application: Application) -> Spec | None:
        """Return the spec kept on this host, else the cluster's, which is removed when the application ends."""
        if kept := self._kept(application):
            return submission.spec_of(kept)
        seen = self._seen(application)
        if seen is None or not seen.alive:
            return None
        spec = self._files.spec(seen)
        if spec is not None:
            with submission.locked(self.directory, seen.name):
                copy = submission.following(self.directory / seen.name)
                submission.write(copy, spec, "")
                submission.write_place(copy, self._spark)
                _record(copy, seen)
                submission.drop_old(self.directory / seen.name)
        return spec

    def log_tail(self, application: Application, max_bytes: int = LOG_TAIL_BYTES) -> str:
        """Return the end of the JVM's output, then of the application's, as long as it runs."""
        try:
            tails = [self._manager.log_tail(application.id, kind, max_bytes) for kind in ("stderr", "stdout")]
        except LaunchError:
            return ""
        return "".join(tails)[-max_bytes:]

    def cause(self, application: Application) -> str:
        """Determine the cause from the application's last message to YARN, or YARN's own diagnostics."""
        try:
            seen = self._seen(application)
        except LaunchError:
            seen = None
        words = f"{LAST_WORDS}{seen.last_words}" if seen is not None and seen.last_words else ""
        return cause_of(application.exit_code, words, self.spec(application))

    def _remove_old(self, name: str, known: Sequence[Seen]) -> None:
        """Remove the files of earlier submissions, which only take space."""
        try:
            self._files.remove(one for one in known if not one.succeeded)
        except LaunchError as error:
            log.warning("application %s: %s", name, error)

    def _accepted(self, name: str, known: set[str]) -> Seen:
        for _ in tries(_GONE_SECONDS, _POLL_SECONDS):
            if new := [one for one in self._manager.of_name(name) if one.id not in known]:
                return new[0]
        raise LaunchError(
            f"application {name}: submitting it to YARN: the ResourceManager at "
            "`spark.yarn.resource_manager` does not show it",
            hint="it must be the cluster that yarn-site.xml names",
        )

    def _living(self, name: str) -> Sequence[Seen]:
        return [one for one in self._manager.of_name(name) if one.alive]

    def _until_gone(self, name: str, seconds: float) -> Sequence[str]:
        """Return the ids of those that are still alive after ``seconds``."""
        for _ in tries(seconds, _POLL_SECONDS):
            left = self._living(name)
            if not left:
                break
        return [one.id for one in left]

    def _seen(self, application: Application) -> Seen | None:
        found = self._manager.of_name(application.name)
        return next((one for one in found if one.id == application.id), None)

    def _kept(self, application: Application) -> Submission | None:
        """Return this host's directory of a submission."""
        kept = submission.of_name(self.directory / application.name)
        return next((one for one in kept if _recorded(one) == application.id), None)

    def _unknown(self, name: str) -> Application:
        kept = submission.of_name(self.directory / name)
        return Application(name, _recorded(kept[0]) if kept else "", State.UNKNOWN, "", 0)


def _record(one: Submission, seen: Seen) -> None:
    """Record which YARN application a submission is."""
    (one.folder / "application").write_text(seen.id, encoding="ascii")


def _recorded(one: Submission) -> str:
    try:
        return (one.folder / "application").read_text(encoding="ascii")
    except FileNotFoundError:
        return ""
