"""Output of `strait audit`: its progress, and the certificate as text."""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strait import json_text
from strait.audit.progress import AuditProgress
from strait.cli.options import Output
from strait.cli.printing import echo
from strait.cli.tables import plain_table
from strait.errors import ConfigError, SetupError
from strait.text import plural

_SHOWN_DIFFERENCES = 20
_PROGRESS_SECONDS = 5.0


class Shown:
    """Prints the progress on standard error: a line that a terminal replaces, or one every few seconds if it differs."""

    def __init__(self, output: Output) -> None:
        self._shown_at = 0.0
        self._last = ""
        self._terminal = sys.stderr.isatty()
        self._quiet = output.structured and not self._terminal

    def show(self, text: str, progress: AuditProgress | None) -> None:
        if progress is None and text == "audit":
            return
        if progress is None:
            echo(text, err=True)
            return
        now = time.monotonic()
        if self._quiet or (not self._terminal and now < self._shown_at):
            return
        self._shown_at = now + _PROGRESS_SECONDS
        line = _progress_line(progress)
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        elif line != self._last:
            echo(line, err=True)
        self._last = line


def _progress_line(progress: AuditProgress) -> str:
    width = 20
    filled = round(progress.share * width)
    state = "starting" if progress.state == "stopped" else progress.state  # of the run before it was resumed
    rate, left = progress.bytes_per_second(), progress.seconds_left()
    parts = [
        f"audit {progress.id}",
        f"[{'#' * filled}{'.' * (width - filled)}] {progress.done:,}/{progress.chunks:,} chunks",
        "" if rate is None else f"{rate / 1e6:,.0f} MB/s",
        "" if left is None else f"{left:,.0f} s left",
        plural(progress.unexplained, "difference") if progress.unexplained else "",
        f"{progress.failed:,} failed" if progress.failed else "",
    ]
    return "  ".join(part for part in parts if part) if progress.chunks else f"audit {progress.id}  {state}"


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
    size = (body["source_bytes"] + body["copy_bytes"]) / 1e9
    return f"verdict {body['verdict']}: {plural(body['records'], 'record')}, {size:,.2f} GB of both logs, sha256 {whole['sha256']}"


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


def write_certificate(path: Path, whole: Mapping[str, Any]) -> None:
    """Write a certificate to a file. Raises SetupError."""
    try:
        path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SetupError(f"audit: writing {path}: {error.strerror}") from error
