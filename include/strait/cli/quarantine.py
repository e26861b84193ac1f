"""`strait quarantine`: list, replay or discard the records that the destination rejected."""

import sys
from typing import Annotated, Any

import typer

from strait.cli.completing import topics_that_start_with
from strait.cli.examples import examples
from strait.cli.options import (
    ChosenLink,
    Command,
    CommandGroup,
    Output,
    OutputOption,
    PartitionOption,
    TopicOption,
    YesOption,
    link_command,
)
from strait.cli.printing import confirm, echo
from strait.cli.tables import plain_table
from strait.control.quarantine import Quarantine
from strait.errors import ConfigError
from strait.state.quarantine_log import Chosen, Contents, Entry
from strait.text import plural, printable, utc

app = typer.Typer(cls=CommandGroup, help="List, replay or discard rejected records.")

ReasonOption = Annotated[
    str | None, typer.Option("--reason", help="Only those refused for this reason code.", show_default=False)
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]


@app.command("list", cls=Command, epilog=examples("quarantine list"))
@link_command
def list_(
    link: ChosenLink,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    reason: ReasonOption = None,
    settled: Annotated[bool, typer.Option("--settled", help="Include replayed and discarded records.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List quarantined records, with their source offsets and the reason for their rejection."""
    quarantine = _open(link)
    contents = quarantine.contents()
    _tell_unknown(quarantine, contents)
    chosen = Chosen(topic, partition, reason)
    found = [entry for entry in contents.entries() if chosen.includes(entry) and (settled or not entry.settled)]
    _show(found, output, f"link {link.name}: no quarantined records match")


@app.command(cls=Command, epilog=examples("quarantine show"))
@link_command
def show(
    link: ChosenLink,
    topic: Annotated[
        str,
        typer.Option("--topic", help="Its source topic.", show_default=False, autocompletion=topics_that_start_with),
    ],
    partition: Annotated[int, typer.Option("--partition", min=0, help="Its partition.", show_default=False)],
    offset: Annotated[int, typer.Option("--offset", min=0, help="Its source offset.", show_default=False)],
    value: Annotated[bool, typer.Option("--value", help="Show its value, too.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one quarantined record: its key, headers and size.

    Text is shown as it is, other bytes in hexadecimal.
    """
    quarantine = _open(link)
    chosen = Chosen(topic, partition)
    found = [entry for entry in quarantine.contents().entries() if chosen.includes(entry) and entry.offset == offset]
    record = quarantine.record(found[-1].at) if found else None
    if record is None:
        problem = f"no quarantined record of {topic}-{partition} at source offset {offset}"
        raise ConfigError(f"link {link.name}", [problem], hint="see `strait quarantine list --settled`")
    shown = record._replace(entry=found[-1]).readable(sys.maxsize, with_value=value)
    if output.structured:
        output.write(shown)
        return
    entry = found[-1]
    for name, text in (
        ("from", f"{entry}, {utc(entry.timestamp_ms)} UTC"),
        ("for", entry.destination),
        ("why", f"{entry.reason}: {entry.detail}"),
        ("since", f"{utc(entry.quarantined_at_ms)} UTC{f', {entry.settled}' if entry.settled else ''}"),
        ("key", _part(shown["key"])),
        *(("header", f"{name}: {_part(part)}") for name, part in shown["headers"]),
        ("value", _part(shown["value"]) if value else _size(shown["value_bytes"])),
    ):
        echo(f"{name:7} {printable(text)}")


@app.command(cls=Command, epilog=examples("quarantine replay"))
@link_command
def replay(
    link: ChosenLink,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    reason: ReasonOption = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Write into this topic of the destination. Default: where the records were to go, if the rules let "
            "others write there.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Write quarantined records unchanged, each once.

    Key, value, timestamp, headers and partition stay.
    """
    quarantine = _open(link)
    chosen = Chosen(topic, partition, reason)
    if dry_run:
        found = quarantine.unsettled(chosen)
        _show(found, output, f"link {link.name}: no quarantined records match", into=quarantine.targets(found, to))
        return
    with quarantine.settling() as settling:
        found = quarantine.unsettled(chosen)
        places = quarantine.targets(found, to)
        if found:
            _ask(f"Write {plural(len(found), 'record')} into {', '.join(sorted(set(places.values())))}?", yes)
        _tell("replayed", settling.replay(found, places), output)


@app.command(cls=Command, epilog=examples("quarantine drop"))
@link_command
def drop(
    link: ChosenLink,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Discard quarantined records. They stay in the topic, marked as discarded."""
    quarantine = _open(link)
    chosen = Chosen(topic, partition, reason)
    if dry_run:
        _show(quarantine.unsettled(chosen), output, f"link {link.name}: no quarantined records match")
        return
    with quarantine.settling() as settling:
        found = quarantine.unsettled(chosen)
        if found:
            _ask(f"Discard {plural(len(found), 'record')}?", yes)
        _tell("dropped", settling.drop(found), output)


def _open(link: ChosenLink) -> Quarantine:
    return Quarantine(link.load())


def _tell_unknown(quarantine: Quarantine, contents: Contents) -> None:
    """Print the records in the topic that Strait did not write. They do not hide quarantined records."""
    for offset, what in contents.unknown.items():
        echo(f"topic {quarantine.topic} offset {offset} is not of Strait's making: {what}", err=True)


def _ask(question: str, yes: bool) -> None:
    if not yes:
        confirm(question, err=True)


def _tell(what: str, count: int, output: Output) -> None:
    if output.structured:
        output.write({what: count})
    else:
        echo(f"{what} {plural(count, 'record')}")


def _show(found: list[Entry], output: Output, nothing: str, into: dict[str, str] | None = None) -> None:
    if output.structured:
        output.write([entry._asdict() | ({"into": into[entry.topic]} if into else {}) for entry in found])
    elif not found:
        echo(nothing)
    else:
        with_settled = any(entry.settled for entry in found)
        rows = (
            [
                utc(entry.quarantined_at_ms),
                f"{entry.topic}-{entry.partition}",
                f"{entry.offset:,}",
                f"{entry.bytes:,}",
                into[entry.topic] if into else entry.destination,
                *([entry.settled or "-"] * with_settled),
                f"{entry.reason}: {entry.detail}",
            ]
            for entry in found
        )
        settled = ["settled"] * with_settled
        plain_table(["since (UTC)", "from", ">offset", ">bytes", "into" if into else "for", *settled, "why"], rows)


def _part(part: dict[str, Any] | None) -> str:
    if part is None:
        return "null"
    return f"0x{part['text']}" if part["encoding"] == "hex" else str(part["text"])


def _size(size: int | None) -> str:
    return "null" if size is None else f"{size:,} bytes; --value shows them"
