"""`strait validate`: check a links file without a connection to any cluster."""

import typer

from strait.cli.options import DEFAULT_FILE, ConfigOption, Output, OutputOption


def validate(config: ConfigOption = DEFAULT_FILE, output: OutputOption = Output.TABLE) -> None:
    """Check the links file, without connecting to any cluster.

    Every mistake is listed, with the nearest valid key. Secrets that the file refers to are not read.
    """
    from strait.config.links import load

    file = load(config)
    if output.structured:
        output.write({"file": str(config), "valid": True, "links": sorted(file.links)})
    else:
        typer.echo(f"{config}: valid: {', '.join(sorted(file.links))}")
