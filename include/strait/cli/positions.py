"""`strait offsets export` and `import`: write a link's positions for other tools, or continue at theirs."""

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from strait.cli.completing import groups_that_start_with, topics_that_start_with
from strait.cli.options import SCHEMA_VERSION, ChosenLink, Output, OutputOption, link_command, myself
from strait.cli.printing import echo, write
from strait.cli.tables import plain_table
from strait.config.cluster import Cluster
from strait.config.validation import text_of
from strait.control import hand_over
from strait.control.hand_over import read_offsets_topic
from strait.control.move_in import Force, Move, MoveIn
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.state import positions
from strait.state.link_handle import ConfiguredLink
from strait.state.positions import MM2_CONNECTOR, Position, of_connector, read_positions
from strait.text import plural


class Format(StrEnum):
    """Format in which positions are written."""

    CSV = "csv"
    JSON = "json"
    MIRUS = "mirus"
    MIRUS_JSON = "mirus-json"
    CONNECT = "connect"


class End(StrEnum):
    """One of a link's clusters."""

    SOURCE = "source"
    DESTINATION = "destination"


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="`csv`, `json`, `mirus` (the columns of its offset tool), `mirus-json`, or `connect` (keys and values of "
        "an offsets topic, separated by a tab).",
        metavar="FORMAT",
        case_sensitive=False,
    ),
]
ConnectorOption = Annotated[
    str | None, typer.Option("--connector", help="Name of the connector in Kafka Connect.", show_default=False)
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Source alias in MirrorMaker 2. Default for an export: the alias of `naming`, or the source's name.",
        show_default=False,
    ),
]
OnOption = Annotated[End, typer.Option("--on", help="Cluster of the offsets topic.", metavar="source|destination")]


@link_command
def export(
    link: ChosenLink,
    form: FormatOption = Format.CSV,
    to_connect: Annotated[
        str | None,
        typer.Option(
            "--to-connect",
            metavar="TOPIC",
            help="Hand over to MirrorMaker 2 or Mirus: write the positions to this offsets topic of Kafka Connect. "
            "The link must be stopped or paused.",
            show_default=False,
        ),
    ] = None,
    on: OnOption = End.DESTINATION,
    connector: ConnectorOption = None,
    cluster: ClusterOption = None,
    mirus: Annotated[bool, typer.Option("--mirus", help="Write Mirus' form instead of MirrorMaker 2's.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With `--to-connect`: only check and print.")] = False,
) -> None:
    """Print the link's positions: for each partition the next source offset to copy.

    Exits with 1 if a position is not known exactly; `--to-connect` then writes nothing.
    """
    name, of = link.name, link.load()
    alias = None if mirus else cluster or of.settings.naming.alias or of.source.name
    owner = connector or (name if mirus or form in (Format.MIRUS, Format.MIRUS_JSON) else MM2_CONNECTOR)
    if to_connect is None:
        if form not in (Format.CSV, Format.JSON):
            hand_over.require_untransformed(of)
        found = hand_over.positions(of)
    else:
        place = _cluster(of, on).name
        found = hand_over.hand_over(
            of,
            to_connect,
            hand_over.Owner(owner, alias, connector is None and cluster is None),
            on=place,
            dry_run=dry_run,
        )
        written = "would be written" if dry_run else "written"
        echo(f"link {name}: {len(found)} positions {written} to topic {to_connect} of {place}", err=True)
    write(_text(name, found, form, owner, alias))
    if doubtful := sum(not item.certain for item in found):
        many = plural(doubtful, "position is", "positions are")
        echo(f"link {name}: {many} not known exactly (pause or stop the link first: it copies meanwhile)", err=True)
        raise typer.Exit(1)


