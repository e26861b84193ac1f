"""`strait bench`."""

import typer

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Measure Strait and MirrorMaker 2 side by side on this machine."""
