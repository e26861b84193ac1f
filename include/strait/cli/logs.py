"""`strait logs`: the logs of a link's Spark applications on this machine."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from strait.cli.applications import OTHER_HOME, launchers
from strait.cli.options import ChosenLink, Output, OutputOption, link_command
from strait.cli.printing import echo
from strait.config import naming
from strait.config.home import home
from strait.config.links import Link
from strait.errors import ConfigError, StraitError
from strait.launch.base import Application, Launcher

_POLL_SECONDS = 0.5


class NoLog(StraitError):
    """No application of the link has a log on this machine."""


@link_command
def logs(
    link: ChosenLink,
    group: Annotated[str | None, typer.Option("--group", help="Only of this task group.", show_default=False)] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", help="Lines from the end of each log.", min=0)] = 20,
    standby: Annotated[bool, typer.Option("--standby", help="Of the applications that stand by instead.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Print what is appended, until Ctrl-C.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the logs of a link's Spark applications.

    Of the newest application of each task group that the DAGs or `strait run` started on this machine. The log's path is
    printed on stderr.
    """
    name, asked = link.name, link.load().settings
    if follow and output.structured:
        raise ConfigError("command line", [f"--follow has no end, so it cannot be one document of {output}"])
    if group is not None and group not in asked.groups:
        raise ConfigError(f"link {name}", [f"has no task group {group!r}; groups: {', '.join(sorted(asked.groups))}"])
    found = _newest(name, asked, [group] if group is not None else sorted(asked.groups), standby=standby)
    if not found:
        raise NoLog(f"link {name}: no application has a log in {home()}", hint=OTHER_HOME)
    if output.structured:
        output.write({"link": name, "logs": [_as_data(of, *one, lines) for of, one in found.items()]})
        return
    for task_group, (launcher, application) in found.items():
        echo(f"group {task_group}: {application.log}", err=True)
        for line in _last(launcher.log_tail(application), lines):
            echo(line)
    ends = {path: path.stat().st_size for _, one in found.values() if (path := Path(one.log)).is_file()}
    if follow and not ends:
        raise NoLog(f"link {name}: no log to follow on this machine", hint="follow it on its cluster's page, above")
    while follow:
        time.sleep(_POLL_SECONDS)
        ends = {path: _print_from(path, end) for path, end in ends.items()}


def _newest(name: str, link: Link, groups: list[str], *, standby: bool) -> Mapping[str, tuple[Launcher, Application]]:
    """Return task group -> its newest application that has a log, with its launcher."""
    found: dict[str, tuple[Launcher, Application]] = {}
    for launcher in launchers(name, link.spark, link.pool):
        for group in groups:
            one = launcher.state(naming.application_of(name, link.pool, group, standby=standby))
            if one is None or not launcher.log_tail(one, 1):
                continue
            if group not in found or found[group][1].submitted_at_ms < one.submitted_at_ms:
                found[group] = launcher, one
    return found


def _as_data(group: str, launcher: Launcher, application: Application, lines: int) -> dict[str, Any]:
    last = list(_last(launcher.log_tail(application), lines))
    return {"group": group, "application": application.name, "log": str(application.log), "lines": last}


def _last(text: str, lines: int) -> Iterator[str]:
    yield from text.splitlines()[-lines:] if lines else ()


def _print_from(path: Path, start: int) -> int:
    with path.open("rb") as log:
        log.seek(start)
        data = log.read()
    echo(data.decode(errors="replace"), nl=False)
    return start + len(data)
