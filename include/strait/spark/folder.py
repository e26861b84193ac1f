"""The directory of one running application, which holds Spark's checkpoint: never shared, and disposable.

Two applications may run one spec at the same time, which is harmless for the replicated records, but Spark ends a query
that finds another one in its checkpoint. So each application has a separate directory, named by its id, and removes it
when it ends. A killed one leaves a few kilobytes; the next one to start removes them after a week.
"""

import contextlib
import os
import shutil
import time
from pathlib import Path

from strait.config.app_spec import Spec

_LEFT_BEHIND_SECONDS = 7 * 86400.0  # the directory is touched whenever the ledger is written, at least once a day


def folder_of(spec: Spec, application: str) -> Path:
    """Return the directory of the files that this application needs only while it runs."""
    return Path(spec.checkpoint_dir) / application


def checkpoint(spec: Spec, application: str) -> Path:
    """Return Spark's checkpoint. It only counts micro-batches: the position to resume from is in the destination's
    log."""
    return folder_of(spec, application) / "checkpoint"


def checkpoint_location(spec: Spec, application: str) -> str:
    """Return Spark's checkpoint as Hadoop reads a path on this host: unlike in a URI, no character is percent-encoded."""
    return f"file://{checkpoint(spec, application).resolve()}"


def stop_file(spec: Spec, application: str) -> Path:
    """Return the file that makes slots end while it exists. Slots on other machines may not see it; Spark kills
    those."""
    return folder_of(spec, application) / "stop"


def slots_may_see(spec: Spec) -> bool:
    """Return whether slots can see the directory: a relative path is in the working directory of the driver, as on
    YARN."""
    return Path(spec.checkpoint_dir).is_absolute()


def make(spec: Spec, application: str) -> None:
    """Create the directory, and remove those that were left long ago. Raises OSError."""
    for other in Path(spec.checkpoint_dir).glob("*"):
        with contextlib.suppress(FileNotFoundError):  # another application removes it, too
            if other.stat().st_mtime < time.time() - _LEFT_BEHIND_SECONDS:
                shutil.rmtree(other)
    folder_of(spec, application).mkdir(parents=True)


def forget_checkpoint(spec: Spec, application: str) -> None:
    """Delete the checkpoint, so that a query starts from scratch."""
    shutil.rmtree(checkpoint(spec, application), ignore_errors=True)


def touch(spec: Spec, application: str) -> None:
    """Mark the directory as in use. Does nothing if it was deleted: Spark may continue without it or report that
    itself."""
    with contextlib.suppress(FileNotFoundError):
        os.utime(folder_of(spec, application))


def remove(spec: Spec, application: str) -> None:
    """Remove the directory; files that cannot be removed now are removed later."""
    shutil.rmtree(folder_of(spec, application), ignore_errors=True)
