"""The demo's status for people: what was copied, where to look and what to try."""

from rich.console import Console
from rich.table import Table

from strait.demo.folder import LINK
from strait.demo.status import DemoStatus
from strait.embedded.airflow import USER


def show(status: DemoStatus) -> None:
    """Print it to standard output."""
    console = Console(highlight=False)
    if status.topics:
        console.print(_table(status))
    missing = [part for part, runs in status.parts.items() if not runs]
    if missing:
        console.print(f"[red]Not running: {', '.join(missing)}.[/red] `strait demo logs` shows why.")
    console.print(_addresses(status))
    if not missing:
        console.print(_ideas(status), soft_wrap=True)  # a command that is broken into lines cannot be copied


def _table(status: DemoStatus) -> Table:
    table = Table(title=f"Link {LINK}: source to destination", title_justify="left")
    table.add_column("topic")
    for name in ("partitions", "records copied", "lag", "latency p50", "latency p99"):
        table.add_column(name, justify="right")
    for topic in status.topics:
        table.add_row(
            topic.topic,
            str(topic.partitions),
            f"{topic.copied_records:,}",
            f"{topic.lag_records:,}",
            _milliseconds(topic.latency_ms_p50),
            _milliseconds(topic.latency_ms_p99),
        )
    return table


def _milliseconds(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f} ms"


def _addresses(status: DemoStatus) -> Table:
    grid = Table.grid(padding=(0, 2))
    rows = {
        "Airflow": f"{status.airflow_url}   user {USER}   password {status.airflow_password}",
        "Clusters": "   ".join(f"{name} {address}" for name, address in status.clusters.items()),
        "Memory": f"{status.memory_pss_bytes / 2**30:.1f} GiB in all",
    }
    for name, text in rows.items():
        grid.add_row(f"[bold]{name}[/bold]", text)
    return grid


def _ideas(status: DemoStatus) -> str:
    kill = " ".join(map(str, status.application_pids))
    ideas = (
        (f"in Airflow, Admin, Variables: edit strait_topics_{LINK}", "what is copied changes within seconds"),
        (f"kill -9 {kill}", "Airflow submits the application again; why it ended is in the task's log"),
        ("strait demo status", "the table again"),
        ("strait demo logs", "what each part says"),
        ("strait demo down", "ends all of it and leaves nothing"),
    )
    return "\n".join(["[bold]Try[/bold]", *(f"  {what}\n      [dim]{effect}[/dim]" for what, effect in ideas)])
