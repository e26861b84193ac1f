"""`strait quarantine`: look at the records that the destination refused, write them elsewhere, or let them go."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from strait.cli.options import ConfigOption, JsonOption, LinkOption, print_json

if TYPE_CHECKING:
    from pathlib import Path

    from strait.config.links import LinksFile
    from strait.control.quarantine import Quarantine
    from strait.state.quarantine_log import Contents, Entry

app = typer.Typer(
    help="Look at the records that the destination refused, write them elsewhere, or let them go.", no_args_is_help=True
)

TopicOption = Annotated[str | None, typer.Option("--topic", help="Only of this source topic.", show_default=False)]
PartitionOption = Annotated[
    int | None, typer.Option("--partition", help="Only of this partition.", min=0, show_default=False)
]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", help="Only those refused for this reason code.", show_default=False)
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command("list")
def list_(
    config: ConfigOption,
    link: LinkOption,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    reason: ReasonOption = None,
    settled: Annotated[bool, typer.Option("--settled", help="Also those that were replayed or dropped.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the records that are kept aside: where they come from and why the destination refused them."""
    from strait.state.quarantine_log import Chosen

    _, quarantine = _open(config, link)
    contents = quarantine.contents()
    _tell_unknown(quarantine, contents)
    chosen = Chosen(topic, partition, reason)
    found = [entry for entry in contents.entries() if chosen.includes(entry) and (settled or not entry.settled)]
    _show(found, as_json, f"link {link}: nothing is kept aside")


@app.command()
def replay(
    config: ConfigOption,
    link: LinkOption,
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
    as_json: JsonOption = False,
) -> None:
    """Write records that are kept aside as they were: key, value, timestamp, headers and partition. Each once."""
    from strait.kafka.admin import Admin
    from strait.state.quarantine_log import Chosen
    from strait.state.quarantine_replay import targets
    from strait.state.reader import StateReader

    file, quarantine = _open(config, link)
    destination = file.links[link].destination
    properties = file.clusters[destination]
    with StateReader(properties, destination, link, follow=("plan",)) as state:
        state.catch_up()
        plan = state.plans.get("default")

    def into(entries: "list[Entry]") -> dict[str, str]:
        return targets(entries, to, plan, Admin(properties, destination).observe(lambda _: False).topics)

    chosen = Chosen(topic, partition, reason)
    if dry_run:
        found = _unsettled(quarantine, chosen)
        _show(found, as_json, f"link {link}: nothing is to be replayed", into=into(found))
        return
    with quarantine.settling() as settling:
        found = _unsettled(quarantine, chosen)
        places = into(found)
        if found:
            _ask(f"Write {len(found)} records into {', '.join(sorted(set(places.values())))}?", yes)
        _tell("replayed", settling.replay(found, places), as_json)


@app.command()
def drop(
    config: ConfigOption,
    link: LinkOption,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    reason: ReasonOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let records go that are kept aside. They stay in the quarantine topic, marked, and are not listed any more."""
    from strait.state.quarantine_log import Chosen

    _, quarantine = _open(config, link)
    chosen = Chosen(topic, partition, reason)
    if dry_run:
        _show(_unsettled(quarantine, chosen), as_json, f"link {link}: nothing is to be dropped")
        return
    with quarantine.settling() as settling:
        found = _unsettled(quarantine, chosen)
        if found:
            _ask(f"Let {len(found)} records go?", yes)
        _tell("dropped", settling.drop(found), as_json)


def _open(config: "Path", link: str) -> "tuple[LinksFile, Quarantine]":
    from strait.config.links import load_link
    from strait.control.quarantine import Quarantine

    file = load_link(config, link)
    destination = file.links[link].destination
    return file, Quarantine(file.clusters[destination], destination, link)


def _unsettled(quarantine: "Quarantine", chosen: Any) -> "list[Entry]":
    return [entry for entry in quarantine.contents().entries() if chosen.includes(entry) and not entry.settled]


def _tell_unknown(quarantine: "Quarantine", contents: "Contents") -> None:
    """Somebody else's records are said, and hide none of ours."""
    for offset, what in contents.unknown.items():
        typer.echo(f"topic {quarantine.topic} offset {offset} is not of Strait's making: {what}", err=True)


def _ask(question: str, yes: bool) -> None:
    if not yes:
        typer.confirm(question, abort=True, err=True)


def _tell(what: str, count: int, as_json: bool) -> None:
    if as_json:
        print_json({what: count})
    else:
        typer.echo(f"{what} {count} records")


def _show(found: "list[Entry]", as_json: bool, nothing: str, into: dict[str, str] | None = None) -> None:
    if as_json:
        print_json([entry._asdict() | ({"into": into[entry.topic]} if into else {}) for entry in found])
    elif not found:
        typer.echo(nothing)
    else:
        from strait.cli.tables import plain_table, utc

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
