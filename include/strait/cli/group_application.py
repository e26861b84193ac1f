"""The application of one task group under `strait run`: kept alive, except while its plan is stopped."""

import time
from collections.abc import Callable
from pathlib import Path

from strait.cli.progress import Progress
from strait.config.app_spec import AppSpec
from strait.config.links import Spark
from strait.errors import LaunchError, SetupError
from strait.launch.base import EXIT_CONFIG, Application, Launcher, State
from strait.state.schema import Plan

_RESTART_SECONDS = (1.0, 5.0, 15.0, 30.0)  # pauses: after a run over _SETTLED_SECONDS, then after each shorter one
_SETTLED_SECONDS = 60.0  # an application that ran longer is restarted after the first pause


class GroupApplication:
    """Runs one application according to its task group's plan.

    Args:
        name: name of the application.
        make_spec: returns the application's settings for a plan.
    """

    def __init__(
        self,
        link: str,
        name: str,
        folder: Path,
        launcher: Launcher,
        spark: Spark,
        progress: Progress,
        make_spec: Callable[[Plan], AppSpec],
    ) -> None:
        self.name = name
        self._link = link
        self._spec_path = folder / f"{self.name}.json"
        self._launcher = launcher
        self._spark = spark
        self._progress = progress
        self._make_spec = make_spec
        self._deaths = 0
        self._start_at = 0.0  # when to restart it, on the monotonic clock; 0.0: it runs, or its end is not handled yet
        self.submitted_at = 0.0

    def keep(self, plan: Plan) -> Application | None:
        """Submit the application if it was never submitted, or again after a pause if it has ended, unless its plan is
        stopped. Return the application as it was before that, or None.

        Raises:
            LaunchError: its exit code reports that only a change of configuration helps, or it could not be started.
            SetupError: this machine lacks a prerequisite, or the spec cannot be written.
        """
        application = self._launcher.state(self.name)
        if application is not None and application.state.alive:
            self._start_at = 0.0
            return application
        if plan.stopped:
            return application
        if application is not None and self._start_at == 0.0:
            self._mourn(application)
        if time.monotonic() >= self._start_at:
            self._write_spec(plan)
            started = self._launcher.submit(self.name, self._spec_path, self._spark)
            self.submitted_at = time.monotonic()
            self._progress.say("submitted", f"submitted application {started.name}, log {started.log}")
        return application

    def stop(self, grace_seconds: float) -> None:
        """Stop the application; kill it after the grace period."""
        self._launcher.stop(self.name, grace_seconds=grace_seconds)

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

    def _write_spec(self, plan: Plan) -> None:
        try:
            self._make_spec(plan).write(self._spec_path)
        except OSError as error:
            raise SetupError(
                f"link {self._link}: writing {self._spec_path}: {error.strerror}", hint="free or change that disk"
            ) from error
