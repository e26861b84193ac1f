"""`strait status` as tables on a terminal."""

from rich.console import Console
from rich.table import Table

from strait.planning.status import PartitionStatus, SlotStatus, Status
from strait.reasons import Reason

_STYLES = {"copying": "green", "caught_up": "green", "starting": "yellow", "waiting": "red"}


def print_status(status: Status) -> None:
    """Partitions, slots, and what each reason means."""
    console = Console(highlight=False)
    if status.plan_version == 0:
        console.print(f"link {status.link}: {Reason.PLAN_MISSING}: {Reason.PLAN_MISSING.meaning}")
        console.print(Reason.PLAN_MISSING.remedy)
        return
    stopped = ", stopped" if status.stopped else ""
    console.print(f"link {status.link}, group {status.group}, plan {status.plan_version}{stopped}")
    console.print(_partitions(status))
    console.print(_slots(status))
    for reason in sorted({row.reason for row in status.waiting if row.reason in set(Reason)}):
        console.print(f"{reason}: {Reason(reason).meaning} {Reason(reason).remedy}")


def _partitions(status: Status) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name in ("topic", "partition", "slot", "state"):
        table.add_column(name, no_wrap=True, overflow="fold")
    for name in ("position", "end", "lag", "lag s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for row in status.partitions:
        table.add_row(*_cells(row), style=_STYLES.get(row.state))
    return table


def _cells(row: PartitionStatus) -> list[str]:
    why = f"{row.reason}: {row.detail}" if row.reason else row.detail
    return [
        row.topic,
        "all" if row.partition is None else str(row.partition),
        "-" if row.slot is None else str(row.slot),
        row.state,
        _count(row.position),
        _count(row.end),
        _count(row.lag_records),
        "-" if row.lag_seconds < 0 else f"{row.lag_seconds:.1f}",
        why,
    ]


def _slots(status: Status) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name in ("slot", "heard", "host", "pid", "plan"):
        table.add_column(name, no_wrap=True)
    for name in ("records/s", "MB/s", "p50 ms", "p99 ms", "memory MB"):
        table.add_column(name, justify="right", no_wrap=True)
    for slot in status.slots:
        table.add_row(*_slot_cells(slot), style="red" if slot.silent else None)
    return table


def _slot_cells(slot: SlotStatus) -> list[str]:
    if slot.age_ms is None:
        return [str(slot.slot), "never", *["-"] * 8]
    return [
        str(slot.slot),
        f"{slot.age_ms / 1000:.1f} s ago",
        slot.host,
        str(slot.pid),
        str(slot.plan_version),
        f"{slot.records_per_second:,.0f}",
        f"{slot.bytes_per_second / 1e6:,.1f}",
        _milliseconds(slot.latency_ms_p50),
        _milliseconds(slot.latency_ms_p99),
        f"{slot.memory_bytes / 1e6:,.0f}",
    ]


def _count(number: int) -> str:
    return "-" if number < 0 else f"{number:,}"


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
