"""`strait resolve`: one decision about a topic that was deleted on one side."""

from typing import Annotated, Literal

import typer

from strait.cli.options import ByOption, ChosenLink, Output, OutputOption, link_command, myself
from strait.cli.printing import echo


@link_command
def resolve(
    link: ChosenLink,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Source topic.", show_default=False)] = "",
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
    from strait.control import resolving

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
