"""`strait plan` shows pending changes, `strait apply` makes them."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from strait.cli.completing import topics_that_start_with
from strait.cli.long_work import on_stderr
from strait.cli.options import (
    DEFAULT_FILE,
    ConfigOption,
    LinkArgument,
    LinkOption,
    Output,
    OutputOption,
    PoolOption,
    YesOption,
    one_link,
)
from strait.cli.pool_plan import show_pool
from strait.cli.printing import confirm, echo
from strait.config.validation import text_of
from strait.control.plane import Control
from strait.errors import ConfigError, SetupError
from strait.planning.review import text
from strait.planning.review.approval import ShownPlan
from strait.planning.review.preview import Preview
from strait.planning.topic_sync.actions import DeleteTopic
from strait.text import plural, printable

FromFileOption = Annotated[
    bool,
    typer.Option(
        "--from-file",
        help="Use the topics of the links file, even if those in force come from an Airflow Variable.",
    ),
]


def plan(
    first: LinkArgument = None,
    config: ConfigOption = DEFAULT_FILE,
    link: LinkOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Save the plan to a file for `strait apply FILE`.", show_default=False),
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are changes, with 0 if there are none.")
    ] = False,
    from_file: FromFileOption = False,
    pool: PoolOption = None,
    preview: Annotated[
        str | None,
        typer.Option(
            "--preview",
            metavar="TOPIC",
            help="Show ten recent records of a source topic, before and after its rule's `transform`.",
            show_default=False,
            autocompletion=topics_that_start_with,
        ),
    ] = None,
    hide_values: Annotated[
        bool, typer.Option("--hide-values", help="With `--preview`: show sizes instead of keys, values and headers.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Preview changes, backlog and risks. Read-only.

    Uses the topics of the links file; those of the current plan if an Airflow Variable replaces that block. With `--pool`,
    shows the Spark task that a new application of the pool would give to each slot of its links, by their current plans
    and the throughput that they report. With `--preview TOPIC`, evaluates the topic's `transform` for its most recent
    records, and exits with 1 if an expression is not allowed.
    """
    if pool is not None:
        show_pool(config, pool, output)
        return

    name, _ = one_link(config, link, first)
    with Control.of(config, name, on_stderr()) as control:
        origin = _settle_topics(control, from_file=from_file)
        proposal = control.propose()
        if preview is not None:
            _show_preview(control.preview(proposal, preview), output, hidden=hide_values)
            return
        ahead = control.forecast(proposal)
        shown = control.show(proposal, ahead)
    if out is not None:
        _write(out, shown)
    if output.structured:
        said = {"fingerprint": shown.fingerprint, "effects": [list(effect) for effect in shown.effects]}
        risks = [risk._asdict() for risk in (*proposal.state_risks, *ahead.risks)]
        output.write(text.proposal_data(proposal) | said | ahead.as_data() | {"risks": risks} | origin)
    else:
        echo(shown.text)
    if detailed_exitcode and not (proposal.empty and proposal.previous is not None):
        raise typer.Exit(2)


def apply(
    first: LinkArgument = None,
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="File that `strait plan --out` wrote: apply exactly that plan. It names the link, too.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = DEFAULT_FILE,
    link: LinkOption = None,
    yes: YesOption = False,
    from_file: FromFileOption = False,
    output: OutputOption = Output.TABLE,
    stopped: Annotated[
        bool | None,
        typer.Option("--stop/--start", help="Deprecated: use `strait stop` or `strait start`.", show_default=False),
    ] = None,
) -> None:
    """Create missing topics and publish the plan.

    Running Spark applications follow a new plan within a second. On a terminal, asks before it deletes a topic.
    Exits with 1 if a cluster rejects a change, such as a topic to create, or a change waits for approval; all others are
    applied.
    Uses the topics of the links file; those of the current plan if an Airflow Variable replaces that block.
    """
    if stopped is not None:
        echo("--stop and --start are deprecated: use `strait stop` or `strait start`", err=True)
    name, shown = _chosen(config, link, first, second)
    with Control.of(config, name, on_stderr()) as control:
        origin = _settle_topics(control, from_file=from_file)
        proposal = control.propose(stopped=stopped)
        deleted = [action for action in proposal.actions if isinstance(action, DeleteTopic)]
        if deleted and shown is None and not yes and sys.stdin.isatty():
            echo(control.show(proposal).text, err=True)
            confirm(f"Delete {plural(len(deleted), 'destination topic')}?", err=True)
        outcome = control.apply(proposal, stopped=stopped, shown=shown)
    if output.structured:
        output.write(outcome.as_data() | origin)
    else:
        echo(outcome.as_text())
    if outcome.refused or outcome.pending:
        raise typer.Exit(1)


def _settle_topics(control: Control, *, from_file: bool) -> dict[str, Any]:
    """Plan with the current topics, unless ``from_file``: a links file whose topics an Airflow Variable replaces must
    not drop the topics that the Variable added. Return the origin of the topics, for structured output."""
    found = control.settings_in_force(adopt=not from_file)
    if found.elsewhere:
        if from_file:
            said = f"topics are those of the links file; Airflow's next run takes those of {found.elsewhere} again"
        else:
            said = (
                f"topics are those in force (plan {found.version}), from {found.elsewhere}; "
                "--from-file takes those of the links file"
            )
        echo(said, err=True)
    return {"topics_from": "" if from_file else found.elsewhere}


def _show_preview(found: Preview, output: Output, *, hidden: bool) -> None:
    if output.structured:
        output.write(found.as_data(hidden=hidden))
    else:
        for line in found.lines(hidden=hidden):
            echo(printable(line))
    if found.refusal:
        raise typer.Exit(1)


def _write(path: Path, shown: ShownPlan) -> None:
    try:
        path.write_text(shown.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SetupError(f"link {shown.link}: writing {path}: {error.strerror}") from error


def _chosen(config: Path, link: str | None, first: str | None, second: str | None) -> tuple[str, ShownPlan | None]:
    """Return the link and the saved plan, or None. A saved plan names its link, so the file alone is enough."""
    if link is None and first is not None and second is None and Path(first).is_file():
        shown = _read(Path(first))
        return shown.link, shown
    name, file = one_link(config, link, first, second, most=1)
    return name, _read(Path(file), name) if file else None


def _read(path: Path, link: str | None = None) -> ShownPlan:
    where = f"plan file {path}"
    shown = ShownPlan.parse(text_of(path, where, hint="`strait plan --out` writes it"), where=where)
    if link not in (None, shown.link):
        raise ConfigError(where, [f"is a plan of link {shown.link!r}, not of {link!r}"])
    return shown
