"""The directory of one submission: its spec, its properties, its output and its exit code.

    <directory>/<name>/<submitted_at_ms>/   spec.json  spark.properties  log  scratch/  head-start/  started  exit

The process that holds the name's lock creates all of these before the start, except `started` and `exit`.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from strait.config.app_spec import PoolSpec, Spec, read_spec
from strait.config.links import Spark
from strait.errors import ConfigError, LaunchError
from strait.launch.processes import MARK
from strait.waiting import unix_ms

KEPT = 5
"""Newest submissions of each application that are known, by any launcher."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The directory of one submission, which only its owner can access."""

    folder: Path

    @property
    def name(self) -> str:
        """The name of the application that was submitted."""
        return self.folder.parent.name

    @property
    def submitted_at_ms(self) -> int:
        """When it was submitted, in ms since 1970; also the name of the directory."""
        return int(self.folder.name)

    @property
    def log(self) -> Path:
        """File with all output of the application and Spark."""
        return self.folder / "log"

    @property
    def scratch(self) -> Path:
        """Directory for Spark's files that are needed only while the application runs."""
        return self.folder / "scratch"

    @property
    def head_start(self) -> Path:
        """Directory of the processes that copy while Spark starts; see `strait.spark.head_start`. It exists only if
        there are any."""
        return self.folder / "head-start"

    @property
    def properties(self) -> Path:
        """File with the application's Spark properties. They are in a file, since every user can read a command
        line."""
        return self.folder / "spark.properties"

    @property
    def exit(self) -> Path:
        """File with the exit code, once there is one."""
        return self.folder / "exit"

    @property
    def started(self) -> bool:
        """Whether the application has announced that its query runs."""
        return (self.folder / "started").exists()

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs, and if all its processes were killed together so that none was left to
        write it."""
        try:
            return int(self.exit.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None

    @property
    def spec(self) -> Path:
        """File with the spec that it was given, kept here so that a new one under the old path does not affect it."""
        return self.folder / "spec.json"


@contextmanager
def locked(directory: Path, name: str) -> Iterator[None]:
    """Hold the lock of a name: one process at a time submits or stops its applications. The monitor and the health
    check may act at the same time. Raises LaunchError: its file cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        opened = (directory / f"{name}.lock").open("ab")
    except OSError as error:
        raise LaunchError(
            f"application {name}: locking {error.filename}: {error.strerror}",
            hint="check that STRAIT_HOME is writable and its disk has space",
        ) from error
    with opened as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def undone_if_refused(new: Submission) -> Iterator[None]:
    """Remove the directory of a submission if the block, which hands it to a cluster, fails.

    Raises:
        LaunchError: as it was raised, or for an error of this host's disk.
    """
    try:
        yield
    except OSError as error:
        shutil.rmtree(new.folder, ignore_errors=True)
        raise LaunchError(
            f"application {new.name}: submitting it: {error.filename}: {error.strerror}",
            hint="check that STRAIT_HOME is writable and its disk has space",
        ) from error
    except LaunchError:
        shutil.rmtree(new.folder, ignore_errors=True)
        raise


def names_in(directory: Path) -> set[str]:
    """Return every application of which a launcher keeps submissions in the directory."""
    return {path.name for path in directory.iterdir() if path.is_dir()} if directory.is_dir() else set()


def following(name_folder: Path) -> Submission:
    """Return the next submission of a name, newer than all others. Creates no files."""
    newest = max((submission.submitted_at_ms for submission in of_name(name_folder)), default=0)
    return Submission(name_folder / str(max(unix_ms(), newest + 1)))


def write(new: Submission, spec: Spec, properties: str = "") -> None:
    """Create the directory of a submission with everything that is known before its start. Raises OSError.

    Args:
        properties: for `spark-submit`; "" if that is not used.
    """
    new.folder.mkdir(mode=0o700, parents=True)
    new.scratch.mkdir()
    if properties:
        new.properties.write_text(properties, encoding="utf-8")
    spec.write(new.spec)


def rewrite(one: Submission, spec: PoolSpec) -> None:
    """Replace the spec of a submission that runs. Raises LaunchError."""
    try:
        spec.write(one.spec)
    except OSError as error:
        raise LaunchError(
            f"application {one.name}: writing {one.spec}: {error.strerror}",
            hint="check that STRAIT_HOME is writable and its disk has space",
        ) from error


def of_name(name_folder: Path) -> list[Submission]:
    """Return every kept submission of a name, newest first."""
    if not name_folder.is_dir():
        return []
    submissions = [Submission(path) for path in name_folder.iterdir() if path.name.isdecimal()]
    return sorted(submissions, key=lambda submission: submission.submitted_at_ms, reverse=True)


def spec_of(one: Submission) -> Spec | None:
    """Return the spec of a submission; None if it is lost or from another version."""
    try:
        return read_spec(one.spec)
    except ConfigError:
        return None


def place_of(one: Submission) -> Spark:
    """Return the cluster that it was submitted to, without properties; this host if no cluster, or none that this
    version can read, was recorded."""
    try:
        return Spark.model_validate_json((one.folder / "place.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Spark()


def write_place(one: Submission, spark: Spark) -> None:
    """Record the cluster that it is submitted to. Raises OSError."""
    text = spark.model_dump_json(exclude={"conf"})  # which may hold secrets
    partial = one.folder / "place.json.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(one.folder / "place.json")


def mark_over(one: Submission) -> None:
    """Record that it was seen ended on its cluster."""
    with suppress(OSError):  # its cluster is asked once more
        (one.folder / "over").touch()


def is_over(one: Submission) -> bool:
    """Return whether it was seen ended, by `mark_over`."""
    return (one.folder / "over").exists()


def log_tail(one: Submission, max_bytes: int) -> str:
    """Return the end of its log; "" if it has none any more."""
    try:
        with one.log.open("rb") as file:
            file.seek(max(0, one.log.stat().st_size - max_bytes))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def drop_old(name_folder: Path) -> None:
    """Delete all but the newest `KEPT` submissions. Call this only if none of the older ones runs."""
    kept = of_name(name_folder)
    for submission in kept[1:]:
        shutil.rmtree(submission.scratch, ignore_errors=True)  # a killed JVM leaves its files
    for submission in kept[KEPT:]:
        shutil.rmtree(submission.folder)


def announce_start() -> None:
    """Announce that the application's query runs; called by the application. Does nothing if no launcher started it."""
    if folder := os.environ.get(MARK):
        (Path(folder) / "started").touch()
