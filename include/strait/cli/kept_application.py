"""One application under `strait run`: that of a task group or of a pool. It is kept alive, except while it is stopped."""

import math
import time
from collections.abc import Callable
from pathlib import Path

from strait.cli.progress import Progress
from strait.config.app_spec import PoolSpec, Spec
from strait.config.links import Spark
from strait.errors import LaunchError, SetupError
from strait.launch.base import EXIT_CONFIG, Application, Launcher, State

_RESTART_SECONDS = (1.0, 5.0, 15.0, 30.0)  # pauses: after a run over _SETTLED_SECONDS, then after each shorter one
_SETTLED_SECONDS = 60.0  # an application that ran longer is restarted after the first pause


class KeptApplication:
    """Keeps one application running.

    Args:
        owner: the link or pool, for messages.
        name: name of the application.
    """

    def __init__(
        self,
        owner: str,
        name: str,
        folder: Path,
        launcher: Launcher,
        spark: Spark,
        progress: Progress,
    ) -> None:
        self.name = name
        self._owner = owner
        self._spec_path = folder / f"{self.name}.json"
        self._launcher = launcher
        self._spark = spark
        self._progress = progress
        self._deaths = 0
        # when to restart it, on the monotonic clock; 0.0: it was submitted, and its end is not handled yet
        self._start_at = 0.0
        self._unseen = False  # whether its cluster did not respond, which was printed
        self.submitted_at = 0.0
        self.starting_at = -math.inf
        """When it was last seen to wait for its start, on the monotonic clock."""

    def keep(self, make_spec: Callable[[], Spec], *, stopped: bool = False) -> Application | None:
        """Submit the application if it was never submitted, or again after a pause if it has ended, unless it is
        ``stopped``. Return the application as it was before that, or None. While its cluster does not respond, the
        application probably continues: nothing is done.

        Raises:
            LaunchError: its exit code reports that only a change of configuration helps, or it could not be started.
            SetupError: this machine lacks a prerequisite, or the spec cannot be written.
        """
        application = self._launcher.state(self.name)
        if application is not None and application.state.alive:
            self._start_at = 0.0
            self._unseen = False
            if application.state is State.SUBMITTED:
                self.starting_at = time.monotonic()
            return application
        if application is not None and application.state is State.UNKNOWN:
            self._say_unseen()
            return application
        self._unseen = False
        if stopped:
            return application
        if application is not None and self._start_at == 0.0:
            self._mourn(application)
        if time.monotonic() >= self._start_at:
            self._write(make_spec())
            started = self._launcher.submit(self.name, self._spec_path, self._spark)
            self._start_at = 0.0  # its end is handled even if it is never seen alive
            self.submitted_at = self.starting_at = time.monotonic()
            self._progress.say("submitted", f"submitted application {started.name}, log {started.log}")
        return application

    def stop(self, grace_seconds: float) -> None:
        """Stop the application; kill it after the grace period."""
        self._launcher.stop(self.name, grace_seconds=grace_seconds)

    def _mourn(self, application: Application) -> None:
        cause = self._launcher.cause(application)
        if application.exit_code == EXIT_CONFIG:
            raise LaunchError(f"{self._owner}: application {application.name} ended: {cause}")
        lived = time.time() - application.submitted_at_ms / 1000
        self._deaths = 0 if lived > _SETTLED_SECONDS else min(self._deaths + 1, len(_RESTART_SECONDS) - 1)
        pause = _RESTART_SECONDS[self._deaths]
        self._start_at = time.monotonic() + pause
        if application.state is State.DEAD:
            self._progress.say(
                "died", f"application {application.name} died: {cause}; starting it again in {pause:g} s", cause=cause
            )

    def _say_unseen(self) -> None:
        if not self._unseen:
            self._unseen = True
            self._progress.say(
                "unseen", f"application {self.name} cannot be seen now: its cluster does not respond; waiting for it"
            )

    def update(self, application: Application, spec: PoolSpec) -> bool:
        """Have a running application of a pool follow another spec. Return False if its cluster cannot pass that on: it
        must be replaced."""
        return self._launcher.update(application, spec)

    def replace(self) -> None:
        """Stop the application; the next `keep` submits it without a pause."""
        self._launcher.stop(self.name)
        self._start_at = time.monotonic()

    def _write(self, spec: Spec) -> None:
        try:
            spec.write(self._spec_path)
        except OSError as error:
            raise SetupError(
                f"{self._owner}: writing {self._spec_path}: {error.strerror}", hint="free or change that disk"
            ) from error
