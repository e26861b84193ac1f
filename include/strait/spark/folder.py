"""The folder that one running application keeps beside Spark's checkpoint: its own, never another's, and disposable.

Two applications may run one spec at once, which is harmless for the copies, but Spark ends a query that meets another
one in its checkpoint. So each has a folder of its own, named by its id, and removes it when it ends. What a killed one
leaves is a few kilobytes; the next one to start removes it after a week.
"""

import contextlib
import os
import shutil
import time
from pathlib import Path

from strait.config.app_spec import AppSpec

_LEFT_BEHIND_SECONDS = 7 * 86400.0  # it is touched whenever the ledger is written, once a day at least


def folder_of(spec: AppSpec, application: str) -> Path:
    """Where this application keeps what it only needs while it runs."""
    return Path(spec.checkpoint_dir) / application


def checkpoint(spec: AppSpec, application: str) -> Path:
    """Spark's checkpoint. It only counts micro-batches: where copying goes on, the destination's log says."""
    return folder_of(spec, application) / "checkpoint"


def stop_file(spec: AppSpec, application: str) -> Path:
    """While it exists, slots end. Slots on other machines may not see it; Spark ends those by force."""
    return folder_of(spec, application) / "stop"


def slots_may_see(spec: AppSpec) -> bool:
    """Whether slots can see the folder: a relative path is in the working directory of the driver, as on YARN."""
    return Path(spec.checkpoint_dir).is_absolute()


def make(spec: AppSpec, application: str) -> None:
    """Make the folder, and clear away what was left behind long ago. Raises OSError."""
    for other in Path(spec.checkpoint_dir).glob("*"):
        with contextlib.suppress(FileNotFoundError):  # somebody else clears away too
            if other.stat().st_mtime < time.time() - _LEFT_BEHIND_SECONDS:
                shutil.rmtree(other)
    folder_of(spec, application).mkdir(parents=True)


def forget_checkpoint(spec: AppSpec, application: str) -> None:
    """Let a query begin from scratch."""
    shutil.rmtree(checkpoint(spec, application), ignore_errors=True)


def touch(spec: AppSpec, application: str) -> None:
    """Show that it is in use. Where somebody deleted it, Spark may go on without or say so itself."""
    with contextlib.suppress(FileNotFoundError):
        os.utime(folder_of(spec, application))


def remove(spec: AppSpec, application: str) -> None:
    """Remove the folder; what cannot be removed is cleared away later."""
    shutil.rmtree(folder_of(spec, application), ignore_errors=True)