@link_command
def import_(
    link: ChosenLink,
    path: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV or JSON, of Strait or of Mirus' offset tool; `-`: standard input.",
            show_default=False,
        ),
    ] = "",
    from_connect: Annotated[
        str | None,
        typer.Option(
            "--from-connect",
            metavar="TOPIC",
            help="Offsets topic of MirrorMaker 2 or Mirus in Kafka Connect.",
            show_default=False,
        ),
    ] = None,
    on: OnOption = End.DESTINATION,
    connector: ConnectorOption = None,
    cluster: ClusterOption = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            help="Consumer group on the source that the tool commits to.",
            show_default=False,
            autocompletion=groups_that_start_with,
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            help="Only this source topic, even if the link does not select it yet. Repeatable.",
            autocompletion=topics_that_start_with,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be imported.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Start at the stored position if the destination does not confirm it. Needs `--reason`."
        ),
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="Reason for `--force`, kept in the loss log.", show_default=False)
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Take over replication from another tool without duplicates.

    Stop the other tool first. The last records of each destination partition show the exact position, even if the tool
    was killed. Imports all partitions or none; exits with 1 if one is rejected.
    """
    if sum((bool(path), from_connect is not None, group is not None)) != 1:
        raise ConfigError("command line", ["name one of FILE, --from-connect and --group"])
    if force and not reason:
        raise ConfigError("command line", ["--force needs --reason"])
    of = link.load()
    move_in = MoveIn(of)
    if from_connect is not None:
        stored = _from_connect(of, from_connect, on, connector, cluster)
    else:
        stored = _from_file(path) if group is None else dict(move_in.committed(group))
    moves = move_in.propose(stored, topic or (), force=force, complete=not path)
    if not dry_run:
        moves = move_in.carry_out(moves, Force(myself(), reason) if force else None)
    _show(link.name, moves, output)
    if any(move.verdict in ("refused", "started") for move in moves):
        raise typer.Exit(1)


def _from_connect(
    link: ConfiguredLink, topic: str, on: End, connector: str | None, cluster: str | None
) -> dict[TopicPartition, int | None]:
    stored = read_offsets_topic(*_cluster(link, on), topic)
    return of_connector((item.entry for item in stored), topic, connector, cluster)


def _from_file(path: str) -> dict[TopicPartition, int | None]:
    if path == "-":
        return read_positions(sys.stdin.read(), "standard input")
    return read_positions(text_of(Path(path), path), path)


def _cluster(link: ConfiguredLink, end: End) -> Cluster:
    return link.source if end is End.SOURCE else link.destination


def _text(link: str, found: list[Position], form: Format, connector: str, alias: str | None) -> str:
    match form:
        case Format.CSV:
            return positions.as_csv(found)
        case Format.JSON:
            return json.dumps({"schema_version": SCHEMA_VERSION, **positions.as_json(link, found)}) + "\n"
        case Format.MIRUS:
            return positions.as_mirus_csv(connector, found)
        case Format.MIRUS_JSON:
            return positions.as_mirus_json(connector, found)
        case Format.CONNECT:
            records = (
                positions.connect_record(connector, alias, item.place, item.offset) for item in found if item.offset
            )
            return "".join(f"{key.decode()}\t{value.decode()}\n" for key, value in records)


def _show(link: str, moves: list[Move], output: Output) -> None:
    if output.structured:
        output.write({"link": link, "partitions": [asdict(move) for move in moves]})
        return

    rows = (
        [
            str(move.place),
            str(move.copy),
            "-" if move.stored is None else f"{move.stored:,}",
            "-" if move.start is None else f"{move.start:,}",
            move.verdict,
            move.detail,
        ]
        for move in moves
    )
    plain_table(["partition", "destination", ">stored", ">start", "verdict", "detail"], rows)
    counted = {verdict: sum(move.verdict == verdict for move in moves) for verdict in {move.verdict for move in moves}}
    echo(f"link {link}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counted.items())))
    if counted.get("refused"):
        echo("nothing is imported while a partition is refused; limit the import with `--topic`", err=True)
