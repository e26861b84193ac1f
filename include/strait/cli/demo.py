"""`strait demo`: two local clusters, data, Airflow and links between the clusters, for trying Strait out."""

from typing import Annotated, Any

import typer
from rich.console import Console

from strait.cli.examples import examples
from strait.cli.options import Command, CommandGroup, Output, OutputOption
from strait.cli.printing import echo
from strait.demo.folder import MOST_INVOICE_BYTES, SOURCE, DemoFolder
from strait.demo.generator import write_scan
from strait.demo.parts import Parts
from strait.demo.ports import choose_ports
from strait.demo.show import show
from strait.demo.status import DemoStatus, demo_status
from strait.demo.steps import Steps
from strait.demo.up import alone, bring_up
from strait.errors import ConfigError, SetupError
from strait.text import plural


class _UpByDefault(CommandGroup):
    """Runs `strait demo up` if `strait demo` is given no subcommand, with or without options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = ["up", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_UpByDefault, help="Run a demo: two clusters, data, Airflow and a link.")

AirflowPort = Annotated[
    int | None,
    typer.Option("--airflow-port", help="Of Airflow's UI. Default: 8080 or the next free one.", min=1, max=65535),
]
SourcePort = Annotated[
    int | None, typer.Option("--source-port", help="Of the source broker. Default: 19092 or next.", min=1, max=65535)
]
DestinationPort = Annotated[
    int | None,
    typer.Option("--destination-port", help="Of the destination broker. Default: 29092 or next.", min=1, max=65535),
]


@app.command(cls=Command, epilog=examples("demo up"))
def up(
    airflow_port: AirflowPort = None,
    source_port: SourcePort = None,
    destination_port: DestinationPort = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start the demo in the background and wait until it has caught up."""
    console = Console(stderr=output.structured, highlight=False)
    folder = DemoFolder()
    with alone(folder):
        parts = Parts(folder)
        if all(parts.running().values()):
            console.print("The demo is running already.")
        else:
            if folder.ports is not None:
                console.print("Clearing away what an earlier demo left.")
                parts.stop(lambda _: None)
                folder.clear()
            ports = choose_ports(airflow=airflow_port, source=source_port, destination=destination_port)
            bring_up(folder, ports, Steps(console))
    _show(_status(folder), output)


@app.command(cls=Command, epilog=examples("demo status"))
def status(output: OutputOption = Output.TABLE) -> None:
    """Show the demo's processes and addresses, and the replicated records. Exits with 1 if a process does not run."""
    found = _status(DemoFolder())
    _show(found, output)
    if found is None or not found.running:
        raise typer.Exit(1)


@app.command(cls=Command, epilog=examples("demo reject"))
def reject(output: OutputOption = Output.TABLE) -> None:
    """Write an invoice that the destination rejects, so that its partition waits for an operator."""
    clusters = DemoFolder().clusters
    if not clusters:
        raise SetupError("demo reject: no demo is running", hint="`strait demo` starts one")
    write_scan(clusters[SOURCE])
    if output.structured:
        output.write({"topic": "invoices", "over_bytes": MOST_INVOICE_BYTES})
        return
    echo(f"Wrote an invoice of more than {MOST_INVOICE_BYTES:,} bytes, the destination's limit, to the source.")
    echo(
        "Its partition of invoices waits within a second. Within two minutes, a run of strait_shop is red and says why."
    )


@app.command(cls=Command, epilog=examples("demo kill"))
def kill(output: OutputOption = Output.TABLE) -> None:
    """Kill the application that replicates from source to destination, to see that Airflow submits it again."""
    killed = Parts(DemoFolder()).kill_application()
    if not killed:
        raise SetupError("demo kill: no application is running", hint="`strait demo status` shows the demo")
    if output.structured:
        output.write({"pids": killed})
        return
    echo(f"Killed {plural(len(killed), 'process')}. Airflow submits the application again within seconds.")


@app.command(cls=Command, epilog=examples("demo down"))
def down(output: OutputOption = Output.TABLE) -> None:
    """Stop the demo and delete its data. The downloaded jars stay."""
    console = Console(stderr=output.structured, highlight=False)
    folder = DemoFolder()
    with alone(folder):
        with console.status("Ending the demo") as progress:
            Parts(folder).stop(lambda part: progress.update(f"Ending {part}"))
        folder.remove()
    console.print("The demo is down; nothing of it is left.")
    if output.structured:
        output.write({"running": False})


@app.command(cls=Command, epilog=examples("demo logs"))
def logs(
    part: Annotated[str | None, typer.Argument(help="Only this part.", show_default=False)] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", help="The last so many lines of each.", min=1)] = 20,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the path and the last lines of each log."""
    found = Parts(DemoFolder()).logs()
    if part is not None and part not in found:
        raise ConfigError("demo logs", [f"no part {part!r} has a log"], hint=f"there are: {', '.join(found) or 'none'}")
    chosen = found if part is None else {part: found[part]}
    if output.structured:
        output.write({"logs": {name: str(path) for name, path in chosen.items()}})
        return
    for name, path in chosen.items():
        typer.secho(f"{name}: {path}", bold=True)
        echo("\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]))


def _status(folder: DemoFolder) -> DemoStatus | None:
    return demo_status(folder)


def _show(found: DemoStatus | None, output: Output) -> None:
    if output.structured:
        output.write({"running": False} if found is None else found.as_data())
    elif found is None:
        echo("No demo is running. `strait demo` starts one.")
    else:
        show(found)
