"""`strait losses`: records that a link could not copy or that were lost, and the action taken."""

from typing import Annotated

import typer

from strait.cli.options import ChosenLink, Output, OutputOption, link_command
from strait.cli.printing import echo
from strait.cli.tables import plain_table
from strait.config.validation import did_you_mean
from strait.errors import ConfigError
from strait.state.reader import StateReader
from strait.state.schema import Loss
from strait.text import utc


@link_command
def losses(
    link: ChosenLink,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Only this source topic.", show_default=False)] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List records that were lost, and the action taken."""
    with link.load().state("plan", "losses") as state:
        state.catch_up()
        found = [loss for loss in state.losses if topic in ("", loss.topic)]
        if topic and not found:
            _require_known(link.name, topic, state)
        trouble = state.trouble
    if output.structured:
        output.write([loss.model_dump() for loss in found])
    elif found:
        _print(found)
    else:
        echo(f"link {link.name}: no losses recorded" + (f" for topic {topic}" if topic else ""))
    if trouble is not None:
        raise trouble


def _require_known(link: str, topic: str, state: StateReader) -> None:
    known = {loss.topic for loss in state.losses}
    for plan in state.plans.values():
        known |= {item.source for item in plan.topics} | {item.topic for item in plan.waiting}
    if topic not in known:
        problem = f"neither its plan nor its loss log has a topic {topic!r}{did_you_mean(topic, known)}"
        raise ConfigError(f"link {link}", [problem])


def _print(found: list[Loss]) -> None:
    rows = (
        [
            utc(loss.at_ms),
            f"{loss.topic}-{loss.partition}",
            loss.side,
            f"{loss.from_offset:,}",
            f"{loss.to_offset:,}",
            loss.action,
            f"{loss.cause}: {loss.detail}",
        ]
        for loss in found
    )
    plain_table(["when (UTC)", "of", "side", ">from", ">to", "action", "cause"], rows)
