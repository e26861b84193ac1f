"""Text that Airflow shows and that others may have written: topic names, reasons, hosts, messages of brokers.

Airflow renders the notes of runs as Markdown, so such text could show links and pictures, and Airflow would omit anything in
the form of HTML. In task logs it could move a terminal's cursor.
"""

import logging
import re

_MARKS = re.compile(r"[\\`*\[\]<|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|&(?=[#\w])|^\s*[#>]", re.MULTILINE)
_LINKS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)
_JOINER = "\u2060"
"""Without width. Airflow makes links of addresses, escaped or not, unless they have something in between."""


def as_markdown(text: str) -> str:
    """Return Markdown that is shown as the text, without links, pictures or formats."""
    return _LINKS.sub(_JOINER, _MARKS.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text))


class _Printable(logging.Handler):
    """Passes the records of a logger and of those below it on to its parent, with printable messages."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self.set_name(f"printable {logger.name}")
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        from strait.text import printable_lines

        record.msg, record.args = printable_lines(record.getMessage()), None
        if self._logger.parent is not None:
            self._logger.parent.callHandlers(record)


def log_printably() -> None:
    """Have all messages that Strait logs in this process printable."""
    for name in ("strait", "strait_airflow"):
        logger = logging.getLogger(name)
        added = _Printable(logger)
        if all(handler.name != added.name for handler in logger.handlers):
            logger.addHandler(added)
            logger.propagate = False
