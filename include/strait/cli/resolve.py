"""`strait resolve`: one decision about a topic that was deleted on one side."""

from typing import Annotated, Literal

import typer

from strait.cli.options import (
    DEFAULT_FILE,
    ByOption,
    ConfigOption,
    LinkArgument,
    LinkOption,
    Output,
    OutputOption,
    myself,
    one_link,
)
from strait.cli.printing import echo


def resolve(
    first: LinkArgument = None,
    second: Annotated[str | None, typer.Argument(metavar="TOPIC", help="Source topic.", show_default=False)] = None,
    config: ConfigOption = DEFAULT_FILE,
    link: LinkOption = None,
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
    from strait.state.link_handle import ConfiguredLink

    if go_on == restart:
        raise typer.BadParameter("give either --continue or --restart")
    name, topic = one_link(config, link, first, second, most=1)
    if not topic:
        raise typer.BadParameter("name the topic", param_hint="TOPIC")
    action: Literal["continue", "restart"] = "continue" if go_on else "restart"
    done = resolving.resolve(ConfiguredLink.load(config, name), topic, action, by=by or myself(), reason=reason)
    if output.structured:
        plans = {plan.group: plan.version for plan in done.published}
        output.write({"link": name, "topic": topic, "action": action, "plans": plans})
        return
    echo(
        f"link {name}: {topic}: {action} is decided; the monitor DAG or `strait run` follows it with the next plan, "
        f"`strait apply {name}` now"
    )
