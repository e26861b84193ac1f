"""`strait pause` and `resume` for a link, a topic or a partition; `strait stop` and `start` for a link."""

from typing import TYPE_CHECKING, Annotated

import typer

from strait.cli.options import ByOption, ChosenLink, Output, OutputOption, link_command, myself
from strait.cli.printing import echo

if TYPE_CHECKING:
    from strait.control.pausing import Edited

WhatArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC[-PARTITION]", help="Source topic or partition. Default: the whole link.", show_default=False
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
    from strait.control import pausing
    from strait.planning.plan.pauses import Scope

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
    from strait.control import pausing
    from strait.planning.plan.pauses import Scope

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


def _set_stopped(link: ChosenLink, *, stopped: bool, by: str, reason: str, output: Output) -> None:
    from strait.control import pausing

    done = pausing.set_stopped(link.load(), stopped=stopped, by=by, reason=reason)
    text = "stopped" if stopped else "started"
    _tell(link.name, text if done.published else f"is {text} already", done, output=output)


def _tell(link: str, text: str, done: "Edited", *, output: Output) -> None:
    from strait.planning.plan.pauses import described

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
