"""`strait groups`: show the offsets at which consumer groups would continue on the destination, or commit them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from strait.cli.completing import link_or_groups_that_start_with
from strait.cli.options import DEFAULT_FILE, ConfigOption, LinkOption, Output, OutputOption, one_link
from strait.cli.printing import echo
from strait.cli.tables import plain_table
from strait.config.consumer_groups import GroupFilter
from strait.config.outline import link_names
from strait.consumer_groups.sync import GroupSync
from strait.planning.consumer_groups import MEANINGS, SHARE, SHARE_START, GroupStatus, plain
from strait.planning.status.words import word
from strait.state.link_handle import ConfiguredLink
from strait.text import plural


def groups(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LINK] [GROUP]...",
            help="Name of the link, which may be omitted if the file has one, and consumer groups. Default: all groups "
            "that have offsets in the link's topics.",
            show_default=False,
            autocompletion=link_or_groups_that_start_with,
        ),
    ] = None,
    config: ConfigOption = DEFAULT_FILE,
    link: LinkOption = None,
    sync: Annotated[
        bool,
        typer.Option(
            "--sync",
            help="Commit the translated offsets on the destination, of groups that have no members there and had none.",
        ),
    ] = False,
    include_moved: Annotated[
        bool,
        typer.Option(
            "--include-moved", help="With `--sync`: also of groups that have consumed on the destination, forward only."
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="With `--sync`: also replace offsets that an operator or another tool committed on the destination, "
            "earlier and later ones. From then on they are synchronized again.",
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 unless every group would continue exactly where it is.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the offsets at which consumer groups would resume on the destination; `--sync` commits them.

    For share groups, these are start offsets. Prints one line for each group; for one group, or with `-o wide`, one line
    for each partition.
    """
    if take_over and not sync:
        raise typer.BadParameter("it needs --sync", param_hint="--take-over")
    name, wanted = _split(config, link, words or [])
    handle = ConfiguredLink.load(config, name)
    settings = handle.settings.consumer_groups
    of_link = GroupSync(
        handle,
        selected=GroupFilter(settings.include, settings.exclude),
        include_moved=include_moved or settings.include_moved,
        take_over=take_over,
    )
    found = (of_link.sync if sync else of_link.status)(wanted, unselected=True)
    if output.structured:
        output.write([item.as_data() for item in found])
    elif not found:
        echo(f"link {name}: no consumer group has committed an offset for its topics")
    else:
        _print(found, by_partition=len(wanted) == 1 or output is Output.WIDE)
    counted = [item for item in found if item.selected or item.group in wanted]
    if (check and not all(item.synced for item in counted)) or (sync and any(item.refused for item in found)):
        raise typer.Exit(1)


def _split(config: Path, link: str | None, words: list[str]) -> tuple[str, list[str]]:
    """Return the link and the consumer groups named after it."""
    names = link_names(config)
    named = link is None and bool(words) and (words[0] in names or len(names) > 1)
    name, _ = one_link(config, link, *words[:named])
    return name, words[named:]


def _print(found: Sequence[GroupStatus], *, by_partition: bool) -> None:
    head = ["group", "type", "source", "destination", ">partitions", ">re-reads", "offsets"]
    plain_table(head, ([*_sides(item), f"{len(item.offsets)}", _count(item.rereads), _summary(item)] for item in found))
    if by_partition:
        echo()
        plain_table(
            ["group", "partition", ">offset", "to", ">offset", "fit", ">committed", "state"], _partitions(found)
        )
    for state in sorted({state for item in found for state, _ in item.states}):
        echo(f"{word(state)}: {MEANINGS[state]}")


def _partitions(found: Iterable[GroupStatus]) -> Iterable[list[str]]:
    for group in found:
        for item in group.offsets:
            yield [
                group.group,
                f"{item.topic}-{item.partition}",
                f"{item.offset:,}",
                f"{item.to_topic}-{item.partition}",
                _count(item.to_offset),
                plain(item.fit),
                _count(item.committed),
                f"{word(item.state)}: {item.detail}" if item.detail else word(item.state),
            ]


def _sides(item: GroupStatus) -> list[str]:
    return [item.group, item.source.kind, item.source.state or "-", item.destination.state or "-"]


def _summary(item: GroupStatus) -> str:
    states = ", ".join(f"{count} {word(state)}" for state, count in item.states)
    outside = f"; also in {plural(len(item.outside), 'topic')} that the link does not copy" if item.outside else ""
    return item.note or (f"{states}; {SHARE_START}" if item.source.kind == SHARE else states) + outside


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"
