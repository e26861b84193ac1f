"""The `strait` command: assembles its commands and prints every error as one line.

Exit codes: 0 done; 1 the command failed (a cluster, this machine, Spark); 2 the configuration or the command line is
wrong, and a retry without a change cannot succeed.

A command's module is imported when the command is run: `strait --help` imports none, so that it responds immediately.
"""

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from strait import __version__
from strait.cli.examples import examples, group_examples
from strait.cli.options import Command, CommandGroup
from strait.cli.printing import echo
from strait.errors import ConfigError, StraitError

EXIT_FAILED = 1
EXIT_USAGE = 2


COMMANDS = {
    "run": ("run", "Replicate one link, or all links of a pool, in the foreground."),
    "validate": ("validate", "Check the links file, without connecting to any cluster unless asked to."),
    "doctor": ("doctor", "Check this host, the links file and its clusters, and suggest remedies."),
    "plan": ("plan", "Preview changes, backlog and risks. Read-only."),
    "apply": ("plan", "Create missing topics and publish the plan."),
    "settings": ("settings", "Show the effective settings and their origins."),
    "status": ("status", "Show state, lag and issues per link, topic and partition."),
    "top": ("top", "Show links and the partitions with the largest lag, refreshed until Ctrl-C."),
    "wait": ("wait", "Wait until a link has caught up, runs or is stopped."),
    "exporter": ("exporter", "Serve metrics of links to Prometheus, until Ctrl-C."),
    "explain": ("explain", "Explain a reason code: its meaning and the remedy."),
    "stop": ("pause", "Stop a link's Spark applications."),
    "start": ("pause", "Let a stopped link run again."),
    "pause": ("pause", "Pause a link, topic or partition."),
    "resume": ("pause", "Resume a paused link, topic or partition."),
    "resolve": ("pause", "Resolve the deletion of a topic once."),
    "applications": ("applications", "Show a link's Spark applications on this machine."),
    "logs": ("logs", "Show the logs of a link's Spark applications."),
    "losses": ("losses", "List records that were lost, and the action taken."),
    "groups": (
        "groups",
        "Show the offsets at which consumer groups would resume on the destination; `--sync` commits them.",
    ),
    "failover": (
        "failover",
        "Move a link's clients to its destination: wait until producers have stopped and all is copied, commit the "
        "consumer groups' offsets, stop the link.",
    ),
    "failback": ("failover", "Move the clients of a link that failed over back to its source."),
    "schema": ("schema", "Print the JSON Schema of the links file."),
    "version": ("version", "Show the versions of Strait, Python, Spark and Airflow."),
    "quarantine": ("quarantine", "List, replay or discard rejected records."),
    "tail": ("tail", "List, export or drop records that were never copied."),
    "offsets": (
        "offsets",
        "Translate committed offsets between the clusters; export and import the link's own.",
    ),
    "map": ("map_rebuild", "Rebuild a lost offset map."),
    "audit": ("audit", "Compare the contents of topics, and certify the result."),
    "pools": ("pools", "Have links share a Spark application."),
    "import": ("importing", "Convert a Mirus or MirrorMaker 2 configuration."),
    "demo": ("demo", "Run a demo: two clusters, data, Airflow and a link."),
}
"""Command -> module in `strait.cli`, and the first sentence of its help. A module has a function of the command's name,
or an `app` with subcommands."""


class _Loaded(Mapping[str, Any]):
    """Every command, imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        module = import_module(f"strait.cli.{COMMANDS[name][0]}")
        command = getattr(module, name, None)
        if command is None:
            found: Any = typer.main.get_group(module.app)
            found.epilog = group_examples(name)
        else:
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
            alone.command(name, cls=Command, epilog=examples(name))(command)
            found = typer.main.get_command(alone)
        found.name = name
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Commands(CommandGroup):
    """Imports the module of the command that is run."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Loaded()  # type: ignore[assignment]  # no command is added

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with self._outlined():
            super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        with self._outlined():
            return super().shell_complete(ctx, incomplete)

    @contextmanager
    def _outlined(self) -> Iterator[None]:
        """Have only the names and the help of the commands meanwhile."""
        loaded, self.commands = self.commands, {name: TyperCommand(name, help=COMMANDS[name][1]) for name in COMMANDS}
        yield
        self.commands = loaded


app = typer.Typer(
    cls=_Commands,
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


if __name__ == "__main__":
    main()
