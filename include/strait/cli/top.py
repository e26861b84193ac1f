"""`strait top`: the current state of links, and their partitions with the most lag or the highest rate."""

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from strait.cli.options import DEFAULT_FILE, ConfigOption, LinksArgument, Output, OutputOption, known_links
from strait.cli.printing import echo
from strait.cli.screen import keep_showing
from strait.cli.tables import plain_table, shown
from strait.config.links import load_link
from strait.exporter.observation import Observation
from strait.exporter.watch import LinkFollower
from strait.planning.status.figures import UNKNOWN, at_least, count, lasting, megabytes, per_second
from strait.planning.status.needs import late_topics
from strait.planning.status.ranking import By, Ranked, ranked
from strait.planning.status.status import known_total
from strait.planning.status.summary import LinkSummary
from strait.planning.status.words import Badge, of_partition
from strait.text import plural

_POLL_SECONDS = 0.05
_END_SECONDS = 2.0
_KEPT = ("state", "lag", "lag time", "loss in", "records/s")  # columns that a narrow terminal shows first


def top(
    links: LinksArgument = None,
    config: ConfigOption = DEFAULT_FILE,
    by: Annotated[
        By,
        typer.Option("--by", help="Order by `lag` (records), `rate` (records/s) or `seconds` (lag in seconds)."),
    ] = By.LAG,
    most: Annotated[int, typer.Option("--number", "-n", help="Partitions at most.", min=1)] = 20,
    interval: Annotated[float, typer.Option("--interval", help="Seconds between two looks.", min=1, max=3600)] = 2.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print once and exit, as into a pipe. Exits with 1 if a link cannot be read.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show links and the partitions with the largest lag, refreshed until Ctrl-C.

    Into a pipe, and as JSON or YAML, prints once.
    """
    names = known_links(config, links or ())
    watches = [LinkFollower(partial(load_link, config, name), name, interval) for name in names]
    for watch in watches:
        watch.start()
    failed = False
    if once or output.structured or not sys.stdout.isatty():
        failed = _once(watches, by, most, output)
    else:
        keep_showing(lambda: _print(_seen(watches), _unseen(watches), by, most), "strait top", interval)
    sys.stdout.flush()
    for watch in watches:
        watch.stop()
    if not all(watch.ended(_END_SECONDS) for watch in watches):
        os._exit(int(failed))  # a thread that waits for a cluster must not run into the interpreter's shutdown
    if failed:
        raise typer.Exit(1)


def _once(watches: Sequence[LinkFollower], by: By, most: int, output: Output) -> bool:
    """Wait until every link was queried, and print once. Return whether one of them could not be read."""
    while unseen := _unseen(watches):
        time.sleep(_POLL_SECONDS)
    found = _seen(watches)
    if output.structured:
        statuses = [status for one in found for status in one.statuses]
        summaries = [one.summary.as_data() | _figures(one) for one in found]
        output.write({"links": summaries, "partitions": [one.as_data() for one in ranked(statuses, by, most)]})
    else:
        _print(found, unseen, by, most)
    return any(one.error for one in found)


def _seen(watches: Sequence[LinkFollower]) -> list[Observation]:
    return [found for watch in watches if (found := watch.newest) is not None]


def _unseen(watches: Sequence[LinkFollower]) -> int:
    return sum(watch.newest is None for watch in watches)


def _print(found: Sequence[Observation], unseen: int, by: By, most: int) -> None:
    summaries = [one.summary for one in found]
    losing = any(summary.seconds_to_loss is not None for summary in summaries)
    head = ["link", "state", ">partitions", ">caught up", ">lag", ">lag time", *[">loss in"] * losing]
    head += [">records/s", ">MB/s", ">p50 ms", ">p99 ms", "issue"]
    cells = [_link_cells(one, summary, losing=losing) for one, summary in zip(found, summaries, strict=True)]
    plain_table(head, cells, levels=[summary.badge.level for summary in summaries], keep=_KEPT)
    if unseen:
        echo(f"{plural(unseen, 'link is', 'links are')} still being read")
    rows = ranked((status for one in found for status in one.statuses), by, most)
    if rows:
        echo()
        head = ["link", "partition", ">slot", "state", ">lag", ">lag time", *[">loss in"] * losing, ">records/s", "why"]
        late = {one.link: late_topics(one.needs) for one in found}
        badges = [of_partition(one.row, late[one.link]) for one in rows]
        cells = [_partition_cells(one, badge, losing=losing) for one, badge in zip(rows, badges, strict=True)]
        plain_table(head, cells, levels=[badge.level for badge in badges], key=2, keep=("partition", *_KEPT))


def _figures(one: Observation) -> dict[str, float | None]:
    """Return the figures that a summary lacks. The latencies are those of the slowest slot."""
    p50 = [status.latency_ms_p50 for status in one.statuses if status.latency_ms_p50 is not None]
    p99 = [status.latency_ms_p99 for status in one.statuses if status.latency_ms_p99 is not None]
    return {
        "bytes_per_second": known_total(status.bytes_per_second for status in one.statuses),
        "latency_ms_p50": max(p50, default=None),
        "latency_ms_p99": max(p99, default=None),
    }


def _link_cells(one: Observation, summary: LinkSummary, *, losing: bool) -> list[str]:
    if summary.error and not one.plans:
        return [summary.link, shown(summary.badge), *[UNKNOWN] * (8 + losing), summary.trouble]
    issue = summary.trouble
    if summary.error:
        issue += f"; all figures are {lasting(time.monotonic() - one.at)} old"
    figures = _figures(one)
    sent = figures["bytes_per_second"]
    return [
        summary.link,
        shown(summary.badge),
        f"{summary.partitions:,}",
        f"{summary.caught_up:,}",
        at_least(summary.lag_records, summary.lag_unknown),
        lasting(summary.lag_seconds),
        *[lasting(summary.seconds_to_loss)] * losing,
        per_second(summary.records_per_second),
        megabytes(sent),
        _number(figures["latency_ms_p50"]),
        _number(figures["latency_ms_p99"]),
        issue,
    ]


def _partition_cells(one: Ranked, badge: Badge, *, losing: bool) -> list[str]:
    row = one.row
    return [
        one.link,
        row.topic if row.partition is None else f"{row.topic}-{row.partition}",
        UNKNOWN if row.slot is None else str(row.slot),
        shown(badge),
        count(row.lag_records),
        lasting(row.lag_seconds),
        *[lasting(row.seconds_to_loss)] * losing,
        per_second(row.records_per_second),
        f"{row.reason}: {row.detail}" if row.reason else row.detail,
    ]


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.1f}"
