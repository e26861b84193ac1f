"""Results as tables: for a terminal and for benchmarks/results.md."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from mm2 import live_relay, mm2, strait_runner
from mm2.results import NO_COPIER, Bound, DrainResult, Results
from strait.config import home

_NAMES = {
    mm2.NAME: "MirrorMaker 2",
    strait_runner.NAME: "Strait",
    NO_COPIER: "no copier",
    live_relay.NAME: "bare relay",
}
_HEADER = """# Results

Appended by `make bench` and by nobody else. README.md says how to read them.
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, the heads of the columns, and rows of text; the first column is a name, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def tables(results: Results) -> list[Table]:
    """What there is to show; a table without rows is left out."""
    made = [_drains(results), _ratios(results), _costs(results), _latencies(results), _relay(results), _bounds(results)]
    return [table for table in made if table.rows]


def show(results: Results, console: Console) -> None:
    """Print it."""
    for table in tables(results):
        shown = RichTable(title=table.title, title_justify="left")
        for number, column in enumerate(table.columns):
            shown.add_column(column, justify="right" if number else "left")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)


def results_file() -> Path:
    """Where runs are recorded."""
    return home.project_root() / "benchmarks" / "results.md"


def record(results: Results, file: Path) -> None:
    """Append the run."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(_HEADER, encoding="utf-8")
    with file.open("a", encoding="utf-8") as output:
        output.write(markdown(results))


def markdown(results: Results) -> str:
    """The run as a section of results.md."""
    machine = results.machine
    lines = [
        "",
        f"## {results.date} · {results.commit or 'no commit'}",
        "",
        f"{machine.cpu}, {machine.cores} cores, {machine.memory_gib} GiB, Linux {machine.kernel}, "
        f"load average before {machine.load_average}.",
        "Versions: " + _listing(results.versions.items()) + ".",
        "Parameters: " + _listing(results.parameters.items()) + ".",
    ]
    for table in tables(results):
        lines += ["", f"**{table.title}**", "", _line(table.columns)]
        lines.append(_line(("---", *("--:" for _ in table.columns[1:]))))
        lines += map(_line, table.rows)
    return "\n".join(lines) + "\n"


def _drains(results: Results) -> Table:
    columns = ("copier", "records/s", "later half", "with start", "MB/s", "first record", "others' CPU", "content")
    rows = [
        (
            _label(drain),
            f"{drain.figures.records_per_second:,.0f}",
            f"{drain.figures.records_per_second_later_half:,.0f}",
            f"{drain.figures.records_per_second_whole:,.0f}",
            f"{drain.figures.bytes_per_second / 1e6:,.1f}",
            f"{drain.figures.seconds_to_first_record:.1f} s",
            f"{drain.figures.other_cpu_share:.0%}",
            drain.content,
        )
        for drain in results.drains
    ]
    return Table("Draining a full topic: speed", columns, rows)


def _costs(results: Results) -> Table:
    columns = (
        "copier",
        "CPU-s/GB",
        "later half",
        "of its slots",
        "CPU-s",
        "whole",
        "brokers' CPU-s",
        "memory",
        "slot",
        "batches",
    )
    rows = [
        (
            _label(drain),
            f"{drain.figures.cpu_seconds_per_gb:.2f}",
            f"{drain.figures.cpu_seconds_per_gb_later_half:.2f}",
            f"{drain.figures.slot_cpu_seconds_per_gb:.2f}",
            f"{drain.figures.cpu_seconds:.2f}",
            f"{drain.figures.cpu_seconds_whole:.2f}",
            f"{drain.figures.broker_cpu_seconds:.2f}",
            f"{drain.tree_peak_pss_bytes / 1e6:,.0f} MB",
            "–" if drain.slot_peak_pss_bytes is None else f"{drain.slot_peak_pss_bytes / 1e6:,.0f} MB",
            f"{drain.source_batch_bytes / 1024:.1f} → {drain.destination_batch_bytes / 1024:.1f} KiB",
        )
        for drain in results.drains
    ]
    return Table("Draining a full topic: cost", columns, rows)


def _ratios(results: Results) -> Table:
    rows = []
    for ours in results.drains:
        theirs = results.drain(ours.workload, mm2.NAME)
        if ours.copier == mm2.NAME or theirs is None:
            continue
        mine, other = ours.figures, theirs.figures
        rows.append(
            (
                ours.workload,
                f"{mine.records_per_second / other.records_per_second:.1f}×",
                _range(ours, theirs),
                f"{_quotient(mine.records_per_second_later_half, other.records_per_second_later_half)}×",
                f"{mine.records_per_second_whole / other.records_per_second_whole:.1f}×",
                f"1/{_quotient(other.cpu_seconds_per_gb, mine.cpu_seconds_per_gb)}",
                f"1/{_quotient(theirs.tree_peak_pss_bytes, ours.tree_peak_pss_bytes)}",
            )
        )
    columns = ("workload", "rate", "in each round", "later half", "with start", "CPU", "memory")
    return Table("Strait against MirrorMaker 2", columns, rows)


def _range(ours: DrainResult, theirs: DrainResult) -> str:
    """The ratio of the rates, round by round."""
    pairs = zip(ours.rounds, theirs.rounds, strict=True)
    return ", ".join(f"{one.figures.records_per_second / other.figures.records_per_second:.1f}" for one, other in pairs)


def _latencies(results: Results) -> Table:
    rows = [
        (
            f"{result.workload}: {_NAMES[result.copier]}",
            *(
                f"{value:.2f} ms"
                for value in (
                    result.figures.p50_ms,
                    result.figures.p90_ms,
                    result.figures.p99_ms,
                    result.figures.p999_ms,
                    result.figures.max_ms,
                )
            ),
            "–" if result.cpu_cores is None else f"{result.cpu_cores:.1%}",
        )
        for result in results.latencies
    ]
    return Table("From produce to consume", ("copier", "p50", "p90", "p99", "p99.9", "max", "of a core"), rows)


def _relay(results: Results) -> Table:
    limits = [("one bare relay", results.relay)]
    limits += [(f"{_label(drain)}: as many bare relays as slots", drain.relays) for drain in results.drains]
    rows = [
        (name, f"{relay.cpu_seconds_per_gb:.3f}", f"{relay.bytes / relay.seconds / 1e6:,.0f}")
        for name, relay in limits
        if relay is not None
    ]
    return Table("The limit: only moving bytes" if rows else "", ("limit", "CPU-s/GB", "MB/s"), rows)


def _bounds(results: Results) -> Table:
    rows = [
        (bound.name, bound.limit, "–" if bound.measured is None else f"{bound.measured:.2f}", _verdict(bound))
        for bound in results.bounds
    ]
    return Table("Bounds", ("bound", "limit", "measured", "result"), rows)


def _verdict(bound: Bound) -> str:
    if bound.measured is None:
        return "not measured"
    return {True: "ok", False: "missed", None: "only shown"}[bound.met]


def _label(drain: DrainResult) -> str:
    return f"{drain.workload}: {_NAMES[drain.copier]}"


def _quotient(one: float, other: float) -> str:
    return f"{one / other:.1f}" if other else "?"


def _listing(items: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{key} {' '.join(value) if isinstance(value, list) else value}" for key, value in items)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
