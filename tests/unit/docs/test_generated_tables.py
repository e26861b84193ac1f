"""What the documents say of options, keys and reasons is what the code says."""

import re
from pathlib import Path

from strait.reasons import Kind, Reason
from support import doc_captures, doc_tables
from support.checks import each
from support.doc_tables import ROOT

REMEDY = "run: .venv/bin/python tests/support/doc_tables.py"


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@each(doc_tables.documents(), lambda path: path.relative_to(ROOT))
def test_generated_tables_are_up_to_date(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return "" if text == doc_tables.rendered(text) else REMEDY


def test_the_published_schema_is_up_to_date() -> None:
    schema = ROOT / "docs/links.schema.json"
    assert schema.read_text(encoding="utf-8") == doc_tables.files()[schema], REMEDY


def test_every_configuration_block_has_its_table() -> None:
    shown = [name for kind, name in doc_tables.blocks(text_of("docs/reference/configuration.md")) if kind == "config"]
    assert sorted(shown) == sorted(doc_tables.settings_blocks())


def test_every_command_and_option_is_in_the_reference() -> None:
    text = text_of("docs/reference/cli.md")
    for name, command in doc_tables.commands().items():
        section = text.partition(f"## `{name}`\n")[2].partition("\n## ")[0]
        assert section, name
        options = {option for each in command.params for option in each.opts if option.startswith("--")}
        assert {option for option in options - {"--help"} if "-completion" not in option} <= set(
            re.findall(r"`(--[\w-]+)`", section)
        ), name


def test_every_reason_stands_in_the_table_of_its_kind() -> None:
    text = text_of("docs/reference/reason-codes.md")
    assert [name for kind, name in doc_tables.blocks(text) if kind == "reasons"] == list(Kind)
    assert sorted(re.findall(r"^\| `(\w+)`", text, re.MULTILINE)) == sorted(Reason)


def test_every_risk_stands_in_its_table_and_no_other() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "include/strait/planning/risks").glob("*.py"))
    used = set(re.findall(r"\bRisk\(\s*\"(\w+)\"|\(\"(state_\w+)\",", code))
    rows = re.findall(r"^\| (`.+?`) \|", text_of("docs/reference/risks.md"), re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted({first or second for first, second in used})


def test_every_picture_of_output_is_one_that_the_script_makes_and_is_not_empty() -> None:
    found = [
        each for path in doc_tables.documents() for each in doc_captures.captured(path.read_text(encoding="utf-8"))
    ]
    assert {name for name, _ in found} == set(doc_captures.NAMES)
    for name, text in found:
        assert [line for line in text.splitlines() if line and not line.startswith("$ ")], name
