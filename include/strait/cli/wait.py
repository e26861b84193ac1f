"""`strait wait`: return once a link is in the wanted state, for scripts."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from strait.cli.completing import topics_that_start_with
from strait.cli.options import ChosenLink, Output, OutputOption, link_command, seconds
from strait.cli.printing import echo
from strait.control.link_status import LinkStatus, link_groups
from strait.control.reaching import Reaching
from strait.errors import ClusterUnavailable, ConfigError, StateError, StraitError
from strait.planning.status.figures import records_behind
from strait.planning.status.up_to import UpTo
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.text import plural

_POLL_SECONDS = 1.0
_PROGRESS_SECONDS = 5.0


class Wanted(StrEnum):
    """State to wait for."""

    CAUGHT_UP = "caught-up"
    RUNNING = "running"
    STOPPED = "stopped"


class WaitTimeout(StraitError):
    """The link did not reach the state in time."""


@link_command
def wait(
    link: ChosenLink,
    wanted: Annotated[
        Wanted,
        typer.Option(
            "--for",
            help="caught-up: every partition has reached the end of its source, and no open transaction holds back "
            "records; running: every slot reports; "
            "stopped: the plan is stopped and no slot reports.",
        ),
    ] = Wanted.CAUGHT_UP,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="MOMENT",
            help="caught-up only up to `now`, fixed when the command starts; a time, such as 2026-11-26T14:00Z; or source "
            'offsets, such as \'{"orders": {"0": 1200}}\'.',
            show_default=False,
        ),
    ] = None,
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            help="With `--to`: only this source topic. Repeatable.",
            show_default=False,
            autocompletion=topics_that_start_with,
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", help="Give up after this.", parser=seconds, metavar="DURATION", show_default="10m"),
    ] = 600.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Wait until a link has caught up, runs or is stopped.

    Reports progress on stderr every 5 s. Exits with 1 if the timeout ends first.
    """
    began = time.monotonic()
    with _check(link.load(), wanted, to, topics or ()) as check:
        left = _wait(link.name, check, timeout)
    if output.structured:
        seconds_taken = round(time.monotonic() - began, 3)
        result = {"link": link.name, "for": str(wanted), "reached": not left, "missing": left}
        output.write(result | {"seconds": seconds_taken})
    if left:
        raise WaitTimeout(f"link {link.name}: not {wanted} within {timeout:g} s: {left}")
    if not output.structured:
        echo(f"link {link.name}: {wanted}")


@contextmanager
def _check(link: ConfiguredLink, wanted: Wanted, to: str | None, topics: Sequence[str]) -> Iterator[Callable[[], str]]:
    """Yield a function that returns why the link is not in the wanted state; "" if it is."""
    if to is None:
        if topics:
            raise ConfigError("command line", ["--topic needs --to"])
        yield lambda: _MISSING[wanted](link_groups(link))
    elif wanted is not Wanted.CAUGHT_UP:
        raise ConfigError("command line", [f"--to needs --for {Wanted.CAUGHT_UP}"])
    else:
        with closing(Reaching(link, topics, UpTo.parse(to))) as reaching:
            yield reaching.look


def _wait(name: str, check: Callable[[], str], timeout: float) -> str:
    """Return why the link is not in the wanted state after this time; "" once it is."""
    deadline = time.monotonic() + timeout
    show_at = time.monotonic() + _PROGRESS_SECONDS
    while True:
        try:
            left = check()
        except (ClusterUnavailable, StateError) as error:  # scripts also wait for a cluster that is starting
            left = str(error)
        now = time.monotonic()
        if not left or now >= deadline:
            return left
        if now >= show_at:
            show_at = now + _PROGRESS_SECONDS
            echo(f"link {name}: {left}", err=True)
        time.sleep(min(_POLL_SECONDS, deadline - now))


def not_caught_up(status: LinkStatus) -> str:
    """Return why the link has not caught up, as text; "" if it has."""
    rows = [
        row for row in status.rows if row.reason != Reason.AWAITING_APPROVAL
    ]  # not replicated before an operator acts
    if not rows:
        return "it has no plan yet, or its plan has no topic" if status.groups else "it has no plan yet"
    behind = [row for row in rows if row.state != "caught_up"]
    if not behind:
        return ""
    reasons = sorted({row.reason for row in behind if row.state == "waiting" and row.reason})
    waiting = f", waiting: {', '.join(reasons)}" if reasons else ""
    found = status.summary
    lag = records_behind(found.lag_records, found.lag_unknown)
    text = f"{len(behind)} of {plural(len(rows), 'partition has', 'partitions have')} not caught up, {lag}"
    if found.held_back_records:
        text += f", {found.held_back_records:,} held back by open transactions"
    return text + waiting


def _not_running(status: LinkStatus) -> str:
    if not status.groups:
        return "it has no plan yet"
    if status.stopped:
        return "it is stopped"
    running = [group for group in status.groups if not group.stopped]  # a task group without work stays stopped
    silent = [f"{group.group}/{slot.slot}" for group in running for slot in group.slots if slot.silent]
    return f"slots that do not report: {', '.join(silent)}" if silent else ""


def _not_stopped(status: LinkStatus) -> str:
    if not status.groups:
        return "it has no plan yet"
    if not status.stopped:
        return "its plan is not stopped"
    heard = [f"{group.group}/{slot.slot}" for group in status.groups for slot in group.slots if not slot.silent]
    return f"slots that still report: {', '.join(heard)}" if heard else ""


_MISSING: dict[Wanted, Callable[[LinkStatus], str]] = {
    Wanted.CAUGHT_UP: not_caught_up,
    Wanted.RUNNING: _not_running,
    Wanted.STOPPED: _not_stopped,
}
