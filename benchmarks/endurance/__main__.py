"""Run scenarios, print and record what they find; exit with 1 if a bound is missed.

make endurance                                     # all of them
make endurance ARGS="--scenario weeks"             # one; --scenario may be given several times
make endurance ARGS="--scenario weeks --weeks 1 --partitions 100 --no-record"
make endurance ARGS="--list"
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import fields, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from endurance import results
from endurance.scenario import Sizes
from endurance.scenarios import SCENARIOS
from support.reaper import leave_nothing


def main() -> int:
    options = _options().parse_args()
    if options.list:
        for name, scenario in SCENARIOS.items():
            sizes = ", ".join(f"--{_spelled(one)} {getattr(scenario.sizes, one):g}" for one in scenario.matters)
            sys.stdout.write(f"{name:12} {scenario.about}\n{'':12} {sizes}\n")
        return 0
    leave_nothing()
    given = {field.name: value for field in fields(Sizes) if (value := getattr(options, field.name)) is not None}
    missed = [name for name in options.scenario or SCENARIOS if not _run(name, given, record=not options.no_record)]
    if missed:
        sys.stdout.write(f"bounds missed: {', '.join(missed)}\n")
    return 1 if missed else 0


def _run(name: str, given: dict[str, float], *, record: bool) -> bool:
    """Returns whether all bounds hold."""
    scenario, began, load = SCENARIOS[name], time.monotonic(), os.getloadavg()[0]
    sizes = replace(scenario.sizes, **given)
    sys.stdout.write(f"== {name}: {scenario.about}\n")

    def say(text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:7.1f} s  {text}\n")

    with tempfile.TemporaryDirectory(prefix="strait-endurance-") as folder:
        findings = scenario.run(sizes, Path(folder), say)
    results.show(findings)
    if record:
        results.record(name, scenario, sizes, findings, load)
    return all(finding.holds for finding in findings)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "make endurance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="Run this one only.")
    parser.add_argument("--list", action="store_true", help="List scenarios and their sizes.")
    parser.add_argument("--no-record", action="store_true", help="Do not add to results-endurance.md.")
    for field in fields(Sizes):
        parser.add_argument(f"--{_spelled(field.name)}", type=type(field.default))
    return parser


def _spelled(name: str) -> str:
    return name.replace("_", "-")


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main())
