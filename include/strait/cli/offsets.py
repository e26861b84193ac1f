"""`strait offsets`: translate committed offsets between a link's clusters; export or import the link's own."""

import csv
import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from strait.cli import positions
from strait.cli.completing import groups_that_start_with, links_that_start_with
from strait.cli.examples import examples
from strait.cli.options import (
    DEFAULT_FILE,
    Command,
    CommandGroup,
    ConfigOption,
    LinkOption,
    Output,
    OutputOption,
    one_link,
)
from strait.cli.printing import write
from strait.cli.tables import plain_table
from strait.config.outline import link_names
from strait.config.route_names import typed
from strait.consumer_groups.offsets import Offsets
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.state.translation import Translation

app = typer.Typer(
    cls=CommandGroup,
    help="Translate committed offsets between the clusters; export and import the link's own.",
)
for _name, _command in (("export", positions.export), ("import", positions.import_)):
    app.command(_name, cls=Command, epilog=examples(f"offsets {_name}"))(_command)

Place = tuple[TopicPartition, int]
_HEAD = ("topic", "partition", "offset", "to_topic", "to_offset", "fit")


@app.command("translate", cls=Command, epilog=examples("offsets translate"))
def translate(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LINK] [TOPIC-PARTITION:OFFSET]...",
            help="Name of the link, and offsets. Without offsets, CSV on standard input: topic, partition, offset.",
            show_default=False,
            autocompletion=links_that_start_with,
        ),
    ] = None,
    config: ConfigOption = DEFAULT_FILE,
    link: LinkOption = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            help="The committed offsets of this consumer group.",
            show_default=False,
            autocompletion=groups_that_start_with,
        ),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="From the destination to the source.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Translate committed offsets exactly, at any lag.

    A committed offset is that of the next record to consume. CSV from standard input is answered with CSV.
    Shows for each result how well it fits. Exits with 1 unless every result is exact.
    """
    name, rest = _split(config, link, words or [])
    from_input = not rest and group is None
    if from_input and sys.stdin.isatty():
        raise typer.BadParameter("name offsets as TOPIC-PARTITION:OFFSET, or a --group, or write CSV to standard input")
    places = _read_csv(sys.stdin) if from_input else [_parsed(word) for word in rest]
    offsets = Offsets.of(config, name)
    if group is not None and not reverse:
        places += offsets.committed(group).items()
    found = offsets.to_source(places) if reverse else offsets.to_destination(places)
    found += offsets.back_to_source(group) if group is not None and reverse else []
    if output.structured:
        output.write([item.as_data() for item in found])
    elif from_input:
        _write_csv(found)
    else:
        _print(found)
    if any(item.fit != "exact" for item in found):
        raise typer.Exit(1)


def _split(config: Path, link: str | None, words: list[str]) -> tuple[str, list[str]]:
    """Return the link and the offsets named after it."""
    named = link is None and bool(words) and (words[0] in link_names(config) or ":" not in words[0])
    name, _ = one_link(config, link, *words[:named])
    return name, words[named:]


def _parsed(word: str) -> Place:
    place, _, offset = word.rpartition(":")
    topic, _, partition = typed(place).rpartition("-")
    return _place(word, topic, partition, offset)


def _read_csv(lines: Iterable[str]) -> list[Place]:
    """Parse CSV with or without a header line."""
    rows = [row for row in csv.reader(lines) if row]
    if rows and [cell.strip().lower() for cell in rows[0][:3]] == ["topic", "partition", "offset"]:
        rows = rows[1:]
    return [
        _place(",".join(row), *(cell.strip() for cell in row[:3])) if len(row) >= 3 else _refuse(",".join(row))
        for row in rows
    ]


def _place(text: str, topic: str, partition: str, offset: str) -> Place:
    if not (topic and partition.isascii() and partition.isdigit() and offset.isascii() and offset.isdigit()):
        _refuse(text)
    return TopicPartition(topic, int(partition)), int(offset)


def _refuse(text: str) -> Place:
    raise ConfigError(repr(text), ["is no offset: write TOPIC-PARTITION:OFFSET, or topic,partition,offset as CSV"])


def _write_csv(found: Iterable[Translation]) -> None:
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(_HEAD)
    for item in found:
        writer.writerow(["" if (value := getattr(item, name)) is None else value for name in _HEAD])
    write(rows.getvalue())


def _print(found: Iterable[Translation]) -> None:
    rows = (
        [
            f"{item.topic}-{item.partition}",
            f"{item.offset:,}",
            f"{item.to_topic}-{item.partition}",
            "-" if item.to_offset is None else f"{item.to_offset:,}",
            item.fit,
            item.detail,
        ]
        for item in found
    )
    plain_table(["partition", ">offset", "to", ">offset", "fit", "detail"], rows)
