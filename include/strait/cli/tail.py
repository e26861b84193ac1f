"""`strait tail`: list, export or drop records that a link's source holds and its destination never received."""

import contextlib
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from strait.cli.examples import examples
from strait.cli.options import (
    ChosenLink,
    Command,
    CommandGroup,
    DecidedByOption,
    LossReasonOption,
    Output,
    OutputOption,
    PartitionOption,
    TopicOption,
    YesOption,
    link_command,
    myself,
)
from strait.cli.printing import confirm, echo
from strait.cli.tables import plain_table
from strait.cli.tail_copy import FromOption, copy, held_elsewhere, show_held
from strait.config.route_names import is_meant
from strait.config.validation import did_you_mean
from strait.control import tail_export
from strait.control.cut_transactions import cut_transactions
from strait.control.tail import TailReader
from strait.control.tail_drop import Decision, require_at_rest
from strait.control.tail_drop import drop as drop_tail
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.planning.tail import Extent, TailPart, as_data, described, extents
from strait.state.schema import Loss
from strait.state.tail_records import TailRecord, summary
from strait.text import plural, utc

app = typer.Typer(cls=CommandGroup, help="List, export or drop records that were never copied.")
app.command("copy", cls=Command, epilog=examples("tail copy"))(copy)

_KEY_CHARACTERS = 60


