"""The interface that all launchers of applications implement.

No process owns an application: it outlives its submitter, and two instances of it are harmless, because the
destination's brokers accept each record once. So a launcher may be simple, but not careless: it must find every running
application, and leave nothing of one that it stops.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from strait.config.app_spec import PoolSpec, Spec
from strait.config.home import shared
from strait.config.links import Spark

REPLICATE = shared() / "spark_jobs" / "replicate.py"
"""The Spark job that every application runs."""

LOG_TAIL_BYTES = 64 * 1024
EXIT_FAILED = 1
EXIT_CONFIG = 2
EXIT_NEEDS_MORE_CORES = 3
"""Exit codes of an application besides 0. After 3 the application must be submitted again, with the plan's number of
slots."""


class State(StrEnum):
    """Lifecycle state of an application."""

    SUBMITTED = "submitted"  # accepted; nothing is copied yet
    RUNNING = "running"
    FINISHED = "finished"  # exited on its own or on request, with exit code 0
    DEAD = "dead"  # exited in any other way
    UNKNOWN = "unknown"  # the cluster that runs it does not respond

    @property
    def alive(self) -> bool:
        """Whether it is copying or about to start."""
        return self in (State.SUBMITTED, State.RUNNING)


@dataclass(frozen=True, slots=True)
class Application:
    """One submission, as last seen. ``id`` is the launcher's identifier for it; ``name`` is the same for every
    submission.

    ``exit_code`` is None while it runs, and if it was killed in such a way that no process was left to record the code.
    ``log`` is the location of its output: a path on this host, or the address or command by which its cluster shows it.
    """

    name: str
    id: str
    state: State
    log: str
    submitted_at_ms: int
    exit_code: int | None = None


class Launcher(Protocol):
    """One way to run applications. Several processes may call every method at the same time.

    Attributes:
        passes_on_specs: whether `update` can give a running application another spec; else it returns False.
    """

    passes_on_specs: bool

    def submit(self, name: str, spec_path: Path, spark: Spark) -> Application:
        """Start an application and return without waiting for it. If one of this name is alive, leave it unchanged.

        Raises:
            SetupError: a prerequisite is missing, such as Java or enough cores.
            LaunchError: it could not be started.
        """

    def update(self, application: Application, spec: PoolSpec) -> bool:
        """Give a running application of a pool another spec, which it follows without a restart. Return False if its
        cluster cannot pass it on: the application must be replaced.

        Raises:
            LaunchError: it could not be passed on now.
        """

    def state(self, name: str) -> Application | None:
        """Return the live application of this name, else the last one that was alive, else None."""

    def stop(self, name: str, *, grace_seconds: float = 15.0) -> None:
        """Ask every application of this name to end; kill it after the grace period. Nothing of it is left afterwards.

        Raises:
            LaunchError: some part of it could not be stopped.
        """

    def list(self) -> Sequence[Application]:
        """Return the state of every name that is known or running, in order of names, whether or not a link needs
        it."""

    def history(self, name: str) -> Sequence[Application]:
        """Return the known submissions of this name, newest first: at least the last five."""

    def spec(self, application: Application) -> Spec | None:
        """Return the spec that it runs with, regardless of later submissions; None if it is lost or from another
        version."""

    def log_tail(self, application: Application, max_bytes: int = LOG_TAIL_BYTES) -> str:
        """Return the end of its output; "" if the output no longer exists."""

    def cause(self, application: Application) -> str:
        """Return why an application ended, for operators: how it ended and its own last message, without secrets."""
