"""`strait status`: state, lag and issues of links, topics and partitions."""

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from strait.cli.completing import links_that_start_with, topics_that_start_with
from strait.cli.options import (
    DEFAULT_FILE,
    ConfigOption,
    LinkOption,
    Output,
    OutputOption,
    one_link,
    seconds,
)
from strait.cli.printing import echo
from strait.cli.screen import keep_showing
from strait.cli.tables import plain_table, print_left_out, print_reasons, print_status, shown
from strait.config.outline import link_names
from strait.config.route_names import is_meant
from strait.control.link_status import LinkStatus, link_groups, link_status
from strait.errors import ClusterUnavailable, StateError, StraitError
from strait.planning.group_reports import summary
from strait.planning.plan.pauses import described
from strait.planning.status.figures import UNKNOWN, at_least, lasting, per_second
from strait.planning.status.needs import late_topics
from strait.planning.status.summary import LinkSummary
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.text import plural
from strait.waiting import unix_ms

_REFRESH_SECONDS = 2.0
_AT_ONCE = 8  # links that are queried in parallel: one whose cluster is unreachable takes 10 s


def status(
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="LINK",
            help="Name of a link. Default: one line for each link.",
            show_default=False,
            autocompletion=links_that_start_with,
        ),
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC",
            help="Only this topic of the source, copied or not.",
            show_default=False,
            autocompletion=topics_that_start_with,
        ),
    ] = None,
    config: ConfigOption = DEFAULT_FILE,
    link: LinkOption = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Exit with 1 if an operator is needed, a slot does not report, or something that nobody paused waits "
            "longer than `--for`.",
        ),
    ] = False,
    bound: Annotated[
        float,
        typer.Option(
            "--for",
            help="With `--check`: how long something may wait. Looks again until then if something does.",
            parser=seconds,
            metavar="DURATION",
            show_default="1m",
        ),
    ] = 60.0,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every 2 s, until Ctrl-C.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show state, lag and issues per link, topic and partition.

    Of all links a line each, of one link a line for each topic, problems first.
    Of one topic, or with `-o wide`, a line for each partition.
    """
    if watch:
        keep_showing(lambda: _watched(config, link, first, second, output), "strait status", _REFRESH_SECONDS)
        return
    _show(config, link, first, second, check=bound if check else None, output=output)


def _watched(config: Path, link: str | None, first: str | None, second: str | None, output: Output) -> None:
    """Print the current status, or the error if a cluster or the state cannot be read: it may recover."""
    try:
        _show(config, link, first, second, check=None, output=output)
    except typer.Exit:
        pass  # the table shows a link that cannot be queried
    except (ClusterUnavailable, StateError) as error:
        echo(f"error: {error}", err=not sys.stdout.isatty())


def _show(
    config: Path, link: str | None, first: str | None, second: str | None, *, check: float | None, output: Output
) -> None:
    if link is None and first is None:
        _all_links(config, output=output, check=check)
        return

    name, named = one_link(config, link, first, second, most=1)
    topic = named or None
    found = link_status(ConfiguredLink.load(config, name), topic)
    if output.structured:
        output.write(found.as_data())
    else:
        _print(found, by_partition=bool(topic), wide=output is Output.WIDE)
    if check is not None and (not found.healthy or found.needs or _stuck(config, [name], check, topic)):
        raise typer.Exit(1)


def _stuck(config: Path, links: Sequence[str], bound_seconds: float, topic: str | None = None) -> bool:
    """Check every 2 s, for ``bound_seconds``, for partitions that are neither replicated nor paused. Return whether any
    was so at every check, and print each of these on standard error."""

    def look() -> dict[tuple[str, str, int | None], str]:
        return {
            (name, *place): why
            for name in links
            for group in link_groups(ConfiguredLink.load(config, name)).groups
            for place, why in group.stuck.items()
            if topic is None or is_meant(topic, place[0])
        }

    until, stuck = time.monotonic() + bound_seconds, look()
    while stuck and (left := until - time.monotonic()) > 0:
        time.sleep(min(_REFRESH_SECONDS, left))
        now = look()
        stuck = {place: now[place] for place in stuck if place in now}
    for (name, place, number), why in sorted(stuck.items(), key=str):
        text = place if number is None else f"{place}-{number}"
        echo(f"link {name}: {text} has waited for {bound_seconds:g} s: {why}", err=True)
    return bool(stuck)


def _print(found: LinkStatus, *, by_partition: bool, wide: bool) -> None:
    if not found.groups and not found.left_out:
        echo(f"link {found.link}: {Reason.PLAN_MISSING}: {Reason.PLAN_MISSING.meaning}")
        echo(Reason.PLAN_MISSING.remedy)
    for group in found.groups:
        if group.partitions or not group.stopped:
            print_status(group, by_partition=by_partition, wide=wide, late=late_topics(found.needs))
    if found.consumer_groups is not None and found.groups and not found.stopped:
        echo(summary(found.consumer_groups, unix_ms()))
    if found.stopped_by:
        echo(f"stopped   {found.stopped_by}")
    for item in found.pauses:
        echo(f"paused    {described(item)}")
    for need in found.needs if not by_partition else ():
        echo(f"needs an operator: {need.text}")
    print_left_out(found.left_out)
    print_reasons([*found.rows, *found.left_out])
    if found.quarantine_unread:
        echo(
            f"quarantine: the newest records are counted; {plural(found.quarantine_unread, 'older offset')}, which may hold "
            f"unresolved records, not read; strait quarantine list {found.link} reads all"
        )
    if found.source_trouble:
        echo(f"other topics of the source are unknown: {found.source_trouble}")


def _all_links(config: Path, *, output: Output, check: float | None) -> None:
    """Print one line per link. A link that cannot be read has the error in its line, and the exit code is then 1."""
    names = link_names(config)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda name: _summary(config, name), names))
    if output.structured:
        output.write([item.as_data() for item in found])
    else:
        _print_links(found)
    if any(item.error or (check is not None and (not item.healthy or item.needs)) for item in found):
        raise typer.Exit(1)
    if check is not None and _stuck(config, names, check):
        raise typer.Exit(1)


def _summary(config: Path, name: str) -> LinkSummary:
    try:
        found = link_groups(ConfiguredLink.load(config, name), needs=True)
    except StraitError as error:
        return LinkSummary(name, error=" ".join(str(error).split()))
    return found.summary


def _print_links(found: Sequence[LinkSummary]) -> None:
    losing = any(item.seconds_to_loss is not None for item in found)
    rows = (
        [
            item.link,
            f"{item.source} -> {item.destination}" if item.source else UNKNOWN,
            shown(item.badge),
            *(
                [UNKNOWN] * (6 + losing)
                if item.error
                else [
                    f"{item.topics:,}",
                    f"{item.partitions:,}",
                    f"{item.caught_up:,}",
                    at_least(item.lag_records, item.lag_unknown),
                    lasting(item.lag_seconds),
                    *[lasting(item.seconds_to_loss)] * losing,
                    per_second(item.records_per_second),
                ]
            ),
            item.trouble,
        ]
        for item in found
    )
    head = ["link", "from -> to", "state", ">topics", ">partitions", ">caught up", ">lag", ">lag time"]
    plain_table(
        [*head, *[">loss in"] * losing, ">records/s", "issue"],
        rows,
        levels=[item.badge.level for item in found],
        keep=("state", "lag", "lag time", "loss in"),
    )
