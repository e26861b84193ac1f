"""The demo's status as text: copied records, addresses, and commands to try."""

import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from strait.demo.folder import LINK, LINKS
from strait.demo.status import DemoStatus
from strait.embedded.airflow import USER


def show(status: DemoStatus) -> None:
    """Print the status to standard output."""
    console = Console(highlight=False)
    if status.topics:
        links = ", ".join(f"{link}: {source} to {destination}" for link, (source, destination) in LINKS.items())
        console.print(f"Links {links}", soft_wrap=True)  # as a title of the table it would end with blanks
        console.print(_table(status))
    missing = [part for part, runs in status.parts.items() if not runs]
    if missing:
        console.print(f"[red]Not running: {', '.join(missing)}.[/red] `{_program()} demo logs` shows why.")
    for problem in status.airflow_problems:
        console.print(
            f"[red]Airflow's {problem}.[/red] Run `{_program()} demo up` again after `{_program()} demo down`."
        )
    # A command or an address that is broken into lines cannot be copied from the terminal.
    console.print(_addresses(status), soft_wrap=True)
    if not missing:
        console.print(_ideas(status), soft_wrap=True)


def _typed(path: str) -> str:
    """Return a path as typed in the current directory."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _program() -> str:
    """Return `strait` as typed here: `make demo` runs it from an environment that is not active."""
    return "strait" if shutil.which("strait") else _typed(str(Path(sys.executable).with_name("strait")))


def _table(status: DemoStatus) -> Table:
    table = Table()
    table.add_column("link")
    table.add_column("topic")
    for name in ("parts", "copied", "lag", "p50", "p99", "waiting"):
        table.add_column(name, justify="right")
    for topic in status.topics:
        table.add_row(
            topic.link,
            topic.topic,
            str(topic.partitions),
            f"{topic.copied_records:,}",
            f"{topic.lag_records:,}",
            _milliseconds(topic.latency_ms_p50),
            _milliseconds(topic.latency_ms_p99),
            str(sum(topic.waiting.values()) or ""),
        )
    return table


def _milliseconds(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f} ms"


def _addresses(status: DemoStatus) -> str:
    ports = " and ".join(map(str, status.log_ports))
    waiting = [
        f"{topic.link} {topic.topic}: {count} {reason}"
        for topic in status.topics
        for reason, count in topic.waiting.items()
    ]
    rows = {
        **({"Waiting": ", ".join(waiting)} if waiting else {}),
        "Page": f"{status.page_url}   user {USER}   password {status.airflow_password}",
        "Airflow": status.airflow_url,
        "Logs": f"ports {ports}, on all addresses: Airflow's log servers, for requests that it has signed; all else is local",
        "Groups": _groups(status),
        "Clusters": "   ".join(f"{name} {address}" for name, address in status.clusters.items()),
        "Memory": f"{status.memory_pss_bytes / 2**30:.1f} GiB in all",
    }
    return "\n".join(f"[bold]{name:<8}[/bold]  {text}" for name, text in rows.items())


def _groups(status: DemoStatus) -> str:
    told = (f"link {one.link}: {one.in_sync} of {one.groups} in sync" for one in status.consumer_groups if one.groups)
    return "   ".join(told) or "none in sync yet"


def _ideas(status: DemoStatus) -> str:
    strait = _program()
    ideas = (
        (f"{status.page_url}", "what both links do, what waits and why, consumer groups"),
        (f"in Airflow, Admin, Variables: edit strait_topics_{LINK}", "what is copied changes within seconds"),
        (f"{strait} demo reject", "an invoice is too large: its partition waits, and a run of strait_shop is red"),
        (
            'then add "on_refused": "quarantine" to the rule of invoices in that Variable',
            "the invoice is put aside, its partition continues, and a run is green",
        ),
        (
            " ".join((strait, "groups", LINK, "-f", _typed(status.links_file))),
            "where the group billing would continue on the destination",
        ),
        (f"{strait} demo kill", "Airflow submits the application again; why it ended is in the task's log"),
        (f"{strait} demo status", "the table again"),
        (f"{strait} demo logs", "what each part says"),
        (f"{strait} demo down", "ends all of it and leaves nothing"),
    )
    return "\n".join(["[bold]Try[/bold]", *(f"  {what}\n      [dim]{effect}[/dim]" for what, effect in ideas)])
