"""`strait plan` shows what would change, `strait apply` does it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strait.cli.options import ConfigOption, JsonOption, LinkOption, print_json
from strait.errors import ConfigError, SetupError

if TYPE_CHECKING:
    from strait.planning.review.approval import ShownPlan


def plan(
    config: ConfigOption,
    link: LinkOption,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Also write it down, for `strait apply` to do just this.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what would be created, copied and left out, how much there is to copy, and what may go wrong. Changes
    nothing."""
    from strait.control.plane import Control
    from strait.planning.review import text

    with Control.of(config, link) as control:
        proposal = control.propose()
        ahead = control.forecast(proposal)
        shown = control.show(proposal, ahead)
    if out is not None:
        _write(out, shown)
    if as_json:
        said = {"fingerprint": shown.fingerprint, "effects": [list(effect) for effect in shown.effects]}
        risks = [risk._asdict() for risk in (*proposal.state_risks, *ahead.risks)]
        print_json(text.proposal_data(proposal) | said | ahead.as_data() | {"risks": risks})
    else:
        typer.echo(shown.text)


def apply(
    config: ConfigOption,
    link: LinkOption,
    file: Annotated[
        Path | None,
        typer.Argument(help="What `strait plan --out` wrote: do this, or nothing if it is not what would be done now."),
    ] = None,
    as_json: JsonOption = False,
    stopped: Annotated[
        bool | None,
        typer.Option("--stop/--start", help="End the link's applications, or let them run again; it stays so."),
    ] = None,
) -> None:
    """Create missing topics and publish the plan that running applications follow."""
    from strait.control.plane import Control

    shown = None if file is None else _read(file, link)
    with Control.of(config, link) as control:
        outcome = control.apply(stopped=stopped, shown=shown)
    if as_json:
        print_json(outcome.as_data())
    else:
        typer.echo(outcome.as_text())


def _write(path: Path, shown: "ShownPlan") -> None:
    try:
        path.write_text(shown.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SetupError(f"link {shown.link}: writing {path}: {error.strerror}") from error


def _read(path: Path, link: str) -> "ShownPlan":
    from strait.planning.review.approval import ShownPlan

    where = f"plan file {path}"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(where, [f"cannot be read: {error}"], hint="`strait plan --out` writes it") from error
    shown = ShownPlan.parse(text, where=where)
    if shown.link != link:
        raise ConfigError(where, [f"is a plan of link {shown.link!r}, not of {link!r}"])
    return shown
