"""`strait failover`: move a link's clients from its source to its destination."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from strait.cli.completing import groups_that_start_with
from strait.cli.options import ByOption, ChosenLink, Output, OutputOption, link_command, myself, seconds
from strait.cli.printing import confirm, echo
from strait.config.links import LinksFile, load_link
from strait.control.failover import failover as failovers
from strait.control.failover.turn import Settings
from strait.control.plane import Control
from strait.errors import ConfigError
from strait.planning.failover import summary
from strait.planning.failover_report import left_behind, next_steps, screen
from strait.planning.waves import Wave
from strait.state.failover_records import Failover, FailoverStep
from strait.state.link_handle import ConfiguredLink
from strait.text import plural

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show what each step finds now. Exits with 1 unless all hold.")
]
FenceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fence",
        metavar="PRINCIPAL",
        help="Deny this principal to write to the link's topics on the source, by ACLs. May be repeated.",
        show_default=False,
    ),
]
QuietOption = Annotated[
    float,
    typer.Option(
        "--quiet",
        help="So long nothing must be written to the source.",
        parser=seconds,
        metavar="DURATION",
        show_default="10s",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", help="Give up a step after this.", parser=seconds, metavar="DURATION", show_default="10m"
    ),
]
AcceptInexactOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-inexact",
        metavar="GROUP",
        help="Go on although this consumer group would not continue exactly where it stopped; `'*'`: any. May be repeated.",
        show_default=False,
        autocompletion=groups_that_start_with,
    ),
]
AcceptTailOption = Annotated[
    bool,
    typer.Option(
        "--accept-tail",
        help="Go on although the link that copies the other way has not copied all that the destination has.",
    ),
]
AcceptTransformedOption = Annotated[
    bool,
    typer.Option(
        "--accept-transformed",
        help="Go on although a rule's `transform` filters, changes or divides records, so that the destination has others than the source.",
    ),
]
TopicsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topics",
        metavar="PATTERN",
        help="A wave: move only topics whose whole name on the source matches, and their groups; the link copies the "
        "others on. May be repeated.",
        show_default=False,
    ),
]
GroupsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--groups",
        metavar="PATTERN",
        help="With `--topics`: of the groups with offsets in them, move only these. May be repeated.",
        show_default=False,
    ),
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Reason, kept in the report.", show_default=False)]


@link_command
def failover(
    link: ChosenLink,
    unplanned: Annotated[
        bool, typer.Option("--unplanned", help="The source is lost: ask it for nothing, and name what is missing.")
    ] = False,
    even_if_source_answers: Annotated[
        bool, typer.Option("--even-if-source-answers", help="With `--unplanned`: although the source can be reached.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: DryRunOption = False,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse",
            help="Go through it with consumer groups of other names, touching no client, and keep a report with a "
            "score. Exits with 1 unless all steps hold.",
        ),
    ] = False,
    topics: TopicsOption = None,
    groups: GroupsOption = None,
    fence: FenceOption = None,
    unfence: Annotated[
        bool,
        typer.Option(
            "--unfence", help="Remove the ACLs of the last failover; give it up if it has not stopped the link."
        ),
    ] = False,
    quiet: QuietOption = 10.0,
    timeout: TimeoutOption = 600.0,
    accept_inexact: AcceptInexactOption = None,
    include_moved: Annotated[
        bool,
        typer.Option(
            "--include-moved", help="Also for groups that have consumed on the destination before, forward only."
        ),
    ] = False,
    accept_tail: AcceptTailOption = False,
    accept_transformed: AcceptTransformedOption = False,
    history: Annotated[bool, typer.Option("--history", help="List the link's failovers, with their reports.")] = False,
    reason: ReasonOption = "",
    by: ByOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Move a link's clients to its destination: wait until producers have stopped and all is copied, commit the
    consumer groups' offsets, stop the link.

    Run it again to resume an interrupted failover. Until the link is stopped, an error reverts all changes.
    Exits with 1 if records were written to the source too late.
    """
    name, wave = link.name, Wave.of(topics or (), groups or ())
    of = ConfiguredLink.of(load_link(link.config, name, reverse=True, beside=True), name)
    if history:
        _show(failovers.history(of), name, output)
        return
    if unfence:
        record, lifted = failovers.unfence(of, _say, wave=wave)
        echo(f"link {name}: failover {record.id}, {record.outcome}: {plural(lifted, 'ACL')} removed")
        return
    if unplanned and fence:
        raise ConfigError("command line", ["--fence changes the source, which --unplanned does not ask for anything"])
    if unplanned and even_if_source_answers and not (dry_run or yes) and sys.stdin.isatty():
        question = f"Fail over without {of.source.name}? What it holds beyond the copy is then missing"
        confirm(question)
    of = ConfiguredLink.of(_with_topics_in_force(of.file, name), name)
    settings = Settings(
        by=by or myself(),
        reason=reason,
        fence=tuple(fence or ()),
        quiet_seconds=quiet,
        timeout_seconds=timeout,
        accept_inexact=tuple(accept_inexact or ()),
        accept_tail=accept_tail,
        accept_transformed=accept_transformed,
        include_moved=include_moved,
        even_if_source_answers=even_if_source_answers,
        wave=wave,
    )
    tell = _say if not output.structured else (lambda _: None)
    if rehearse:
        record = failovers.rehearse(of, settings, tell)
    else:
        act = failovers.dry_run if dry_run else failovers.run
        record = act(of, "unplanned" if unplanned else "planned", settings, tell)
    _report(record, of.destination.properties.get("bootstrap.servers", ""), output, silent=dry_run)
    held = (dry_run or rehearse) and any(step.verdict in ("waiting", "failed") for step in record.steps)
    if held or (record.kind == "planned" and record.missing):
        raise typer.Exit(1)


