"""What an application is to whoever launches it, whichever way it runs.

Applications are not tasks of anybody: they outlive whoever submitted them, and two of one kind are harmless, because
the destination's brokers accept each record once. So a launcher may be simple. It must not be sloppy: what runs is
found, and what is ended leaves nothing behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import strait
from strait.config.app_spec import AppSpec
from strait.config.links import Spark

REPLICATE = Path(strait.__file__).parents[2] / "spark_jobs" / "replicate.py"
"""The Spark job that every application runs."""

LOG_TAIL_BYTES = 64 * 1024
EXIT_FAILED = 1
EXIT_CONFIG = 2
EXIT_NEEDS_MORE_CORES = 3
"""Exit codes of an application besides 0. With 3 it is to be submitted again, with the plan's number of slots."""


class State(StrEnum):
    """Where an application is in its life."""

    SUBMITTED = "submitted"  # accepted; nothing is copied yet
    RUNNING = "running"
    FINISHED = "finished"  # ended by itself or on request, with exit code 0
    DEAD = "dead"  # ended in any other way
    UNKNOWN = "unknown"  # who runs it does not answer

    @property
    def alive(self) -> bool:
        """Whether it copies or soon will."""
        return self in (State.SUBMITTED, State.RUNNING)


@dataclass(frozen=True, slots=True)
class Application:
    """One submission, as last seen. ``id`` is what its launcher calls it; ``name`` is the same for every submission.

    ``exit_code`` is None while it lives, and when it was killed in such a way that nobody was left to write it down.
    ``log`` says where its output is: a path on this host, or the address under which its cluster shows it.
    """

    name: str
    id: str
    state: State
    log: str
    submitted_at_ms: int
    exit_code: int | None = None


class Launcher(Protocol):
    """One way of running applications. Every method may be called by several processes at once."""

    def submit(self, name: str, spec_path: Path, spark: Spark) -> Application:
        """Start an application and return without waiting for it; one of this name that lives is left as it is.

        Raises:
            SetupError: this machine lacks what it needs.
            LaunchError: it could not be started.
        """

    def state(self, name: str) -> Application | None:
        """The living application of this name, else the last that lived, else None."""

    def stop(self, name: str, *, grace_seconds: float = 15.0) -> None:
        """Ask every application of this name to end; end it by force after the grace. Nothing of it is left then.

        Raises:
            LaunchError: something of it could not be ended.
        """

    def list(self) -> Sequence[Application]:
        """The state of every name that is known or that runs, in order of names, whether anybody wants it or not."""

    def history(self, name: str) -> Sequence[Application]:
        """Every submission of this name, the newest first, as far as it is remembered: the last five at least."""

    def spec(self, application: Application) -> AppSpec | None:
        """The spec that it runs with, whatever was submitted later; None where it is lost or another version's."""

    def log_tail(self, application: Application, max_bytes: int = LOG_TAIL_BYTES) -> str:
        """The end of its output; "" where there is none any more."""

    def cause(self, application: Application) -> str:
        """Why an application that ended did so, for people: how it ended and its own last words, without secrets."""
