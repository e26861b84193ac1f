"""`strait validate`: check a links file without a connection to any cluster."""

import typer

from strait.cli.options import DEFAULT_FILE, ConfigOption, JsonOption, print_json


def validate(config: ConfigOption = DEFAULT_FILE, as_json: JsonOption = False) -> None:
    """Check the links file, without connecting to any cluster.

    Every mistake is listed, with the nearest valid key. Secrets that the file refers to are not read.
    """
    from strait.config.links import load

    file = load(config)
    if as_json:
        print_json({"file": str(config), "valid": True, "links": sorted(file.links)})
    else:
        typer.echo(f"{config}: valid: {', '.join(sorted(file.links))}")
