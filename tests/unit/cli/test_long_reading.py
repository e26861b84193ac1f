"""A command that reads state topics for long says on stderr how far it is, and nothing else that is only information."""

import logging
from collections.abc import Iterator

import pytest

from strait.cli.main import run_command


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """What a command does to the logs ends with its process."""
    strait, reading = logging.getLogger("strait"), logging.getLogger("strait.state.reader")
    level, handlers, propagates = strait.level, reading.handlers, reading.propagate
    yield
    strait.setLevel(level)
    reading.handlers, reading.propagate = handlers, propagates


def test_progress_of_reading_is_on_stderr_once(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> None:
        logging.getLogger("strait.state.reader").info("1 of 2 records")
        logging.getLogger("strait.other").info("for a log file")

    run_command(command)
    run_command(command)
    assert capsys.readouterr() == ("", "1 of 2 records\n1 of 2 records\n")
