"""Options and output that commands share, so that they are spelt and explained alike everywhere."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

ConfigOption = Annotated[
    Path, typer.Option("--config", help="The links file, YAML or JSON.", envvar="STRAIT_CONFIG", show_default=False)
]
LinkOption = Annotated[str, typer.Option("--link", help="Name of the link in the links file.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]


def print_json(value: Any) -> None:
    """Write one JSON document and a newline to standard output, at once even into a pipe."""
    import json

    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()
