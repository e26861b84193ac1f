"""The `strait` command: where its commands are put together and where every error becomes one line.

Exit codes: 0 done; 1 the command failed (a cluster, this machine, Spark); 2 the configuration or the command line is
wrong, and trying again without a change cannot help.

Every module that is imported here must stay cheap to import, so that `strait --help` answers at once: Kafka's and
Spark's libraries are imported inside the functions that use them.
"""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from strait import __version__
from strait.cli import (
    demo,
    explain,
    importing,
    logs,
    losses,
    offsets,
    pause,
    plan,
    quarantine,
    run,
    schema,
    status,
    validate,
    wait,
)
from strait.cli.examples import examples
from strait.cli.options import Command
from strait.errors import ConfigError, StraitError

EXIT_FAILED = 1
EXIT_USAGE = 2

app = typer.Typer(
    help="Copy Kafka topics from cluster to cluster: exactly once, through Spark.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"strait {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Copy Kafka topics from cluster to cluster: exactly once, through Spark."""


app.command("run", cls=Command, epilog=examples("run"))(run.run)
app.command("validate", cls=Command, epilog=examples("validate"))(validate.validate)
app.command("plan", cls=Command, epilog=examples("plan"))(plan.plan)
app.command("apply", cls=Command, epilog=examples("apply"))(plan.apply)
app.command("status", cls=Command, epilog=examples("status"))(status.status)
app.command("wait", cls=Command, epilog=examples("wait"))(wait.wait)
app.command("explain", cls=Command, epilog=examples("explain"))(explain.explain)
app.command("stop", cls=Command, epilog=examples("stop"))(pause.stop)
app.command("start", cls=Command, epilog=examples("start"))(pause.start)
app.command("pause", cls=Command, epilog=examples("pause"))(pause.pause)
app.command("resume", cls=Command, epilog=examples("resume"))(pause.resume)
app.command("logs", cls=Command, epilog=examples("logs"))(logs.logs)
app.command("losses", cls=Command, epilog=examples("losses"))(losses.losses)
app.add_typer(quarantine.app, name="quarantine")
app.add_typer(offsets.app, name="offsets")
app.command("schema", cls=Command, epilog=examples("schema"))(schema.schema)
app.add_typer(importing.app, name="import")
app.add_typer(demo.app, name="demo")


def main() -> None:
    """Entry point of the `strait` script."""
    run_command(app)


def run_command(command: Callable[[], object]) -> None:
    """Every error of ours becomes one line and an exit code."""
    try:
        command()
    except StraitError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(exit_code(error))


def exit_code(error: StraitError) -> int:
    """The exit code that an error gives the command."""
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILED
