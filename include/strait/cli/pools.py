"""`strait pools`: have links share a Spark application."""

import os
from pathlib import Path
from typing import Annotated

import typer

from strait.cli.examples import examples
from strait.cli.options import DEFAULT_FILE, Command, CommandGroup, ConfigOption, Output, OutputOption
from strait.cli.printing import echo
from strait.text import plural

app = typer.Typer(cls=CommandGroup, help="Have links share a Spark application.")


@app.callback()
def _pools() -> None:
    """Have links share a Spark application."""


@app.command(cls=Command, epilog=examples("pools adopt"))
def adopt(
    pool: Annotated[
        str, typer.Argument(help="Name of the pool; it is added if the links file has none of this name.")
    ] = "main",
    config: ConfigOption = DEFAULT_FILE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which links would move.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make one pool the default of a links file, so that one Spark application runs all of its links.

    Adds `default: true` to the pool, and nothing else; links with another `spark` block, a standby of their own or a `pool`
    key stay as they are. With Airflow, the next run of each link's DAG moves it; nothing is copied twice.
    """
    from strait.config.pool_adoption import adopted
    from strait.config.validation import text_of

    where = f"links file {config}"
    before = text_of(config, where)
    found = adopted(before, pool, len(os.sched_getaffinity(0)), where)
    changes = found.text != before
    if changes and not dry_run:
        _write(config, found.text, where)
    members = found.file.members(pool)
    if output.structured:
        output.write(
            {"pool": pool, "links": members, "separate": dict(found.separate), "written": changes and not dry_run}
        )
        return
    echo(
        f"pool {pool}: {'would run' if dry_run else 'runs'} {plural(len(members), 'link')}: {', '.join(members) or '-'}"
    )
    for name, why in found.separate.items():
        if name not in members:
            echo(f"link {name}: keeps Spark applications of its own: {why}")
    if not changes:
        echo(f"{where}: unchanged, pool {pool} is the default already")
    elif not dry_run:
        echo(f"{where}: changed; Airflow moves each link with the next run of its DAG")
        echo(f"without Airflow: start `strait run --pool {pool}`, then end the `strait run` of each link")


def _write(path: Path, text: str, where: str) -> None:
    """Replace the file atomically and keep its mode."""
    from strait.errors import ConfigError

    target = path.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        mode = target.stat().st_mode & 0o777
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as file:
            file.write(text)
        partial.chmod(mode)
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ConfigError(
            where, [f"cannot be written: {error.strerror}"], hint="change it where it is kept, such as a ConfigMap"
        ) from error
