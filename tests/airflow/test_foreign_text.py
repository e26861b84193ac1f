"""Text of others in notes of runs and in task logs."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from airflow.sdk._shared.logging.structlog import structlog_processors

from strait_airflow.foreign_text import as_markdown, log_printably
from strait_airflow.run_notes import NOTE_CHARACTERS, note_of

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "orders-3: source_recreated: at 5 (see strait losses)",
            "orders-3: source_recreated: at 5 (see strait losses)",
        ),
        ("![x](http://evil/a.png)", "!\\[x\\](http:\u2060//evil/a.png)"),
        ("[x]: javascript:alert(1)", "\\[x\\]: javascript:alert(1)"),
        ("<img src=x onerror=alert(1)> <http://evil>", "\\<img src=x onerror=alert(1)> \\<http:\u2060//evil>"),
        ("topic www.evil.example, WWW.evil.example", "topic www\u2060.evil.example, WWW\u2060.evil.example"),
        ("by bob@evil.example", "by bob@\u2060evil.example"),
        ("`code` *a* _b_ __c__ a_b ~~d~~ a|b", "\\`code\\` \\*a\\* \\_b\\_ \\_\\_c\\_\\_ a_b \\~\\~d\\~\\~ a\\|b"),
        ("\\[x](y) &lt; a & b", "\\\\\\[x\\](y) \\&lt; a & b"),
        ("# head\n> quote\n- item #1", "\\# head\n\\> quote\n- item #1"),
    ],
)
def test_a_note_shows_foreign_text_as_it_is(text: str, expected: str) -> None:
    assert as_markdown(text) == expected == note_of([text])


def test_no_note_is_longer_than_airflow_takes_however_much_is_escaped() -> None:
    assert len(note_of(["[" * NOTE_CHARACTERS])) == NOTE_CHARACTERS


def as_airflow_formats() -> logging.Formatter:
    """The formatter of task logs, which copies each record; for the message alone."""
    shared, _, _ = structlog_processors(json_output=True)
    return structlog.stdlib.ProcessorFormatter(
        lambda _logger, _method, event: event["event"],
        foreign_pre_chain=shared,
        pass_foreign_args=True,
        use_get_message=False,
    )


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What reaches the root's handlers, once Strait's logs are printable."""

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(self.format(record))

    found: list[str] = []
    keep, root = Keep(), logging.getLogger()
    keep.setFormatter(as_airflow_formats())
    before = logging.getLogRecordFactory()
    root.addHandler(keep)
    log_printably()
    log_printably()  # as in a process that loads the plugin twice
    yield found
    root.removeHandler(keep)
    logging.setLogRecordFactory(before)


@pytest.mark.parametrize("logger", ["strait.kafka.x", "strait_airflow", "strait_airflow.steps"])
def test_what_is_logged_moves_no_cursor(logger: str, logged: list[str]) -> None:
    logging.getLogger(logger).warning("topic %s: %d", "a\x1b]0;evil\x07\u202e", 5)
    logging.getLogger(logger).warning("two\nlines, 5 %% of %s", "100 %d")
    assert logged == ["topic a\\x1b]0;evil\\x07\\u202e: 5", "two\nlines, 5 % of 100 %d"]
