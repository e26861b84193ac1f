"""Applications on YARN. Everything about them is found through the ResourceManager, so any host can take over from the
submitting one; its own folders only spare it questions."""

import shutil
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from strait.config.app_spec import AppSpec
from strait.config.spark import Spark
from strait.config.yarn_settings import Yarn
from strait.errors import ConfigError, LaunchError
from strait.launch import submission
from strait.launch.base import LOG_TAIL_BYTES, Application, State
from strait.launch.cause import LAST_WORDS, cause_of
from strait.launch.local import REPLICATE
from strait.launch.properties import written
from strait.launch.yarn.commands import Commands
from strait.launch.yarn.files import Files
from strait.launch.yarn.manager import ResourceManager
from strait.launch.yarn.properties import SPEC, yarn_properties
from strait.launch.yarn.replies import Seen
from strait.launch.yarn.site import web_addresses

_POLL_SECONDS = 0.5
_GONE_SECONDS = 60.0
"""How long YARN may take to end what it was told to end, or to show what it has accepted."""


class YarnLauncher:
    """See strait.launch.base.Launcher.

    Args:
        directory: where it keeps a copy of each spec, by `<name>/<application id>/spec.json`. Other launchers need not see
            it.
    """

    def __init__(self, spark: Spark, yarn: Yarn, directory: Path, *, job: Path = REPLICATE) -> None:
        self.directory = directory.resolve()
        self._job = job
        self._yarn = yarn
        self._manager = ResourceManager(partial(web_addresses, yarn), yarn.tag)
        self._files = Files(yarn)
        self._commands = Commands(yarn)

    def submit(self, name: str, spec_path: Path, spark: Spark) -> Application:
        """Start an application and return once YARN has accepted it."""
        spec = AppSpec.read(spec_path)
        with submission.locked(self.directory, name):
            known = self._manager.of_name(name)
            if known and (alive := next((one for one in known if one.alive), None)):
                return alive.application
            self._files.remove(one for one in known if not one.succeeded)
            jars = self._files.spark_jars()
            (self.directory / name).mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".new-", dir=self.directory / name) as scratch:
                new = Path(scratch) / SPEC
                spec.write(new)
                properties = Path(scratch) / "spark.properties"
                properties.touch(0o600)
                ours = yarn_properties(name, spec, new, spark, self._yarn, jars)
                properties.write_text(written(ours), encoding="utf-8")
                self._commands.submit(name, properties, self._job, "--spec", SPEC, own_code=spark.package is None)
            accepted = self._accepted(name, {one.id for one in known})
            self._keep(accepted, spec)
        return accepted.application

    def state(self, name: str) -> Application | None:
        """As the ResourceManager sees it. While none answers nothing is known."""
        try:
            found = self._manager.of_name(name)
        except LaunchError:
            return self._unknown(name)
        return next((one for one in found if one.alive), found[0]).application if found else None

    def stop(self, name: str, *, grace_seconds: float = 15.0) -> None:
        """Ends every submission of this name, whoever submitted it, and removes what they leave in the file system."""
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
        """Those with the tag of this links file, also those that another host submitted."""
        try:
            found = self._manager.all()
        except LaunchError:
            folders = self.directory.iterdir() if self.directory.is_dir() else ()
            return tuple(self._unknown(path.name) for path in sorted(folders) if path.is_dir())
        newest = {one.name: one for one in sorted(found, key=lambda one: (one.alive, one.submitted_at_ms))}
        return tuple(newest[name].application for name in sorted(newest))

    def history(self, name: str) -> Sequence[Application]:
        """As many as the ResourceManager remembers. A driver that YARN started again is the same submission."""
        try:
            return tuple(one.application for one in self._manager.of_name(name))
        except LaunchError:
            return (self._unknown(name),)

    def spec(self, application: Application) -> AppSpec | None:
        """This host's copy; where it has none, that of the cluster, which is removed when the application ends."""
        try:
            return AppSpec.read(self.directory / application.name / application.id / SPEC)
        except ConfigError:
            pass
        seen = self._seen(application)
        if seen is None or not seen.alive:
            return None
        spec = self._files.spec(seen)
        if spec is not None:
            self._keep(seen, spec)
        return spec

    def log_tail(self, application: Application, max_bytes: int = LOG_TAIL_BYTES) -> str:
        """What its JVM has printed last, then what itself has, as long as it runs."""
        try:
            tails = [self._manager.log_tail(application.id, kind, max_bytes) for kind in ("stderr", "stdout")]
        except LaunchError:
            return ""
        return "".join(tails)[-max_bytes:]

    def cause(self, application: Application) -> str:
        """From what it told YARN when it ended, or what YARN says of its end."""
        try:
            seen = self._seen(application)
        except LaunchError:
            seen = None
        words = f"{LAST_WORDS}{seen.last_words}" if seen is not None and seen.last_words else ""
        return cause_of(application.exit_code, words, self.spec(application))

    def _accepted(self, name: str, known: set[str]) -> Seen:
        deadline = time.monotonic() + _GONE_SECONDS
        while True:
            new = [one for one in self._manager.of_name(name) if one.id not in known]
            if new:
                return new[0]
            if time.monotonic() > deadline:
                raise LaunchError(
                    f"application {name}: submitting it to YARN: the ResourceManager at "
                    "`spark.yarn.resource_manager` does not show it",
                    hint="it must be the cluster that yarn-site.xml names",
                )
            time.sleep(_POLL_SECONDS)

    def _living(self, name: str) -> Sequence[Seen]:
        return [one for one in self._manager.of_name(name) if one.alive]

    def _until_gone(self, name: str, seconds: float) -> Sequence[str]:
        """The ids of those that live after so many seconds."""
        deadline = time.monotonic() + seconds
        while (left := self._living(name)) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return [one.id for one in left]

    def _seen(self, application: Application) -> Seen | None:
        found = self._manager.of_name(application.name)
        return next((one for one in found if one.id == application.id), None)

    def _keep(self, seen: Seen, spec: AppSpec) -> None:
        """Keep a copy of a spec, and those of the newest few submissions."""
        folder = self.directory / seen.name
        (folder / seen.id).mkdir(mode=0o700, parents=True, exist_ok=True)
        spec.write(folder / seen.id / SPEC)
        kept = sorted((path for path in folder.iterdir() if path.name.startswith("application_")), reverse=True)
        for old in kept[submission.KEPT :]:
            shutil.rmtree(old, ignore_errors=True)

    def _unknown(self, name: str) -> Application:
        folder = self.directory / name
        kept = sorted(path.name for path in folder.glob("application_*"))
        return Application(name, kept[-1] if kept else "", State.UNKNOWN, "", 0)
