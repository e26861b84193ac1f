"""Tables on a terminal."""

from collections.abc import Collection, Iterable, Sequence

from rich.cells import cell_len
from rich.table import Table

from strait.cli.consoles import PrintableConsole
from strait.planning.history.overrun import WARN_SECONDS
from strait.planning.status.figures import UNKNOWN, at_least, count, lasting, megabytes, per_second
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.planning.status.topics import by_topic
from strait.planning.status.words import SIGNS, Badge, Level, of_partition, of_slot
from strait.reasons import Reason
from strait.text import duration, printable

_STYLES = {Level.GOOD: "green", Level.QUIET: "dim", Level.PASSING: "yellow", Level.PERSON: "bold red"}
_NO_WIDTH = 10_000
_GAP = 2  # between columns
_LAST_WIDTH = 30  # minimum width of the last column
_FOLDED_WIDTH = 20  # minimum width of another column whose cells wrap
_OF_SLOTS = ("heard", "plan", "records/s", "MB/s", "p50 ms", "p99 ms")
_OF_ROWS = ("state", "lag", "lag time", "loss in")
_NARROW = 100  # columns of a terminal below which the last column is printed below the table


class _Grid:
    """A table whose last column holds text, which is printed below the table if the terminal is narrow, as are other columns
    that do not fit.

    Args:
        head: names of the columns; those that start with ``>`` hold numbers.
        folds: cells of the other columns may wrap. Those of the first column always may.
        key: number of leading columns that name a row.
        kind: of the rows, put before their names below the table.
        keep: names of the columns that stay in the table if not all fit, after the first one.
        text: the last column holds text.
    """

    def __init__(
        self,
        head: Sequence[str],
        *,
        folds: bool = False,
        key: int = 1,
        kind: str = "",
        keep: Collection[str] = (),
        text: bool = True,
    ) -> None:
        self._names = [name.removeprefix(">") for name in head]
        self._numbers = [name.startswith(">") for name in head]
        self._folds = [not number and (folds or not column) for column, number in enumerate(self._numbers)]
        self._columns = len(head) - text
        self._key = key
        self._kind = kind
        self._keep = keep
        self._rows: list[tuple[list[str], str | None]] = []

    def add(self, cells: Sequence[str], style: str | None = None) -> None:
        self._rows.append((list(cells), style))

    def print(self, console: PrintableConsole) -> None:
        texts = range(self._columns, len(self._names))
        below = texts if console.is_terminal and console.width < _NARROW else range(0)
        beside = [] if below else [*texts]
        inside = self._fitting(console.width - len(beside) * (_GAP + _LAST_WIDTH))
        table = Table(box=None, pad_edge=False, show_edge=False)
        for column in inside:
            side = "right" if self._numbers[column] else "left"
            table.add_column(self._names[column], justify=side, no_wrap=not self._folds[column], overflow="fold")  # type: ignore[arg-type]
        for column in beside:
            table.add_column(self._names[column], overflow="fold", min_width=_LAST_WIDTH)
        for cells, style in self._rows:
            table.add_row(*(cells[column] for column in [*inside, *beside]), style=style)
        console.print(table)
        outside = [column for column in range(self._columns) if column not in inside]
        for cells, style in self._rows:
            row = self._kind + " ".join(cells[: self._key])
            if outside:
                console.print(f"{row}: {', '.join(f'{self._names[one]} {cells[one]}' for one in outside)}", style=style)
            for column in below:
                if cells[column]:
                    console.print(f"{row}: {self._names[column]}: {cells[column]}", style=style)

    def _fitting(self, width: int) -> Sequence[int]:
        """Return the columns without text that fit into the table, in order."""
        chosen = [0]
        left = width - self._width(0)
        for column in sorted(range(1, self._columns), key=lambda one: self._names[one] not in self._keep):
            if (wants := _GAP + self._width(column)) <= left:
                chosen.append(column)
                left -= wants
        return sorted(chosen)

    def _width(self, column: int) -> int:
        """Return the smallest width of a column."""
        widest = max(cell_len(text) for text in (self._names[column], *(cells[column] for cells, _ in self._rows)))
        return min(widest, _FOLDED_WIDTH) if self._folds[column] else widest


def plain_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    err: bool = False,
    levels: Sequence[Level] | None = None,
    key: int = 1,
    keep: Collection[str] = (),
) -> None:
    """Print a table. Columns whose name starts with ``>`` hold numbers; the last column holds text and may wrap.

    Args:
        levels: of the rows, which are colored by them.
        key, keep: number of leading columns that name a row, and names of the columns that stay in the table, if a
            terminal is too narrow for all of them.
    """
    grid = _Grid(head, folds=True, key=key, keep=keep)
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
    _slots(status).print(console)
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
    grid = _Grid(["topic", "partitions", "state", ">lag", ">lag time", *[">loss in"] * losing, "why"], keep=_OF_ROWS)
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
    grid = _Grid([*where, *numbers, "why"], key=2, keep=("partition", *_OF_ROWS))
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


def _slots(status: Status) -> _Grid:
    figures = [">records/s", ">MB/s", ">p50 ms", ">p99 ms"]
    grid = _Grid(
        ["slot", "heard", "host", "pid", "plan", *figures, ">memory MB"], kind="slot ", keep=_OF_SLOTS, text=False
    )
    for slot in status.slots:
        level = of_slot(slot, stopped=status.stopped).level
        grid.add(_slot_cells(slot), _STYLES[level] if slot.silent else None)
    return grid


def _slot_cells(slot: SlotStatus) -> list[str]:
    if slot.age_ms is None:
        return [str(slot.slot), "never", *[UNKNOWN] * 8]
    speed = [
        per_second(slot.records_per_second),
        megabytes(slot.bytes_per_second),
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
