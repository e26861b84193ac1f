"""`strait tail copy`: records of a lost source that the destination of another link has."""

from dataclasses import asdict
from typing import Annotated

import typer

from strait.cli.options import (
    ChosenLink,
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
from strait.config.links import load_link
from strait.config.route_names import is_meant
from strait.control.held_elsewhere import HeldRecords
from strait.control.tail_copy import copy as copy_held
from strait.control.tail_drop import Decision
from strait.planning.held_elsewhere import Held
from strait.state.link_handle import ConfiguredLink
from strait.text import plural

_FROM_HELP = (
    "Another link from the same source: the records that its destination has and this link's lacks. The source, which "
    "may be lost, is not queried."
)
FromOption = Annotated[str | None, typer.Option("--from", metavar="LINK", help=_FROM_HELP, show_default=False)]


@link_command
def copy(
    link: ChosenLink,
    other: Annotated[str, typer.Option("--from", metavar="LINK", help=_FROM_HELP, show_default=False)],
    reason: LossReasonOption,
    topic: TopicOption = None,
    partition: PartitionOption = None,
    by: DecidedByOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be copied; change nothing.")] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Copy records of a lost source from the cluster that got them.

    For clusters that replicate the same source: the stopped link's destination gets the records that only another
    link's destination has, each once, and the link passes over them. `strait losses` shows the offsets.
    """
    held, chosen = held_elsewhere(link, other, topic, partition)
    if dry_run:
        show_held(held, chosen, output)
        return
    count = sum(one.records for one in chosen)
    if count and not yes:
        to = held.mine.admin.cluster
        confirm(f"Copy {plural(count, 'record')} from {held.theirs.admin.cluster} to {to}?", err=True)
    copied = copy_held(held, chosen, Decision(by or myself(), reason))
    if output.structured:
        rows = [place._asdict() | {"records": number} for place, number in sorted(copied.items())]
        output.write({"copied": copied.total(), "partitions": rows})
    else:
        echo(f"copied {plural(copied.total(), 'record')} of {plural(len(copied), 'partition')}")


def held_elsewhere(
    link: ChosenLink, other: str, topic: str | None, partition: int | None
) -> tuple[HeldRecords, list[Held]]:
    """Return the reader, and the chosen partitions of which records are elsewhere."""
    file = load_link(link.config, link.name, beside=True)
    if other not in file.links:
        load_link(link.config, other)  # raises the error of an invalid one
    reader = HeldRecords(ConfiguredLink.of(file, link.name), other)
    chosen = [
        one
        for one in reader.held
        if (topic is None or is_meant(topic, one.part.topic)) and partition in (None, one.part.partition)
    ]
    return reader, chosen


def show_held(reader: HeldRecords, found: list[Held], output: Output) -> None:
    """Print how many records of each partition are elsewhere."""
    here, there = reader.mine.admin.cluster, reader.theirs.admin.cluster
    if output.structured:
        rows = [asdict(one.part) | {"records": one.records} for one in found]
        output.write({"link": reader.link.name, "from": reader.other, "partitions": rows})
        return
    if not found:
        echo(f"link {reader.link.name}: {here} has every record that link {reader.other} brought to {there}")
        return
    plain_table(
        ["partition", ">from", ">to", ">records", "detail"],
        (
            [
                str(one.part.place),
                "?" if one.part.from_offset is None else f"{one.part.from_offset:,}",
                f"{one.part.to_offset:,}",
                f"{one.records:,}",
                one.part.detail,
            ]
            for one in found
        ),
    )
    count = sum(one.records for one in found)
    echo(
        f"{there} has {plural(count, 'record')} that {here} lacks: strait tail copy {reader.link.name} --from {reader.other} --reason …"
    )
