"""`make bench`: Strait and MirrorMaker 2 side by side on this machine."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from mm2 import report, workloads
from mm2.progress import Steps
from mm2.run import COPIERS, Options, run
from strait.cli.main import run_command
from strait.cli.options import Output
from support.reaper import leave_nothing


class Part(StrEnum):
    """What a run can be narrowed to."""

    STRAIT = "strait"
    MM2 = "mm2"
    RELAY = "relay"


def bench(
    workload: Annotated[
        list[str] | None, typer.Option("--workload", help="Run this workload; may be given again. Default: all.")
    ] = None,
    scale: Annotated[
        float,
        typer.Option("--scale", help="Size of the workloads; 1 keeps MirrorMaker 2 busy for half a minute.", min=0.001),
    ] = 1.0,
    rounds: Annotated[
        int, typer.Option("--rounds", help="How often each empties each full topic, by turns; medians count.", min=1)
    ] = 3,
    latency_seconds: Annotated[
        float | None,
        typer.Option("--latency-seconds", help="How long latency is measured of each, before --scale. Default: 30."),
    ] = None,
    brokers: Annotated[
        int, typer.Option("--brokers", help="Of each cluster; each partition has a replica on all.", min=1)
    ] = 1,
    tls: Annotated[bool, typer.Option("--tls", help="Between brokers and all their clients.")] = False,
    only: Annotated[Part | None, typer.Option("--only", help="Run only this part.")] = None,
    record: Annotated[
        bool, typer.Option("--record/--no-record", help="Append the results to benchmarks/results.md.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Let Strait and MirrorMaker 2 copy the same data on this machine and compare them."""
    copiers = tuple(COPIERS) if only is None else tuple(name for name in COPIERS if name == only.value)
    options = Options(
        workloads=workloads.choose(workload or (), latency_seconds),
        copiers=copiers,
        # It knows one broker, and no TLS.
        relay=only in (None, Part.RELAY) and brokers == 1 and not tls,
        scale=scale,
        rounds=rounds,
        brokers=brokers,
        tls=tls,
    )
    leave_nothing()
    with Steps() as steps:
        results = run(options, steps)
    if as_json:
        Output.JSON.write(results.as_json())
    else:
        report.show(results, Console(width=None if sys.stdout.isatty() else 140))
    if record:
        report.record(results, report.results_file())


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(bench)
    run_command(app)
