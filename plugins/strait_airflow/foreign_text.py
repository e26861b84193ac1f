"""Text that Airflow shows and that others may have written: topic names, reasons, hosts, messages of brokers.

Airflow renders the notes of runs as Markdown, so such text could show links and pictures, and Airflow would omit anything in
the form of HTML. In task logs it could move a terminal's cursor.
"""

import contextlib
import logging
import re
from collections.abc import Callable
from typing import Any

_MARKS = re.compile(r"[\\`*\[\]<|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|&(?=[#\w])|^\s*[#>]", re.MULTILINE)
_LINKS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)
_JOINER = "\u2060"
"""Without width. Airflow makes links of addresses, escaped or not, unless they have something in between."""
_LOGGERS = ("strait", "strait_airflow")


def as_markdown(text: str) -> str:
    """Return Markdown that is shown as the text, without links, pictures or formats."""
    return _LINKS.sub(_JOINER, _MARKS.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text))


class _PrintableRecords:
    """Makes log records as ``make`` does; those of Strait's loggers with printable messages."""

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *args: Any, **named: Any) -> logging.LogRecord:
        from strait.text import printable_lines

        record = self._make(*args, **named)
        # Copies of records are made without a name, by `logging.makeLogRecord`.
        if record.name and record.name.partition(".")[0] in _LOGGERS:
            # Logging itself reports arguments that do not fit the message.
            with contextlib.suppress(TypeError, ValueError, KeyError):
                record.msg, record.args = printable_lines(record.getMessage()), ()
        return record


def log_printably() -> None:
    """Have all messages that Strait logs in this process printable, regardless of handlers and levels."""
    make = logging.getLogRecordFactory()
    if type(make).__name__ != _PrintableRecords.__name__:  # Airflow may load the plugin twice
        logging.setLogRecordFactory(_PrintableRecords(make))
