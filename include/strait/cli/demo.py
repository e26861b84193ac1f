"""`strait demo`."""

import typer

app = typer.Typer(no_args_is_help=True)


@app.callback()
def _demo() -> None:
    """Two local clusters, data, Airflow and a link between them, to look at."""
