"""Commands that edit the current plans: `strait pause` and `resume` for a link, a topic or a partition, `stop` and
`start` for a link, `resolve` for a deleted topic."""

from typing import Annotated, Literal

import typer

from strait.cli.completing import topics_that_start_with
from strait.cli.options import ByOption, ChosenLink, Output, OutputOption, link_command, myself
from strait.cli.printing import echo
from strait.control import pausing, resolving
from strait.control.pausing import Edited
from strait.planning.plan.pauses import Scope, described

WhatArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC[-PARTITION]",
        help="Source topic or partition. Default: the whole link.",
        show_default=False,
        autocompletion=topics_that_start_with,
    ),
]

ReasonOption = Annotated[str, typer.Option("--reason", help="Reason, shown in `strait status`.", show_default=False)]


@link_command
def pause(
    link: ChosenLink,
    what: WhatArgument = "",
    reason: ReasonOption = "",
    by: ByOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Pause a link, topic or partition.

    Copying stops within two seconds, until `strait resume`. The Spark application keeps running.
    """
    done = pausing.pause(link.load(), Scope.parse(what), by=by or myself(), reason=reason)
    _tell(link.name, f"{done.scope} is paused", done, output=output)


@link_command
def resume(
    link: ChosenLink,
    what: WhatArgument = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Resume a paused link, topic or partition.

    Copying resumes exactly at the offset at which it stopped. Topics and partitions that were paused separately stay
    paused, and are listed.
    """
    done = pausing.resume(link.load(), Scope.parse(what))
    _tell(link.name, f"{done.scope} is resumed", done, output=output)


@link_command
def stop(
    link: ChosenLink,
    reason: ReasonOption = "",
    by: ByOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Stop a link's Spark applications.

    Only the plan is edited: no pending change of the configuration is applied, and the source may be unreachable. The
    link stays stopped until `strait start`, also if `strait run` is started again.
    """
    _set_stopped(link, stopped=True, by=by or myself(), reason=reason, output=output)


@link_command
def start(
    link: ChosenLink,
    output: OutputOption = Output.TABLE,
) -> None:
    """Let a stopped link run again.

    The monitor DAG submits its Spark applications; without Airflow run `strait run`.
    """
    _set_stopped(link, stopped=False, by=myself(), reason="", output=output)


@link_command
def resolve(
    link: ChosenLink,
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC", help="Source topic.", show_default=False, autocompletion=topics_that_start_with
        ),
    ] = "",
    go_on: Annotated[
        bool,
        typer.Option(
            "--continue", help="Resume from the last confirmed record. The records before it are not copied again."
        ),
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Copy the source topic again from its first record.")
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="Reason, kept in the plan and the loss log.", show_default=False)
    ] = "",
    by: ByOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Resolve the deletion of a topic once.

    For topics that wait with `destination_deleted`, `destination_recreated` or `source_recreated`. The next plan applies
    the resolution; it adds no rule, and the topic's `on_loss` applies to later losses as before. A source topic
    that was created again is copied from its first record by both options.
    """
    if go_on == restart:
        raise typer.BadParameter("give either --continue or --restart")
    if not topic:
        raise typer.BadParameter("name the topic", param_hint="TOPIC")
    action: Literal["continue", "restart"] = "continue" if go_on else "restart"
    done = resolving.resolve(link.load(), topic, action, by=by or myself(), reason=reason)
    if output.structured:
        plans = {plan.group: plan.version for plan in done.published}
        output.write({"link": link.name, "topic": topic, "action": action, "plans": plans})
        return
    echo(
        f"link {link.name}: {topic}: {action} is decided; the monitor DAG or `strait run` follows it with the next plan, "
        f"`strait apply {link.name}` now"
    )


def _set_stopped(link: ChosenLink, *, stopped: bool, by: str, reason: str, output: Output) -> None:
    done = pausing.set_stopped(link.load(), stopped=stopped, by=by, reason=reason)
    text = "stopped" if stopped else "started"
    _tell(link.name, text if done.published else f"is {text} already", done, output=output)


def _tell(link: str, text: str, done: Edited, *, output: Output) -> None:
    if output.structured:
        output.write(
            {
                "link": link,
                "pauses": [item.model_dump() for item in done.pauses],
                "plans": {plan.group: plan.version for plan in done.published},
            }
        )
        return
    plans = ", ".join(f"plan {plan.version} of group {plan.group}" for plan in done.published)
    echo(f"link {link}: {text}; " + (f"published {plans}" if plans else "no plan changed"))
    for item in done.pauses:
        echo(f"paused    {described(item)}")