@app.command("list", cls=Command, epilog=examples("tail list"))
@link_command
def list_(
    link: ChosenLink,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    records: Annotated[
        bool, typer.Option("--records", help="Show each record: offset, timestamp, size and key.")
    ] = False,
    other: FromOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List records that the source holds and the destination never got.

    Counts committed records only, and names transactions that are replicated in part. Exits with 1 if the tail of a
    partition is unknown.
    """
    if other is not None:
        held, chosen = held_elsewhere(link, other, topic, partition)
        if records:
            _show_records(held.records(chosen), output)
        else:
            show_held(held, chosen, output)
        raise typer.Exit(0 if all(one.part.exact for one in chosen) else 1)
    reader, parts = _open(link, topic, partition)
    if records:
        _show_records(reader.records(parts), output)
    else:
        _show_parts(reader, parts, output)
    if any(part.from_offset is None for part in parts):
        raise typer.Exit(1)


@app.command(cls=Command, epilog=examples("tail export"))
@link_command
def export(
    link: ChosenLink,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write to this new file, as lines of JSON.", show_default=False)
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", help="Write to this topic of the destination, each record once.", show_default=False),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Write the records to a file, or to a topic of the destination.

    In a topic they keep key, value, timestamp, headers and partition, and get headers with their source coordinates.
    """
    if (out is None) == (to is None):
        raise typer.BadParameter("name either a file with --out, or a topic with --to")
    reader, parts = _open(link, topic, partition)
    _require_known(reader, parts)
    if out is not None:
        for name in sorted({part.topic for part in parts if part.transformed and part.has_offsets}):
            echo(f"{name}: the link transforms its records; the file has them as they are on the source", err=True)
        counted, target = tail_export.to_file(out, reader.records(parts)), f"file {out}"
    else:
        topic_export = tail_export.TopicExport(reader.destination, reader.link.name, to or "")
        topic_export.require_fit(parts, {part.destination for part in reader.parts})
        counted, target = topic_export.write(reader.records(parts)), f"topic {to}"
    if output.structured:
        output.write({"exported": counted.total(), "to": target.partition(" ")[2]})
    else:
        echo(f"exported {plural(counted.total(), 'record')} of {plural(len(counted), 'partition')} to {target}")


@app.command(cls=Command, epilog=examples("tail drop"))
@link_command
def drop(
    link: ChosenLink,
    reason: LossReasonOption,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    by: DecidedByOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be dropped; change nothing.")] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Never copy these records: the stopped link resumes after them.

    They stay on the source. `strait losses` shows the offsets, the operator and the reason.
    """
    reader, parts = _open(link, topic, partition)
    if dry_run:
        _show_parts(reader, parts, output)
        return
    require_at_rest(reader.link, parts)
    found = extents(parts, reader.records(parts))
    count = sum(one.records for one in found.values())
    if count and not yes:
        confirm(f"Drop {plural(count, 'record')} of {reader.link.name}, so that they are never copied?", err=True)
    dropped = drop_tail(reader, found, Decision(by or myself(), reason))
    if output.structured:
        output.write({"dropped": count, "partitions": [asdict(part) for part in dropped]})
    else:
        echo(f"dropped {plural(count, 'record')} of {plural(len(dropped), 'partition')}")


def _open(link: ChosenLink, topic: str | None, partition: int | None) -> tuple[TailReader, list[TailPart]]:
    name, reader = link.name, TailReader(link.load())
    known = {part.topic for part in reader.parts}
    if topic is not None and not any(is_meant(topic, name) for name in known):
        raise ConfigError(f"link {name}", [f"its plan has no topic {topic!r}{did_you_mean(topic, known)}"])
    if not reader.resumption.stopped:
        echo(f"link {name} is not stopped: it copies these records while it runs", err=True)
    chosen = [
        part
        for part in reader.parts
        if (topic is None or is_meant(topic, part.topic)) and partition in (None, part.partition)
    ]
    if partition is not None and not chosen:
        raise ConfigError(
            f"link {name}", [f"its plan has no partition {partition}" + (f" of {topic}" if topic else "")]
        )
    return reader, chosen


def _require_known(reader: TailReader, parts: list[TailPart]) -> None:
    problems = [f"{part.place}: {part.detail}" for part in parts if part.from_offset is None]
    if problems:
        hint = "choose other partitions with --topic and --partition"
        raise ConfigError(f"link {reader.link.name}: the tail is unknown", problems, hint=hint)


def _show_parts(reader: TailReader, parts: list[TailPart], output: Output) -> None:
    found = extents(parts, reader.records(parts))
    cut, unknown = cut_transactions(reader)
    places = {part.place for part in parts}
    dropped = [loss for loss in reader.drops if TopicPartition(loss.topic, loss.partition) in places]
    shown = [part for part in parts if part.detail or found[part.place].records]
    if output.structured:
        rows: list[dict[str, Any]] = [asdict(part) | found[part.place]._asdict() for part in parts]
        transactions = {"cut": [as_data(one) for one in cut], "unknown": list(unknown)}
        stopped = reader.resumption.stopped
        gone = [loss.model_dump() for loss in dropped]
        seen = {
            "link": reader.link.name,
            "stopped": stopped,
            "partitions": rows,
            "transactions": transactions,
            "dropped": gone,
        }
        output.write(seen)
        return
    if not shown:
        but = ", but for what was dropped" if dropped else ""
        echo(f"link {reader.link.name}: the destination has every record of {plural(len(parts), 'partition')}{but}")
        _show_dropped(dropped)
        return

    def times(extent: Extent) -> list[str]:
        return ["-" if time_ms is None else utc(time_ms) for time_ms in (extent.first_ms, extent.last_ms)]

    plain_table(
        ["partition", ">from", ">to", ">records", ">bytes", "first (UTC)", "last (UTC)", "detail"],
        (
            [
                str(part.place),
                "?" if part.from_offset is None else f"{part.from_offset:,}",
                f"{part.to_offset:,}",
                f"{found[part.place].records:,}",
                f"{found[part.place].bytes:,}",
                *times(found[part.place]),
                part.detail,
            ]
            for part in shown
        ),
    )
    echo(f"{plural(sum(one.records for one in found.values()), 'record is', 'records are')} on the source alone")
    _show_dropped(dropped)
    for one in cut:
        echo(f"replicated in part: {described(one)}, committed {utc(one.committed_at_ms)} UTC")
    for why in unknown:
        echo(f"transactions that may be replicated in part are unknown: {why}")


def _show_dropped(dropped: Iterable[Loss]) -> None:
    for loss in dropped:
        place = f"{loss.topic}-{loss.partition}"
        echo(
            f"dropped before: {place} offsets {loss.from_offset:,} to {loss.to_offset - 1:,} at {utc(loss.at_ms)} UTC by "
            f"{loss.detail}"
        )


def _show_records(records: Iterable[TailRecord], output: Output) -> None:
    """Print a document or a line for each record as it is read, since there may be many."""
    for record in records:
        if output.structured:
            output.write({**summary(record), "bytes": record.bytes})
        else:
            place = f"{record.topic}-{record.partition} {record.offset}"
            time = "-" if record.timestamp_ms < 0 else utc(record.timestamp_ms)
            echo(f"{place}  {time}  {record.bytes} bytes  key {_printed(record.key)}")


def _printed(key: bytes | None) -> str:
    """Return a key as short text without characters that control a terminal."""
    if key is None:
        return "null"
    text = repr(key)[1:]
    with contextlib.suppress(UnicodeDecodeError):
        text = repr(key.decode())
    return text if len(text) <= _KEY_CHARACTERS else text[:_KEY_CHARACTERS] + "…"
