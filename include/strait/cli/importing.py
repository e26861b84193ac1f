"""`strait import`: convert the configuration of Mirus or MirrorMaker 2 to a links file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from strait.cli.examples import examples
from strait.cli.options import Command, CommandGroup, Output, OutputOption
from strait.cli.printing import echo
from strait.config.validation import text_of
from strait.importing.draft import Draft, Weight
from strait.importing.mirus import translate_mirus
from strait.importing.mm2 import translate_mm2
from strait.importing.reading import properties_of
from strait.importing.writing import as_yaml

app = typer.Typer(
    cls=CommandGroup,
    help="Convert a Mirus or MirrorMaker 2 configuration.",
    rich_markup_mode="rich",
)

_EXIT_INCOMPLETE = 3

Verbose = Annotated[bool, typer.Option("--verbose", help="Also list properties that are not needed.")]
LinkName = Annotated[str | None, typer.Option("--link", help="Name of the link. Default: from what is read.")]
SecretsDir = Annotated[
    str, typer.Option("--secrets-dir", help="Folder in which the links file is to look for secrets, a file for each.")
]


@app.command("mirus", cls=Command, epilog=examples("import mirus"))
def mirus(
    files: Annotated[
        list[Path], typer.Argument(help="Of a connector and, if need be, its worker; the last word counts.")
    ],
    link: LinkName = None,
    secrets_dir: SecretsDir = "/etc/strait/secrets",
    verbose: Verbose = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Convert a Mirus connector's configuration to a links file. Secrets become references.

    Lists on stderr the properties that are not in the file: first those without which the link must not run, such as a
    login or a filter; the exit code is 3 if there are any.
    """
    _print("mirus", files, translate_mirus(_read(files), link=link, secrets_dir=secrets_dir), output, verbose=verbose)


@app.command("mm2", cls=Command, epilog=examples("import mm2"))
def mm2(
    files: Annotated[list[Path], typer.Argument(help="mm2.properties, or a MirrorSourceConnector's configuration.")],
    link: LinkName = None,
    secrets_dir: SecretsDir = "/etc/strait/secrets",
    verbose: Verbose = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Convert a MirrorMaker 2 configuration to a links file. Secrets become references.

    Lists on stderr the properties that are not in the file: first those without which the link must not run, such as a
    login or a filter; the exit code is 3 if there are any.
    """
    _print("mm2", files, translate_mm2(_read(files), link=link, secrets_dir=secrets_dir), output, verbose=verbose)


def _read(files: list[Path]) -> Mapping[str, str]:
    properties: dict[str, str] = {}
    for file in files:
        properties |= properties_of(text_of(file, str(file)), str(file))
    return properties


_TITLES = (
    ("first", "correct this first, at the comments FIRST in the links file"),
    ("differs", "behaves differently"),
    ("needless", "not needed"),
)


def _print(tool: str, files: list[Path], draft: Draft, output: Output, *, verbose: bool) -> None:
    draft.checked(f"import {tool}: what became of {', '.join(map(str, files))}")
    if output.structured:
        notes = [{"at": list(path), "note": note} for path, said in draft.notes.items() for note in said]
        blocks = {str(weight): draft.of(weight) for weight in Weight}
        output.write({"links_file": draft.as_data(), "notes": notes, "left_out": draft.left, **blocks})
    else:
        names = ", ".join(file.name for file in files)
        echo(f"# Translated by `strait import {tool}` from {names}.\n{as_yaml(draft)}", nl=False)
        for weight, title in _TITLES:
            _list(title, draft.of(Weight(weight)), names=weight != Weight.NEEDLESS or verbose)
    if draft.of(Weight.FIRST):
        raise typer.Exit(_EXIT_INCOMPLETE)


def _list(title: str, found: Mapping[str, str], *, names: bool) -> None:
    if found:
        echo(f"{title} ({len(found)}){':' if names else '; --verbose lists them'}", err=True)
    for key, why in found.items() if names else ():
        echo(f"  {key}: {why}", err=True)
