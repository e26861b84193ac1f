"""`strait losses`: what a link could not copy or found gone, and what was done about it."""

from typing import TYPE_CHECKING, Annotated

import typer

from strait.cli.options import ConfigOption, JsonOption, LinkOption, print_json

if TYPE_CHECKING:
    from strait.state.schema import Loss


def losses(
    config: ConfigOption,
    link: LinkOption,
    topic: Annotated[str | None, typer.Argument(help="Only this source topic.", show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """List the loss ledger: offsets that are gone, why, since when, and what was done about it."""
    from strait.config.links import load_link
    from strait.state.reader import StateReader

    file = load_link(config, link)
    destination = file.links[link].destination
    with StateReader(file.clusters[destination], destination, link, follow=("losses",)) as state:
        state.catch_up()
        found = [loss for loss in state.losses if topic in (None, loss.topic)]
        trouble = state.trouble
    if as_json:
        print_json([loss.model_dump() for loss in found])
    elif found:
        _print(found)
    else:
        typer.echo(f"link {link}: nothing was lost")
    if trouble is not None:
        raise trouble


def _print(found: "list[Loss]") -> None:
    from strait.cli.tables import plain_table, utc

    rows = (
        [
            utc(loss.at_ms),
            f"{loss.topic}-{loss.partition}",
            loss.side,
            f"{loss.from_offset:,}",
            f"{loss.to_offset:,}",
            loss.action,
            f"{loss.cause}: {loss.detail}",
        ]
        for loss in found
    )
    plain_table(["when (UTC)", "of", "side", ">from", ">to", "action", "cause"], rows)
