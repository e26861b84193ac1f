"""Files by which an application and its launcher communicate if a cluster starts and ends the driver. They are in the
directory of its submission, which the submitting host and the driver's share.

    <submission>/  attempts  one line for each start: milliseconds since 1970, and the address of its log
                   stop      exists: end, and do not start again
                   exit      the exit code, once no other start follows

With `spark.driver.supervise` a cluster starts a driver again whenever it exits with a code other than 0, as after kill
-9. So an application whose end is final records its exit code, and exits with 0.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from strait.errors import ConfigError
from strait.launch.applications import RESTART_LIMIT, RESTART_WINDOW_SECONDS
from strait.launch.base import EXIT_CONFIG, EXIT_FAILED
from strait.launch.processes import MARK
from strait.waiting import unix_ms

log = logging.getLogger(__name__)

_SUPERVISED = "STRAIT_SUPERVISED"
_LOG_ADDRESS = "SPARK_DRIVER_LOG_URL_STDOUT"  # a Standalone worker sets it for its drivers


def environment(folder: Path) -> dict[str, str]:
    """Return the environment that the driver of a submission is started with, which the functions below read."""
    return {MARK: str(folder), _SUPERVISED: "1"}


def begin() -> bool:
    """Announce this start. Return False if the application must end immediately, since it was asked to, or had ended
    before.

    Raises:
        ConfigError: the submission's directory cannot be reached from this host, or not by this user.
    """
    folder = _folder()
    if folder is None:
        return True
    try:
        if (folder / "exit").exists() or (folder / "stop").exists():
            return False
        (folder / "started").unlink(missing_ok=True)
        with (folder / "attempts").open("a", encoding="utf-8") as file:
            file.write(f"{unix_ms()} {os.environ.get(_LOG_ADDRESS, '')}\n")
    except OSError as error:
        raise ConfigError(
            f"submission {folder}",
            [f"cannot be used on this host: {error.strerror}"],
            hint="the submitting host and the workers must share STRAIT_HOME under one path, for one user",
        ) from error
    return True


def stop_asked() -> bool:
    """Return whether the launcher wants the application to end. False if it was not started with `environment`."""
    folder = _folder()
    return folder is not None and (folder / "stop").exists()


def end(exit_code: int) -> int:
    """Return the code that the process must exit with. The cluster restarts an application that failed, but not one
    that has been started `RESTART_LIMIT` times within the window."""
    folder = _folder()
    if folder is None or (exit_code == EXIT_FAILED and not _fails_again_and_again(folder)):
        return exit_code
    try:
        partial = folder / "exit.partial"
        partial.write_text(f"{exit_code}\n", encoding="ascii")
        partial.replace(folder / "exit")
    except OSError as error:
        log.error("submission %s: its exit code %d cannot be kept: %s", folder, exit_code, error)  # noqa: TRY400
    return 0


def fail_to_begin() -> int:
    """Return the code that the process must exit with if it fails before the application could start. This start is
    counted like any other."""
    try:
        return end(EXIT_FAILED) if begin() else 0
    except ConfigError as error:
        log.error("%s", error)  # noqa: TRY400
        return end(EXIT_CONFIG)


def ask_to_stop(folder: Path) -> None:
    """Ask the application to end; called by the launcher. Does nothing if this host does not see the directory."""
    if folder.is_dir():
        (folder / "stop").touch()


def log_address(folder: Path) -> str:
    """Return the address of the last start's log; "" before the first."""
    lines = _attempts(folder)
    return lines[-1].partition(" ")[2] if lines else ""


def _fails_again_and_again(folder: Path) -> bool:
    since_ms = unix_ms() - int(RESTART_WINDOW_SECONDS * 1000)
    return sum(int(line.partition(" ")[0]) >= since_ms for line in _attempts(folder)) >= RESTART_LIMIT


def _attempts(folder: Path) -> list[str]:
    try:
        return (folder / "attempts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []  # there was no start, or this host does not see the file


def _folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    return Path(environ[MARK]) if environ.get(_SUPERVISED) and environ.get(MARK) else None
