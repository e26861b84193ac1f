"""Tables on a terminal."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from strait.cli.consoles import PrintableConsole
from strait.planning.history.overrun import WARN_SECONDS, duration
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.planning.status.topics import by_topic
from strait.reasons import Reason
from strait.text import printable

_STYLES = {"copying": "green", "caught_up": "green", "starting": "yellow", "waiting": "red"}
_URGENT = {0: "bold red", 1: "red", 2: "yellow"}
_NO_WIDTH = 10_000
_LAST_WIDTH = 30  # minimum width of the last column, however narrow the terminal


def plain_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, err: bool = False) -> None:
    """Print a table. Columns whose name starts with ``>`` hold numbers; the last column holds text and may wrap."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name in head[:-1]:
        is_number = name.startswith(">")
        table.add_column(
            name.removeprefix(">"), justify="right" if is_number else "left", no_wrap=is_number, overflow="fold"
        )
    table.add_column(head[-1], overflow="fold", min_width=_LAST_WIDTH)
    for row in rows:
        table.add_row(*map(printable, row))
    _console(err=err).print(table)


def _console(*, err: bool = False) -> PrintableConsole:
    """Return a console that uses a terminal's width and, into a pipe, prints each row as one line. Text such as topic
    names is not parsed as markup."""
    console = PrintableConsole(stderr=err)
    return console if console.is_terminal else PrintableConsole(stderr=err, width=_NO_WIDTH)


def print_status(status: Status, *, by_partition: bool = False, wide: bool = False) -> None:
    """Print the topics or partitions, and the slots, of one task group."""
    console = _console()
    stopped = ", stopped" if status.stopped else ""
    limits = f", {status.limits}" if status.limits else ""
    console.print(f"link {status.link}, group {status.group}, plan {status.plan_version}{stopped}{limits}")
    console.print(_partitions(status, wide) if by_partition or wide else _topics(status))
    console.print(_slots(status))
    if status.heartbeat is not None:
        console.print(_heartbeat(status.heartbeat))


def print_left_out(rows: Sequence[PartitionStatus]) -> None:
    """Print the topics that are not to be copied, and the reasons."""
    for row in rows:
        _console().print(f"left out  {row.topic}: {row.reason}: {row.detail}")


def print_reasons(rows: Iterable[PartitionStatus]) -> None:
    """Print the meaning and remedy of each reason code."""
    for reason in sorted({row.reason for row in rows if row.reason in set(Reason)}):
        _console().print(f"{reason}: {Reason(reason).meaning} {Reason(reason).remedy}")


def _topics(status: Status) -> Table:
    found = by_topic(status.partitions)
    losing = any(_near(item.seconds_to_loss) for item in found)
    table = _progress_table(["topic", "partitions", "state"], ["lag", "lag s", *["loss in"] * losing])
    for item in found:
        states = ", ".join(f"{count} {state}" for state, count in item.states)
        table.add_row(
            item.topic,
            str(item.partitions or "all"),
            item.states[0][0] if len(item.states) == 1 else states,
            _count(item.lag_records),
            _seconds(item.lag_seconds),
            *[_loss(item.seconds_to_loss)] * losing,
            "; ".join(item.reasons),
            style=_URGENT.get(item.urgency, "green"),
        )
    return table


def _partitions(status: Status, wide: bool) -> Table:
    losing = any(_near(row.seconds_to_loss) for row in status.partitions)
    where = ["topic", "partition", *["destination"] * wide, "slot", "state"]
    table = _progress_table(where, ["position", "end", *["written"] * wide, "lag", "lag s", *["loss in"] * losing])
    for row in status.partitions:
        table.add_row(
            row.topic,
            "all" if row.partition is None else str(row.partition),
            *[row.destination or "-"] * wide,
            "-" if row.slot is None else str(row.slot),
            row.state,
            _count(row.position),
            _count(row.end),
            *[_count(row.written)] * wide,
            _count(row.lag_records),
            _seconds(row.lag_seconds),
            *[_loss(row.seconds_to_loss)] * losing,
            f"{row.reason}: {row.detail}" if row.reason else row.detail,
            style=_STYLES.get(row.state),
        )
    return table


def _progress_table(names: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name in names:
        table.add_column(name, no_wrap=True, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold", min_width=_LAST_WIDTH)
    return table


def _near(seconds_to_loss: float | None) -> bool:
    return seconds_to_loss is not None and seconds_to_loss < WARN_SECONDS


def _loss(seconds_to_loss: float | None) -> str:
    return duration(seconds_to_loss) if seconds_to_loss is not None and _near(seconds_to_loss) else "-"


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


def _heartbeat(slot: SlotStatus) -> str:
    if slot.heartbeat_age_ms is None:
        text = "heartbeat: none has arrived yet"
    else:
        took = _milliseconds(slot.heartbeat_latency_ms)
        text = f"heartbeat: the newest that has arrived is {slot.heartbeat_age_ms / 1000:.1f} s old and took {took} ms"
    return f"{text}; {slot.heartbeat_trouble}" if slot.heartbeat_trouble else text


def _seconds(value: float) -> str:
    return "-" if value < 0 else f"{value:.1f}"


def _count(number: int) -> str:
    return "-" if number < 0 else f"{number:,}"


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
