"""`strait explain`: the meaning and remedy of a reason code."""

from typing import Annotated

import typer

from strait.cli.options import Output, OutputOption
from strait.cli.printing import echo
from strait.cli.tables import plain_table
from strait.config.validation import did_you_mean
from strait.errors import ConfigError
from strait.reasons import Reason


def codes_that_start_with(incomplete: str) -> list[str]:
    """Return reason codes, for completion in a shell."""
    return [str(one) for one in Reason if one.startswith(incomplete)]


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            help="A reason code. Default: list all of them.", show_default=False, autocompletion=codes_that_start_with
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Explain a reason code: its meaning and the remedy."""
    if code is not None and code not in set(Reason):
        raise ConfigError(
            "strait explain", [f"there is no reason code {code!r}{did_you_mean(code, [str(one) for one in Reason])}"]
        )
    chosen = [Reason(code)] if code is not None else list(Reason)
    if output.structured:
        output.write(
            [
                {"code": str(reason), "kind": str(reason.kind), "meaning": reason.meaning, "remedy": reason.remedy}
                for reason in chosen
            ]
        )
    elif code is None:
        plain_table(["code", "kind", "meaning"], ([str(one), str(one.kind), one.meaning] for one in chosen))
    else:
        (reason,) = chosen
        echo(f"{reason} ({str(reason.kind).replace('_', ' ')})\n{reason.meaning}\n{reason.remedy}")