@link_command
def failback(
    link: ChosenLink,
    dry_run: DryRunOption = False,
    topics: TopicsOption = None,
    groups: GroupsOption = None,
    fence: FenceOption = None,
    quiet: QuietOption = 10.0,
    timeout: TimeoutOption = 600.0,
    accept_inexact: AcceptInexactOption = None,
    accept_tail: AcceptTailOption = False,
    accept_transformed: AcceptTransformedOption = False,
    reason: ReasonOption = "",
    by: ByOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Move the clients of a link that failed over back to its source.

    A failover of the link in the opposite direction, also for groups that have consumed there before. It waits until
    this link has copied its tail, which `strait start` makes it do.
    """
    failover(
        _opposite(load_link(link.config, link.name, reverse=True), link.name),
        link.config,
        dry_run=dry_run,
        topics=topics,
        groups=groups,
        fence=fence,
        quiet=quiet,
        timeout=timeout,
        accept_inexact=accept_inexact,
        include_moved=True,
        accept_tail=accept_tail,
        accept_transformed=accept_transformed,
        reason=reason,
        by=by,
        output=output,
    )


def _opposite(file: LinksFile, link: str) -> str:
    """Return the only link that copies in the opposite direction. Raises ConfigError if there is none or several."""
    others = sorted(name for name in file.links if name != link)
    if len(others) != 1:
        found = f"several links copy the other way: {', '.join(others)}" if others else "no link copies the other way"
        hint = "run `strait failover` with the name of one" if others else "add one to the links file"
        raise ConfigError(f"link {link}", [found], hint=hint)
    return others[0]


def _with_topics_in_force(file: LinksFile, link: str) -> LinksFile:
    """Return the file with the link's current topics. Topics that an Airflow Variable added are replicated too, so the
    failover must include them, and they must not block it."""
    with Control(file, link) as control:
        found = control.settings_in_force().link
    return file.model_copy(update={"links": {**file.links, link: found}})


def _say(step: FailoverStep) -> None:
    echo(f"{step.verdict:8} {step.name:10} {step.seconds:7.1f} s  {step.detail}")


def _report(record: Failover, servers: str, output: Output, *, silent: bool) -> None:
    """Print the failover's result and, once it is done, the next steps, on one screen."""
    over = record.kind != "rehearsal" and record.outcome == "done" and not silent
    if output.structured:
        after = {"next": next_steps(record, servers), "left_behind": left_behind(record)} if over else {}
        output.write(record.model_dump() | after)
    elif not silent:
        echo(summary(record))
        for line in screen(record, servers) if over else ():
            echo(line)


def _show(found: Sequence[Failover], link: str, output: Output) -> None:
    if output.structured:
        output.write([record.model_dump() for record in found])
        return

    if not found:
        echo(f"link {link}: no failover was ever begun")
    for record in found:
        echo(f"{summary(record)}; by {record.by}" + (f": {record.reason}" if record.reason else ""))
        for step in record.steps:
            _say(step)
