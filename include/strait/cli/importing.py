"""`strait import`: convert the configuration of Mirus or MirrorMaker 2 to a links file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strait.cli.examples import examples
from strait.cli.options import Command, Output, OutputOption
from strait.cli.printing import echo

if TYPE_CHECKING:
    from strait.importing.draft import Draft

app = typer.Typer(
    help="Convert a Mirus or MirrorMaker 2 configuration.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

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
    output: OutputOption = Output.TABLE,
) -> None:
    """Convert a Mirus connector's configuration to a links file. Lists unsupported properties on stderr. Secrets become
    references."""
    from strait.importing.mirus import translate_mirus

    _print("mirus", files, translate_mirus(_read(files), link=link, secrets_dir=secrets_dir), output)


@app.command("mm2", cls=Command, epilog=examples("import mm2"))
def mm2(
    files: Annotated[list[Path], typer.Argument(help="mm2.properties, or a MirrorSourceConnector's configuration.")],
    link: LinkName = None,
    secrets_dir: SecretsDir = "/etc/strait/secrets",
    output: OutputOption = Output.TABLE,
) -> None:
    """Convert a MirrorMaker 2 configuration to a links file. Lists unsupported properties on stderr. Secrets become
    references."""
    from strait.importing.mm2 import translate_mm2

    _print("mm2", files, translate_mm2(_read(files), link=link, secrets_dir=secrets_dir), output)


def _read(files: list[Path]) -> Mapping[str, str]:
    from strait.errors import ConfigError
    from strait.importing.reading import properties_of

    properties: dict[str, str] = {}
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(file), [f"cannot be read: {error}"]) from None
        properties |= properties_of(text, str(file))
    return properties


def _print(tool: str, files: list[Path], draft: "Draft", output: Output) -> None:
    from strait.importing.writing import as_yaml

    draft.checked(f"import {tool}: what became of {', '.join(map(str, files))}")
    if output.structured:
        notes = [{"at": list(path), "note": note} for path, said in draft.notes.items() for note in said]
        output.write({"links_file": draft.as_data(), "notes": notes, "left_out": draft.left})
        return
    echo(
        f"# Translated by `strait import {tool}` from {', '.join(file.name for file in files)}.\n{as_yaml(draft)}",
        nl=False,
    )
    for key, why in draft.left.items():
        echo(f"left out  {key}: {why}", err=True)
