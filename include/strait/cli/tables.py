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
_LAST_WIDTH = 30  # minimum width of the last column
_FIRST_FIGURE = 5  # column of the slots' table with which the numbers start
_NARROW = 100  # columns of a terminal below which the last column is printed below the table


class _Grid:
    """A table whose last column holds text, which is printed below the table if the terminal is narrow.

    Args:
        head: names of the columns; those that start with ``>`` hold numbers.
        folds: cells of the other columns may wrap.
    """

    def __init__(self, head: Sequence[str], *, folds: bool = False) -> None:
        self._head = head
        self._folds = folds
        self._rows: list[tuple[list[str], str | None]] = []

    def add(self, cells: Sequence[str], style: str | None = None) -> None:
        self._rows.append((list(cells), style))

    def print(self, console: PrintableConsole) -> None:
        narrow = console.is_terminal and console.width < _NARROW
        table = Table(box=None, pad_edge=False, show_edge=False)
        for name in self._head[:-1]:
            number = name.startswith(">")
            no_wrap, side = number or not self._folds, "right" if number else "left"
            table.add_column(name.removeprefix(">"), justify=side, no_wrap=no_wrap, overflow="fold")  # type: ignore[arg-type]
        if not narrow:
            table.add_column(self._head[-1].removeprefix(">"), overflow="fold", min_width=_LAST_WIDTH)
        for cells, style in self._rows:
            table.add_row(*(cells[:-1] if narrow else cells), style=style)
        console.print(table)
        for cells, style in self._rows if narrow else ():
            if cells[-1]:
                console.print(f"{cells[0]}: {self._head[-1].removeprefix('>')}: {cells[-1]}", style=style)


def plain_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, err: bool = False) -> None:
    """Print a table. Columns whose name starts with ``>`` hold numbers; the last column holds text and may wrap."""
    grid = _Grid(head, folds=True)
    for row in rows:
        grid.add([printable(cell) for cell in row])
    grid.print(_console(err=err))


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
    (_partitions(status, wide) if by_partition or wide else _topics(status)).print(console)
    console.print(_slots(status, short=console.is_terminal and console.width < _NARROW))
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


def _topics(status: Status) -> _Grid:
    found = by_topic(status.partitions)
    losing = any(_near(item.seconds_to_loss) for item in found)
    grid = _Grid(["topic", "partitions", "state", ">lag", ">lag s", *[">loss in"] * losing, "why"])
    for item in found:
        states = ", ".join(f"{count} {state}" for state, count in item.states)
        cells = [
            item.topic,
            str(item.partitions or "all"),
            item.states[0][0] if len(item.states) == 1 else states,
            _count(item.lag_records),
            _seconds(item.lag_seconds),
            *[_loss(item.seconds_to_loss)] * losing,
            "; ".join(item.reasons),
        ]
        grid.add(cells, _URGENT.get(item.urgency, "green"))
    return grid


def _partitions(status: Status, wide: bool) -> _Grid:
    losing = any(_near(row.seconds_to_loss) for row in status.partitions)
    where = ["topic", "partition", *["destination"] * wide, "slot", "state"]
    numbers = [">position", ">end", *[">written"] * wide, ">lag", ">lag s", *[">loss in"] * losing]
    grid = _Grid([*where, *numbers, "why"])
    for row in status.partitions:
        cells = [
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
        ]
        grid.add(cells, _STYLES.get(row.state))
    return grid


def _near(seconds_to_loss: float | None) -> bool:
    return seconds_to_loss is not None and seconds_to_loss < WARN_SECONDS


def _loss(seconds_to_loss: float | None) -> str:
    return duration(seconds_to_loss) if seconds_to_loss is not None and _near(seconds_to_loss) else "-"


def _slots(status: Status, *, short: bool) -> Table:
    """Return the slots. ``short``: without host, process and memory, for a narrow terminal."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    names = ("slot", "heard", "host", "pid", "plan", "records/s", "MB/s", "p50 ms", "p99 ms", "memory MB")
    shown = [number for number, name in enumerate(names) if not (short and name in ("host", "pid", "memory MB"))]
    for number in shown:
        table.add_column(names[number], justify="left" if number < _FIRST_FIGURE else "right", no_wrap=True)
    for slot in status.slots:
        cells = _slot_cells(slot)
        table.add_row(*(cells[number] for number in shown), style="red" if slot.silent else None)
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
