"""`strait run`: one link in the foreground, without Airflow."""

from typing import Annotated

import typer

from strait.cli.options import ConfigOption, JsonOption, LinkOption


def run(
    config: ConfigOption,
    link: LinkOption,
    interval_seconds: Annotated[
        float, typer.Option("--interval", help="Seconds between two looks at both clusters.", min=0.2)
    ] = 30.0,
    as_json: JsonOption = False,
) -> None:
    """Copy one link's topics until Ctrl-C or SIGTERM."""
    from strait.cli.foreground import run_in_foreground

    run_in_foreground(config, link, interval_seconds, as_json)
