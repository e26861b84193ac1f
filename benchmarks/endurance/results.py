"""Prints what a scenario found, and adds it to results-endurance.md."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from endurance.scenario import Finding, Scenario, Sizes
from measuring import append_table
from mm2.machine import machine

RESULTS = Path(__file__).parents[1] / "results-endurance.md"
_INTRODUCTION = (
    "# Endurance\n\nMade by `make endurance`: what weeks of copying and thousands of partitions cost a link, on real "
    "brokers.\n[endurance/README.md](endurance/README.md) has the scenarios, and what is compressed in them.\n"
)
_HEAD = ("what", "bound", "measured", "held")


def show(findings: Sequence[Finding]) -> None:
    """As a table on standard output."""
    rows = [_HEAD, *(finding.row for finding in findings)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")


def record(name: str, scenario: Scenario, sizes: Sizes, findings: Sequence[Finding], load_before: float) -> None:
    """Add a table: when, which commit, which machine, which sizes."""
    if not RESULTS.exists():
        RESULTS.write_text(_INTRODUCTION, encoding="utf-8")
    here = machine()
    said = ", ".join(f"{option} {getattr(sizes, option):g}" for option in scenario.matters)
    measured = (
        f"**{name}**: {scenario.about}\n\n{said}, seed {sizes.seed}. {here.cores} cores ({here.cpu}), "
        f"{here.memory_gib:g} GiB; load average before {load_before:.1f}, after {os.getloadavg()[0]:.1f}."
    )
    append_table(RESULTS, measured, _HEAD, [f"| {' | '.join(finding.row)} |" for finding in findings])
