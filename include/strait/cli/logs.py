"""`strait logs`: the logs of a link's Spark applications on this machine."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from strait.cli.applications import launchers
from strait.cli.options import DEFAULT_FILE, ConfigOption, LinkArgument, LinkOption, one_link
from strait.errors import ConfigError, StraitError

_POLL_SECONDS = 0.5


class NoLog(StraitError):
    """No application of the link has a log on this machine."""


def logs(
    first: LinkArgument = None,
    config: ConfigOption = DEFAULT_FILE,
    link: LinkOption = None,
    group: Annotated[str | None, typer.Option("--group", help="Only of this task group.", show_default=False)] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", help="Lines from the end of each log.", min=0)] = 20,
    standby: Annotated[bool, typer.Option("--standby", help="Of the applications that stand by instead.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Print what is appended, until Ctrl-C.")] = False,
) -> None:
    """Show the logs of a link's Spark applications.

    Of the newest application of each task group that the DAGs or `strait run` started on this machine. The log's path is
    printed on stderr.
    """
    from strait.config.links import load_link

    name, _ = one_link(config, link, first)
    groups = load_link(config, name).links[name].groups
    if group is not None and group not in groups:
        raise ConfigError(f"link {name}", [f"has no task group {group!r}; groups: {', '.join(sorted(groups))}"])
    found = _logs_of(name, [group] if group is not None else sorted(groups), standby=standby)
    if not found:
        raise NoLog(f"link {name}: no application has a log on this machine", hint="run it on the host of the DAGs")
    ends = {path: _show(task_group, path, lines) for task_group, path in found.items()}
    while follow:
        time.sleep(_POLL_SECONDS)
        ends = {path: _print_from(path, end) for path, end in ends.items()}


def _logs_of(link: str, groups: list[str], *, standby: bool) -> Mapping[str, Path]:
    """Task group -> log of its newest application here."""
    from strait.config import naming

    found: dict[str, tuple[int, Path]] = {}
    for launcher in launchers(link):
        for group in groups:
            application = launcher.state(naming.application_name(link, group, standby=standby))
            if application is not None and application.log_path.is_file():
                found[group] = max(found.get(group, (-1, Path())), (application.submitted_at_ms, application.log_path))
    return {group: path for group, (_, path) in found.items()}


def _show(group: str, path: Path, lines: int) -> int:
    """Returns where the log ended."""
    typer.echo(f"group {group}: {path}", err=True)
    data = path.read_bytes()
    for line in _last(data.decode(errors="replace"), lines):
        typer.echo(line)
    return len(data)


def _last(text: str, lines: int) -> Iterator[str]:
    yield from text.splitlines()[-lines:] if lines else ()


def _print_from(path: Path, start: int) -> int:
    with path.open("rb") as log:
        log.seek(start)
        data = log.read()
    typer.echo(data.decode(errors="replace"), nl=False)
    return start + len(data)
