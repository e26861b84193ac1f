"""`strait plan` shows what would change, `strait apply` does it."""

from typing import Annotated

import typer

from strait.cli.options import ConfigOption, JsonOption, LinkOption, print_json


def plan(config: ConfigOption, link: LinkOption, as_json: JsonOption = False) -> None:
    """Show what would be created, copied and left out. Changes nothing."""
    from strait.control import Control

    with Control.of(config, link) as control:
        proposal = control.propose()
    if as_json:
        print_json(proposal.as_data())
    else:
        typer.echo(proposal.as_text())


def apply(
    config: ConfigOption,
    link: LinkOption,
    as_json: JsonOption = False,
    stop: Annotated[bool, typer.Option("--stop", help="Publish that the link's applications are to end.")] = False,
) -> None:
    """Create missing topics and publish the plan that running applications follow."""
    from strait.control import Control

    with Control.of(config, link) as control:
        outcome = control.run_cycle(stopped=stop)
    if as_json:
        print_json(outcome.as_data())
    else:
        typer.echo(outcome.as_text())
