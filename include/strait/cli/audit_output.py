"""Output of `strait audit`: its progress, and the certificate as text."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from strait import json_text
from strait.audit.progress import AuditProgress
from strait.cli.options import Output
from strait.cli.printing import echo
from strait.cli.tables import plain_table
from strait.errors import ConfigError, SetupError
from strait.text import data_size, duration, plural, printable, without_numbers

_SHOWN_DIFFERENCES = 20
_PROGRESS_SECONDS = 5.0
_QUIET_SECONDS = 60.0
"""Without news, after which that is shown."""


class Shown:
    """Prints the progress on standard error: a line that a terminal replaces, or one every few seconds if it differs. A line
    that stays as it is is shown again every minute, with the time since when it is. Each problem has a line to itself."""

    def __init__(self, output: Output, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_at = self._since = self._again_at = 0.0
        self._last = self._problem = ""
        self._terminal = sys.stderr.isatty()
        self._quiet = output.structured and not self._terminal

    def show(self, text: str, progress: AuditProgress | None) -> None:
        if progress is None:
            self.clear()
            echo(text, err=True)
            return
        if self._quiet:
            return
        self._tell_problem(progress)
        now = self._clock()
        if not self._terminal and now < self._next_at:
            return
        self._next_at = now + _PROGRESS_SECONDS
        line = _progress_line(progress)
        if line != self._last:
            self._last, self._since = line, now
        elif not self._terminal and now < self._again_at:
            return
        self._again_at = now + _QUIET_SECONDS
        quiet = now - self._since
        self._print(f"{line}  for {duration(quiet)}" if quiet >= _QUIET_SECONDS else line)

    def _tell_problem(self, progress: AuditProgress) -> None:
        """Print a problem that has appeared, in a separate line; not again for each offset."""
        told, self._problem = self._problem, without_numbers(progress.problem)
        if self._problem not in ("", told):
            self.clear()
            echo(f"audit {progress.id}: {' '.join(progress.problem.split())}", err=True)

    def _print(self, line: str) -> None:
        if not self._terminal:
            echo(line, err=True)
            return
        self.clear()
        columns = shutil.get_terminal_size().columns - 1  # a line that wraps could not be replaced
        sys.stderr.write(printable(line)[:columns])
        sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line from the terminal, for other output."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")


def _progress_line(progress: AuditProgress) -> str:
    width = 20
    filled = int(progress.share * width)
    rate, left = progress.bytes_per_second(), progress.seconds_left()
    bar = f"[{'#' * filled}{'.' * (width - filled)}] {progress.done:,}/{progress.chunks:,} chunks"
    parts = [
        f"audit {progress.id}",
        bar if progress.chunks else "",
        "" if progress.state == "comparing" else progress.state,
        "" if rate is None else f"{data_size(rate)}/s",
        "" if left is None else f"{duration(left)} left",
        plural(progress.unexplained, "difference") if progress.unexplained else "",
        f"{progress.failed:,} failed" if progress.failed else "",
    ]
    return "  ".join(filter(None, parts))


def show_certificate(directory: str, whole: Mapping[str, Any]) -> None:
    """Print the partitions, the differences and the limits of a certificate."""
    body = whole["body"]
    rows = (
        [
            f"{one['topic']}-{one['partition']}",
            one["verdict"],
            f"{one['records']:,}",
            f"{one['by_batch']:,}",
            f"{one['by_record']:,}",
            f"{one['tail']:,}",
            "; ".join(filter(None, [one["problem"], *map(_counted, one["differences_by_kind"])])),
        ]
        for one in body["partitions"]
    )
    plain_table(["partition", "verdict", ">records", ">by batch", ">by record", ">tail", "differences"], rows)
    for one in body["differences"][:_SHOWN_DIFFERENCES]:
        echo(_difference(one))
    if len(body["differences"]) > _SHOWN_DIFFERENCES:
        echo(f"and more: see {directory}")
    for one in body["topics"]:
        if one["transform"]:
            echo(f"{one['topic']}: compared with what transformation {one['transform']} makes of the source's records")
    echo(summary(whole))
    for line in body["not_covered"]:
        echo(f"not covered: {line}")
    echo(f"certificate: {directory}/certificate.json")


def summary(whole: Any) -> str:
    """Return a certificate's result in one line."""
    body = whole["body"]
    size = data_size(body["source_bytes"] + body["copy_bytes"])
    return (
        f"verdict {body['verdict']}: {plural(body['records'], 'record')}, {size} of both logs, sha256 {whole['sha256']}"
    )


def _counted(one: Mapping[str, Any]) -> str:
    return f"{one['records']:,} {one['kind']}" + (f" ({one['explained']})" if one["explained"] else "")


def _difference(one: Mapping[str, Any]) -> str:
    places = ", ".join(
        f"{side} offset {one[name]:,}"
        for side, name in (("source", "source"), ("destination", "copy"))
        if one[name] >= 0
    )
    more = f" and the {one['records'] - 1:,} after it" if one["records"] > 1 else ""
    why = f" ({one['explained']})" if one["explained"] else f" ({one['detail']})" if one["detail"] else ""
    return f"{one['topic']}-{one['partition']}: {one['kind']}: {places}{more}{why}"


def read_json(path: Path) -> Any:
    """Return the content of a JSON file. Raises ConfigError."""
    try:
        return json_text.value_of(read_bytes(path))
    except ValueError as error:
        raise ConfigError(f"certificate {path}", [f"not JSON: {error}"]) from None


def read_bytes(path: Path) -> bytes:
    """Return the content of a file. Raises ConfigError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(str(path), [f"cannot be read: {error.strerror}"]) from error


def write_certificate(path: Path, whole: Mapping[str, Any], directory: str) -> None:
    """Write a certificate to a file, whole or not at all. ``directory``: of the audit, which has it unsigned. Raises
    SetupError."""
    text = json.dumps(whole, indent=1) + "\n"
    target = path.resolve()
    try:
        if target.exists() and not target.is_file():  # a pipe or a device
            target.write_text(text, encoding="utf-8")
            return
        part = target.with_name(f".{target.name}.part")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        audit_id = whole["times"]["id"]
        hint = f"`strait audit --resume {audit_id} --out FILE` writes it elsewhere; unsigned it is {directory}/certificate.json"
        raise SetupError(f"audit {audit_id}: writing its certificate to {path}: {error.strerror}", hint=hint) from error
