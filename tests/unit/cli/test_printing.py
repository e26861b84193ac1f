"""What brokers, state topics and other users chose reaches a terminal as text only."""

import io
import json
import logging
import sys

import pytest
import typer
import yaml

from strait.cli import printing
from strait.cli.consoles import PrintableConsole
from strait.cli.options import Output
from strait.cli.tables import plain_table

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m‮gnp.exe\x7f"
DANGEROUS = {chr(code) for code in [*range(32), *range(0x7F, 0xA0), 0x202E] if chr(code) != "\n"}


def harmless(text: str) -> bool:
    return not DANGEROUS & set(text)


@pytest.mark.parametrize("err", [False, True])
def test_echo(capsys: pytest.CaptureFixture[str], err: bool) -> None:
    printing.echo(f"paused by {HOSTILE}\nand\ttabs: ☃ é", err=err)
    said = "".join(capsys.readouterr())
    assert harmless(said) and said.endswith("\nand    tabs: ☃ é\n") and "\\x1b]0;owned" in said


@pytest.mark.parametrize(("given", "said"), [("", True), ("n\n", False)])
def test_a_question_that_nobody_can_answer_names_the_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, given: str, said: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    with pytest.raises(typer.Abort):
        printing.confirm("Discard 4 records?", err=True)
    assert ("(use --yes)" in capsys.readouterr().err) == said
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    printing.confirm("Discard 4 records?")


def test_pieces_of_a_log_keep_their_line_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    for piece in ("one\n", "two", " more\n", "\n", ""):
        printing.echo(piece, nl=False)
    assert capsys.readouterr().out == "one\ntwo more\n\n"


def test_tables_and_consoles(capsys: pytest.CaptureFixture[str]) -> None:
    plain_table([">n", "text"], [["1", HOSTILE]])
    PrintableConsole().print(f"link {HOSTILE}")
    assert harmless(capsys.readouterr().out)


@pytest.mark.parametrize("output", [Output.JSON, Output.YAML])
def test_documents_are_harmless_and_have_the_same_values(capsys: pytest.CaptureFixture[str], output: Output) -> None:
    value = {"topic": HOSTILE, "snow": "☃", "far": "\U000e0001"}
    output.write(value)
    said = capsys.readouterr().out
    assert harmless(said) and "\U000e0001" not in said
    assert (yaml.safe_load if output is Output.YAML else json.loads)(said) == value | {"schema_version": 1}


def test_output_for_programs_is_unchanged_but_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for out, same in ((io.StringIO(), True), (Terminal(), False)):
        monkeypatch.setattr(sys, "stdout", out)
        printing.write(f"{HOSTILE}\n")
        assert (out.getvalue() == f"{HOSTILE}\n") is same
        assert same or harmless(out.getvalue())


def test_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(typer, "confirm", lambda question, **_: not asked.append(question))
    printing.confirm(f"Fail over {HOSTILE}?")
    assert asked and harmless(asked[0])


def test_log_lines() -> None:
    record = logging.LogRecord("strait", logging.INFO, "", 0, "broker says %s", (HOSTILE,), None)
    assert harmless(printing.PrintableFormatter("%(message)s").format(record))
