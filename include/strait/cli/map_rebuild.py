"""`strait map`: rebuild a lost offset map."""

from collections.abc import Sequence
from typing import Annotated

import typer

from strait.cli.completing import topics_that_start_with
from strait.cli.examples import examples
from strait.cli.long_work import on_stderr
from strait.cli.options import ChosenLink, Command, CommandGroup, Output, OutputOption, YesOption, link_command
from strait.cli.printing import confirm, echo
from strait.cli.tables import plain_table
from strait.control.map_rebuild import MapRebuild
from strait.control.rebuilt import Rebuilt
from strait.text import plural

app = typer.Typer(cls=CommandGroup, help="Rebuild a lost offset map.")


@app.callback()
def _map() -> None:
    """Rebuild a lost offset map."""


@app.command("rebuild", cls=Command, epilog=examples("map rebuild"))
@link_command
def rebuild(
    link: ChosenLink,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            help="Only this source topic. Repeatable.",
            show_default=False,
            autocompletion=topics_that_start_with,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also partitions of which the map has entries; replaces these entries.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written; change nothing.")] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Rebuild the offset map from both clusters' records.

    Use it if the map topic was deleted, truncated or damaged. The link must be stopped. Reads both logs completely and
    matches their batches; writes only offsets that are exact, and lists the records whose source offsets stay unknown.
    Exits with 1 if a partition cannot be rebuilt.
    """
    rebuilding = MapRebuild(link.load(), on_stderr())
    found = rebuilding.propose(topic or (), everything=everything)
    ready = [one for one in found if one.verdict == "ready"]
    if not dry_run and ready:
        if not yes:
            _show(link.name, found, Output.TABLE, err=True)
            count = sum(len(one.entries) for one in ready)
            confirm(f"Write {plural(count, 'entry')} for {plural(len(ready), 'partition')}?", err=True)
        found = rebuilding.carry_out(found)
    _show(link.name, found, output)
    if any(one.verdict == "refused" for one in found):
        raise typer.Exit(1)


def _show(link: str, found: Sequence[Rebuilt], output: Output, *, err: bool = False) -> None:
    if output.structured:
        output.write({"link": link, "partitions": [one.as_data() for one in found]})
        return
    if not found:
        echo(f"link {link}: its plan has no partitions", err=err)
        return

    rows = (
        [
            f"{one.topic}-{one.partition}",
            f"{one.destination}-{one.partition}",
            one.verdict,
            "-" if one.position < 0 else f"{one.position:,}",
            f"{one.records:,}",
            f"{sum(part.records for part in one.unknown):,}",
            f"{len(one.entries):,}",
            one.detail,
        ]
        for one in found
    )
    head = ["partition", "destination", "verdict", ">position", ">exact", ">unknown", ">entries", "detail"]
    plain_table(head, rows, err=err)
    for one in found:
        for part in one.unknown:
            numbers = f"{one.destination}-{one.partition} offsets {part.copy_from:,} to {part.copy_to - 1:,}"
            echo(f"unknown: {numbers} ({plural(part.records, 'record')}): {part.reason}", err=err)
