"""`strait status`: what is copied, how far behind, and why not."""

from typing import Annotated

import typer

from strait.cli.options import ConfigOption, JsonOption, LinkOption, print_json


def status(
    config: ConfigOption,
    link: LinkOption,
    topic: Annotated[str | None, typer.Argument(help="Only this topic.", show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """Say for each partition of the link's topics what it does, how far it is and what it waits for."""
    from strait.control import Control

    with Control.of(config, link) as control:
        found = control.status(topic)
    if as_json:
        print_json(found.as_data())
    else:
        from strait.cli.tables import print_status

        print_status(found)
