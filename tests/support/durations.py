"""Keep how long tests took: ``durations.py REPORT…`` takes JUnit reports into tests/durations.json.

Tests that no report names keep their duration if they still exist. `support.fixtures.longest_first` orders files by it.
"""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

PROJECT = Path(__file__).parents[2]
FILE = PROJECT / "tests/durations.json"
SHORTEST_SECONDS = 0.5


def reported(path: Path) -> dict[str, float]:
    """Test, as ``file::name`` -> seconds with setup and teardown. Tests that were interrupted are left out."""
    every = ElementTree.parse(path).iter("testcase")  # noqa: S314  # written by pytest on this machine
    cases = [case for case in every if "classname" in case.attrib]
    return {f"{_file(case.attrib['classname'])}::{case.attrib['name']}": float(case.attrib["time"]) for case in cases}


def merged(known: dict[str, float], new: dict[str, float]) -> dict[str, float]:
    """The newest duration of each test that takes at least half a second, by name."""
    every = {name: seconds for name, seconds in (known | new).items() if (PROJECT / name.split("::")[0]).exists()}
    return {name: round(every[name], 1) for name in sorted(every) if every[name] >= SHORTEST_SECONDS}


def main(reports: list[str]) -> None:
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for report in reports:
        known = merged(known, reported(Path(report)))
    FILE.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def _file(classname: str) -> str:
    """JUnit's class name is the module's path with dots, and no test here is a method."""
    return f"{classname.replace('.', '/')}.py"


if __name__ == "__main__":
    main(sys.argv[1:])
