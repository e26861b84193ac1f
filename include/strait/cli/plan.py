"""`strait plan` shows what would change, `strait apply` does it."""

from typing import Annotated

import typer

from strait.cli.options import ConfigOption, JsonOption, LinkOption, print_json


def plan(config: ConfigOption, link: LinkOption, as_json: JsonOption = False) -> None:
    """Show what would be created, copied and left out. Changes nothing."""
    from strait.control import Control
    from strait.planning import rendering

    with Control.of(config, link) as control:
        proposal = control.propose()
    if as_json:
        print_json(rendering.proposal_data(proposal))
    else:
        typer.echo(rendering.proposal_text(proposal))


def apply(
    config: ConfigOption,
    link: LinkOption,
    as_json: JsonOption = False,
    stopped: Annotated[
        bool | None,
        typer.Option("--stop/--start", help="End the link's applications, or let them run again; it stays so."),
    ] = None,
) -> None:
    """Create missing topics and publish the plan that running applications follow."""
    from strait.control import Control

    with Control.of(config, link) as control:
        outcome = control.run_cycle(stopped=stopped)
    if as_json:
        print_json(outcome.as_data())
    else:
        typer.echo(outcome.as_text())
