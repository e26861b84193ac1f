"""Tables on a terminal."""

from collections.abc import Collection, Iterable, Sequence

from rich.table import Table

from strait.cli.consoles import PrintableConsole
from strait.planning.history.overrun import WARN_SECONDS
from strait.planning.status.figures import UNKNOWN, at_least, count, lasting
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.planning.status.topics import by_topic
from strait.planning.status.words import SIGNS, Badge, Level, of_partition, of_slot
from strait.reasons import Reason
from strait.text import duration, printable

_STYLES = {Level.GOOD: "green", Level.QUIET: "dim", Level.PASSING: "yellow", Level.PERSON: "bold red"}
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


def plain_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, err: bool = False, levels: Sequence[Level] | None = None
) -> None:
    """Print a table. Columns whose name starts with ``>`` hold numbers; the last column holds text and may wrap.

    Args:
        levels: of the rows, which are colored by them.
    """
    grid = _Grid(head, folds=True)
    for number, row in enumerate(rows):
        grid.add([printable(cell) for cell in row], None if levels is None else _STYLES[levels[number]])
    grid.print(_console(err=err))


def _console(*, err: bool = False) -> PrintableConsole:
    """Return a console that uses a terminal's width and, into a pipe, prints each row as one line. Text such as topic
    names is not parsed as markup."""
    console = PrintableConsole(stderr=err)
    return console if console.is_terminal else PrintableConsole(stderr=err, width=_NO_WIDTH)


def shown(badge: Badge) -> str:
    """Return a state as text, with a sign if an operator is needed."""
    return f"{SIGNS[badge.level]} {badge.word}" if badge.level is Level.PERSON else badge.word


def print_status(status: Status, *, by_partition: bool = False, wide: bool = False, late: Collection[str] = ()) -> None:
    """Print the topics or partitions, and the slots, of one task group.

    Args:
        late: topics that need an operator for any reason.
    """
    console = _console()
    stopped = ", stopped" if status.stopped else ""
    limits = f", {status.limits}" if status.limits else ""
    console.print(f"link {status.link}, group {status.group}, plan {status.plan_version}{stopped}{limits}")
    (_partitions(status, wide, late) if by_partition or wide else _topics(status, late)).print(console)
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


def _topics(status: Status, late: Collection[str]) -> _Grid:
    found = by_topic(status.partitions, late)
    losing = any(_near(item.seconds_to_loss) for item in found)
    grid = _Grid(["topic", "partitions", "state", ">lag", ">lag time", *[">loss in"] * losing, "why"])
    for item in found:
        states = ", ".join(f"{number} {shown(badge)}" for badge, number in item.badges)
        cells = [
            item.topic,
            str(item.partitions or "all"),
            shown(item.badge) if len(item.badges) == 1 else states,
            at_least(item.lag_records if item.lag_records >= 0 else None, item.lag_unknown),
            lasting(item.lag_seconds),
            *[_loss(item.seconds_to_loss)] * losing,
            "; ".join(item.reasons),
        ]
        grid.add(cells, _STYLES[item.badge.level])
    return grid


def _partitions(status: Status, wide: bool, late: Collection[str]) -> _Grid:
    losing = any(_near(row.seconds_to_loss) for row in status.partitions)
    where = ["topic", "partition", *["destination"] * wide, "slot", "state"]
    numbers = [">position", ">end", *[">written"] * wide, ">lag", ">lag time", *[">loss in"] * losing]
    grid = _Grid([*where, *numbers, "why"])
    for row in status.partitions:
        badge = of_partition(row, late)
        cells = [
            row.topic,
            "all" if row.partition is None else str(row.partition),
            *[row.destination or "-"] * wide,
            "-" if row.slot is None else str(row.slot),
            shown(badge),
            count(row.position),
            count(row.end),
            *[count(row.written)] * wide,
            count(row.lag_records),
            lasting(row.lag_seconds),
            *[_loss(row.seconds_to_loss)] * losing,
            f"{row.reason}: {row.detail}" if row.reason else row.detail,
        ]
        grid.add(cells, _STYLES[badge.level])
    return grid


def _near(seconds_to_loss: float | None) -> bool:
    return seconds_to_loss is not None and seconds_to_loss < WARN_SECONDS


def _loss(seconds_to_loss: float | None) -> str:
    return duration(seconds_to_loss) if seconds_to_loss is not None and _near(seconds_to_loss) else "-"


def _slots(status: Status, *, short: bool) -> Table:
    """Return the slots. ``short``: without host, process and memory, for a narrow terminal."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    names = ("slot", "heard", "host", "pid", "plan", "records/s", "MB/s", "p50 ms", "p99 ms", "memory MB")
    columns = [number for number, name in enumerate(names) if not (short and name in ("host", "pid", "memory MB"))]
    for number in columns:
        table.add_column(names[number], justify="left" if number < _FIRST_FIGURE else "right", no_wrap=True)
    for slot in status.slots:
        cells, level = _slot_cells(slot), of_slot(slot, stopped=status.stopped).level
        table.add_row(*(cells[number] for number in columns), style=_STYLES[level] if slot.silent else None)
    return table


def _slot_cells(slot: SlotStatus) -> list[str]:
    if slot.age_ms is None:
        return [str(slot.slot), "never", *[UNKNOWN] * 8]
    speed = [
        f"{slot.records_per_second:,.0f}",
        f"{slot.bytes_per_second / 1e6:,.1f}",
        _milliseconds(slot.latency_ms_p50),
        _milliseconds(slot.latency_ms_p99),
    ]
    return [
        str(slot.slot),
        f"{lasting(slot.age_ms / 1000)} ago",
        slot.host,
        str(slot.pid),
        str(slot.plan_version),
        *([UNKNOWN] * len(speed) if slot.silent else speed),
        f"{slot.memory_bytes / 1e6:,.0f}",
    ]


def _heartbeat(slot: SlotStatus) -> str:
    if slot.heartbeat_age_ms is None:
        text = "heartbeat: none has arrived yet"
    else:
        took = _milliseconds(slot.heartbeat_latency_ms)
        text = (
            f"heartbeat: the newest that has arrived is {lasting(slot.heartbeat_age_ms / 1000)} old and took {took} ms"
        )
    return f"{text}; {slot.heartbeat_trouble}" if slot.heartbeat_trouble else text


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"
