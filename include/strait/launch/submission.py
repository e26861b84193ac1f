"""The folder of one submission: what was started, with which properties, what it said and how it ended.

    <directory>/<name>/<submitted_at_ms>/   spec.json  spark.properties  log  scratch/  started  exit

Everything is written before the start, by whoever holds the name's lock; only `started` and `exit` come later.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from strait.config.app_spec import AppSpec
from strait.config.links import Spark
from strait.errors import ConfigError, LaunchError
from strait.launch.processes import MARK

KEPT = 5


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission's folder, which only its owner can look into."""

    folder: Path

    @property
    def name(self) -> str:
        """The application that was submitted."""
        return self.folder.parent.name

    @property
    def submitted_at_ms(self) -> int:
        """When it was submitted; the folder is called by it."""
        return int(self.folder.name)

    @property
    def log(self) -> Path:
        """Everything that the application and Spark print."""
        return self.folder / "log"

    @property
    def scratch(self) -> Path:
        """Where Spark puts what it needs only while it runs."""
        return self.folder / "scratch"

    @property
    def properties(self) -> Path:
        """The application's Spark properties: in a file, since everybody can read a command line."""
        return self.folder / "spark.properties"

    @property
    def exit(self) -> Path:
        """Holds the exit code once there is one."""
        return self.folder / "exit"

    @property
    def started(self) -> bool:
        """Whether the application has announced that its query runs."""
        return (self.folder / "started").exists()

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and when everything was killed at once so that nobody was left to write it."""
        try:
            return int(self.exit.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None

    @property
    def spec(self) -> Path:
        """Its own copy of the spec that it was given, so that a new one under the old path does not reach it."""
        return self.folder / "spec.json"


@contextmanager
def locked(directory: Path, name: str) -> Iterator[None]:
    """One at a time submits or ends applications of a name: the monitor and the health check may act at once."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{name}.lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def undone_if_refused(new: Submission) -> Iterator[None]:
    """While a submission is handed to a cluster: where that fails nothing is left of its folder.

    Raises:
        LaunchError: as it was raised, or for this host's disk.
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
    """Every application of which a launcher keeps something there."""
    return {path.name for path in directory.iterdir() if path.is_dir()} if directory.is_dir() else set()


def following(name_folder: Path) -> Submission:
    """The submission to come after all others of its name. Makes nothing."""
    newest = max((submission.submitted_at_ms for submission in of_name(name_folder)), default=0)
    return Submission(name_folder / str(max(time.time_ns() // 1_000_000, newest + 1)))


def write(new: Submission, spec: AppSpec, properties: str = "") -> None:
    """Make the folder of a submission with all that is known before its start. Raises OSError.

    Args:
        properties: for `spark-submit`; "" where that is not used.
    """
    new.folder.mkdir(mode=0o700, parents=True)
    new.scratch.mkdir()
    if properties:
        new.properties.write_text(properties, encoding="utf-8")
    spec.write(new.spec)


def of_name(name_folder: Path) -> list[Submission]:
    """Every kept submission of a name, the newest first."""
    if not name_folder.is_dir():
        return []
    submissions = [Submission(path) for path in name_folder.iterdir() if path.name.isdecimal()]
    return sorted(submissions, key=lambda submission: submission.submitted_at_ms, reverse=True)


def spec_of(one: Submission) -> AppSpec | None:
    """None where it is gone or another version's."""
    try:
        return AppSpec.read(one.spec)
    except ConfigError:
        return None


def place_of(one: Submission) -> Spark:
    """Where it was submitted to run, without properties; this host where nothing else, or nothing that this version can
    read, was written down."""
    try:
        return Spark.model_validate_json((one.folder / "place.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Spark()


def write_place(one: Submission, spark: Spark) -> None:
    """Write down where it is submitted to run. Raises OSError."""
    text = spark.model_dump_json(exclude={"conf"})  # which may hold secrets
    partial = one.folder / "place.json.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(one.folder / "place.json")


def log_tail(one: Submission, max_bytes: int) -> str:
    """The end of its log; "" where that is gone."""
    try:
        with one.log.open("rb") as file:
            file.seek(max(0, one.log.stat().st_size - max_bytes))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def drop_old(name_folder: Path) -> None:
    """Keep the newest few submissions. Only to be called when none of the older ones runs."""
    kept = of_name(name_folder)
    for submission in kept[1:]:
        shutil.rmtree(submission.scratch, ignore_errors=True)  # a killed JVM leaves it full
    for submission in kept[KEPT:]:
        shutil.rmtree(submission.folder)


def announce_start() -> None:
    """Called by an application once its query runs. Does nothing for one that no launcher started."""
    if folder := os.environ.get(MARK):
        (Path(folder) / "started").touch()
