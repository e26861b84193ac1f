"""`strait losses`: records that a link could not copy or that were lost, the action taken, and their acknowledgements."""

from typing import Annotated

import typer

from strait.cli.completing import topics_that_start_with
from strait.cli.options import ByOption, ChosenLink, Output, OutputOption, link_command, myself
from strait.cli.printing import echo
from strait.cli.tables import plain_table
from strait.config.route_names import is_meant, typed
from strait.config.validation import did_you_mean
from strait.control.acknowledging import acknowledge
from strait.errors import ConfigError
from strait.state.reader import StateReader
from strait.state.schema import Loss, LossAcknowledgement
from strait.text import plural, utc


@link_command
def losses(
    link: ChosenLink,
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC", help="Only this source topic.", show_default=False, autocompletion=topics_that_start_with
        ),
    ] = "",
    new: Annotated[bool, typer.Option("--new", help="Only those that are not acknowledged.")] = False,
    acknowledged: Annotated[
        bool,
        typer.Option("--acknowledge", help="Acknowledge those that the log has now, so that only later ones are new."),
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="With `--acknowledge`: kept with it.", show_default=False)
    ] = "",
    by: ByOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """List records that were lost, and the action taken.

    `--acknowledge` keeps the operator that has taken note of them, and the reason, in the link's state. It copies and
    changes nothing.
    """
    of = link.load()
    topic = typed(topic)
    made = acknowledge(of, topic, by=by or myself(), reason=reason) if acknowledged else None
    with of.state("plan", "losses") as state:
        state.catch_up()
        pairs = zip(state.losses, state.loss_acknowledgements, strict=True)
        found = [(loss, said) for loss, said in pairs if not topic or is_meant(topic, loss.topic)]
        if topic and not found:
            _require_known(link.name, topic, state)
        trouble = state.trouble
    if new:
        found = [(loss, said) for loss, said in found if said is None]
    if output.structured:
        output.write([loss.model_dump() | {"acknowledged": _data(said)} for loss, said in found])
    elif made is not None:
        where = f" of topic {topic}" if topic else ""
        echo(
            f"link {link.name}: {plural(made.count, f'loss{where} is', f'losses{where} are')} acknowledged by {made.by}"
        )
    elif found:
        _print(found)
    else:
        echo(f"link {link.name}: no {'new ' if new else ''}losses recorded" + (f" for topic {topic}" if topic else ""))
    if trouble is not None:
        raise trouble


def _require_known(link: str, topic: str, state: StateReader) -> None:
    known = {loss.topic for loss in state.losses}
    for plan in state.plans.values():
        known |= {item.source for item in plan.topics} | {item.topic for item in plan.waiting}
    if not any(is_meant(topic, name) for name in known):
        problem = f"neither its plan nor its loss log has a topic {topic!r}{did_you_mean(topic, {*known, link})}"
        raise ConfigError(f"link {link}", [problem])


def _data(said: LossAcknowledgement | None) -> dict[str, object] | None:
    return None if said is None else said.model_dump(include={"by", "at_ms", "reason"})


def _print(found: list[tuple[Loss, LossAcknowledgement | None]]) -> None:
    rows = (
        [
            utc(loss.at_ms),
            f"{loss.topic}-{loss.partition}",
            loss.side,
            f"{loss.from_offset:,}",
            f"{loss.to_offset:,}",
            loss.action,
            f"{loss.cause}: {loss.detail}",
            "new" if said is None else f"{said.by}, {utc(said.at_ms)}" + (f": {said.reason}" if said.reason else ""),
        ]
        for loss, said in found
    )
    plain_table(["when (UTC)", "of", "side", ">from", ">to", "action", "cause", "acknowledged"], rows)
