"""Determine which submission a driver belongs to. The master lists drivers without a name, and a driver that was lost
with its worker continues under another id; but the worker of each shows the command that it was started with."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from strait.launch import submission, supervised
from strait.launch.standalone.master import Driver, Master, Seen
from strait.launch.submission import Submission

_COMMAND_BYTES = 32 * 1024
_COMMAND = re.compile(r"\ALaunch Command: [^\n]*\n")
_SPEC = re.compile(r' "--spec" "(?P<path>/[^"]+)/spec\.json"')
_DRIVER_ID = re.compile(r"[?&]driverId=(?P<id>[\w-]+)")


@dataclass(frozen=True, slots=True)
class Found:
    """The live drivers of a cluster. ``unknown``: number of drivers whose submission is not known yet, since they have
    no worker or it does not respond."""

    owned: tuple[tuple[Driver, Submission], ...]
    unknown: int

    def of(self, name: str) -> list[tuple[Driver, Submission]]:
        """Return the drivers of one application, newest submission first."""
        mine = [pair for pair in self.owned if pair[1].name == name]
        return sorted(mine, key=lambda pair: pair[1].submitted_at_ms, reverse=True)


class Drivers:
    """Finds the submissions of drivers, and remembers them: they cannot change.

    Args:
        directory: directory of the submissions that were made from this host or one that shares it.
    """

    def __init__(self, master: Master, directory: Path) -> None:
        self._master = master
        self._directory = directory
        self._known: dict[str, Submission | None] = {}

    def find(self, seen: Seen) -> Found:
        """Return the submission of each live driver."""
        living = [driver for driver in seen.drivers if driver.active]
        if any(driver.id not in self._known for driver in living):
            self._known |= recorded(self._directory)
        unknown = 0
        for driver in living:
            if driver.id not in self._known and not self._identify(driver):
                unknown += 1
        pairs = ((driver, self._known.get(driver.id)) for driver in living)
        return Found(tuple((driver, one) for driver, one in pairs if one is not None), unknown)

    def _identify(self, driver: Driver) -> bool:
        """Identify a driver by the first line of its log on its worker. Return whether that line is there. A submission
        in another directory belongs to another installation, even if its link has the same name."""
        text = driver.page and self._master.log(driver.page, driver.id, "stderr", first=_COMMAND_BYTES)
        command = _COMMAND.match(text or "")
        if command is None:
            return False
        spec = _SPEC.search(command[0])
        folder = Path(spec["path"]) if spec else None
        ours = folder is not None and folder.name.isdecimal() and folder.parent.parent == self._directory
        self._known[driver.id] = Submission(folder) if folder is not None and ours else None
        return True


def recorded(directory: Path) -> Mapping[str, Submission]:
    """Return driver id -> submission, as launchers and applications have recorded it."""
    names = [path for path in directory.iterdir() if path.is_dir()] if directory.is_dir() else []
    submissions = (one for name in names for one in submission.of_name(name))
    return {driver: one for one in submissions for driver in ids(one)}


def ids(one: Submission) -> Iterable[str]:
    """Yield the ids of a submission's drivers, the last one last."""
    first = _driver_file(one)
    if first.is_file():
        yield first.read_text(encoding="ascii").strip()
    if announced := _DRIVER_ID.search(supervised.log_address(one.folder)):
        yield announced["id"]


def record(one: Submission, driver: str) -> None:
    """Record which driver was started for a submission."""
    _driver_file(one).write_text(f"{driver}\n", encoding="ascii")


def _driver_file(one: Submission) -> Path:
    return one.folder / "driver"
