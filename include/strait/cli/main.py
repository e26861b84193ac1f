"""The `strait` command: assembles its commands and prints every error as one line.

Exit codes: 0 done; 1 the command failed (a cluster, this machine, Spark); 2 the configuration or the command line is
wrong, and a retry without a change cannot succeed.

Every module that is imported here must stay cheap to import, so that `strait --help` responds immediately: Kafka's
and Spark's libraries are imported inside the functions that use them.
"""

import logging
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from strait import __version__
from strait.cli import (
    applications,
    audit,
    demo,
    doctor,
    explain,
    exporter,
    failover,
    groups,
    importing,
    logs,
    losses,
    map_rebuild,
    offsets,
    pause,
    plan,
    quarantine,
    run,
    schema,
    settings,
    status,
    tail,
    top,
    validate,
    version,
    wait,
)
from strait.cli.examples import examples
from strait.cli.options import Command
from strait.cli.printing import echo
from strait.errors import ConfigError, StraitError

EXIT_FAILED = 1
EXIT_USAGE = 2


class _HelpByDefault(TyperGroup):
    """Shows the help, and exits with 0, if `strait` is given no argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])


app = typer.Typer(
    cls=_HelpByDefault,
    help="Copy Kafka topics from cluster to cluster: exactly once, through Spark.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        echo(f"strait {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Copy Kafka topics from cluster to cluster: exactly once, through Spark."""


def _add(name: str, command: Callable[..., None]) -> None:
    app.command(name, cls=Command, epilog=examples(name))(command)


_add("run", run.run)
_add("validate", validate.validate)
_add("doctor", doctor.doctor)
_add("plan", plan.plan)
_add("apply", plan.apply)
_add("settings", settings.settings)
_add("status", status.status)
_add("top", top.top)
_add("wait", wait.wait)
_add("exporter", exporter.exporter)
_add("explain", explain.explain)
_add("stop", pause.stop)
_add("start", pause.start)
_add("pause", pause.pause)
_add("resume", pause.resume)
_add("resolve", pause.resolve)
_add("applications", applications.applications)
_add("logs", logs.logs)
_add("losses", losses.losses)
_add("groups", groups.groups)
_add("failover", failover.failover)
_add("failback", failover.failback)
app.add_typer(quarantine.app, name="quarantine")
app.add_typer(tail.app, name="tail")
app.add_typer(offsets.app, name="offsets")
app.add_typer(map_rebuild.app, name="map")
app.add_typer(audit.app, name="audit")
_add("schema", schema.schema)
_add("version", version.version)
app.add_typer(importing.app, name="import")
app.add_typer(demo.app, name="demo")


def main() -> None:
    """Entry point of the `strait` script."""
    run_command(app)


def run_command(command: Callable[[], object]) -> None:
    """Run a command. Print a `StraitError` as one line and exit with its code. Long reads report progress on stderr."""
    _show_progress()
    try:
        command()
    except StraitError as error:
        echo(f"error: {error}", err=True)
        sys.exit(exit_code(error))


def _show_progress() -> None:
    logging.getLogger("strait").setLevel(logging.INFO)
    reading = logging.getLogger("strait.state.reader")
    reading.handlers = [logging.StreamHandler()]
    reading.propagate = False


def exit_code(error: StraitError) -> int:
    """Return the command's exit code for an error."""
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED
