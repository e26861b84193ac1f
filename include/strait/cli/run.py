"""`strait run`: one link in the foreground, without Airflow."""

from typing import Annotated

import typer

from strait.cli.foreground import run_in_foreground
from strait.cli.options import (
    DEFAULT_FILE,
    ConfigOption,
    LinkArgument,
    LinkOption,
    Output,
    OutputOption,
    PoolOption,
    one_link,
    seconds,
)
from strait.cli.pool_foreground import run_pool_in_foreground

SHORTEST_SECONDS = 0.2


def run(
    first: LinkArgument = None,
    config: ConfigOption = DEFAULT_FILE,
    link: LinkOption = None,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            help="Polling interval for topics and configuration, such as 30s or 2m; at least 200ms.",
            parser=seconds,
            metavar="DURATION",
            show_default="30s",
        ),
    ] = 30.0,
    start: Annotated[bool, typer.Option("--start", help="Start the link first if it is stopped.")] = False,
    pool: PoolOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Replicate one link, or all links of a pool, in the foreground.

    Runs until Ctrl-C, SIGTERM or `strait stop`. Exits if the link is stopped, and prints the user and the reason. Starts the
    link's Spark applications on this machine, or on `spark.master`.
    """
    if interval < SHORTEST_SECONDS:
        raise typer.BadParameter(f"at least {SHORTEST_SECONDS:g}s", param_hint="--interval")
    if pool is not None:
        if first is not None or link is not None:
            raise typer.BadParameter("a link cannot be named as well", param_hint="--pool")
        run_pool_in_foreground(config, pool, interval, output, start=start)
        return

    name, _ = one_link(config, link, first)
    run_in_foreground(config, name, interval, output, start=start)
