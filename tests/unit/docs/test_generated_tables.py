"""What the documents say of options, keys and reasons is what the code says."""

from pathlib import Path

import pytest

from strait.reasons import Kind
from support import doc_tables
from support.doc_tables import ROOT

REMEDY = "run: .venv/bin/python tests/support/doc_tables.py"


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", doc_tables.documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_tables_are_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == doc_tables.rendered(text), REMEDY


def test_the_published_schema_is_up_to_date() -> None:
    schema = ROOT / "docs/links.schema.json"
    assert schema.read_text(encoding="utf-8") == doc_tables.files()[schema], REMEDY


def test_every_configuration_block_has_its_table() -> None:
    shown = [name for kind, name in doc_tables.blocks(text_of("docs/configuration.md")) if kind == "config"]
    assert sorted(shown) == sorted(doc_tables.settings_blocks())


def test_every_command_has_its_table() -> None:
    shown = [f"strait {name}" for kind, name in doc_tables.blocks(text_of("docs/operating.md")) if kind == "command"]
    assert sorted(shown) == sorted(doc_tables.commands())


def test_every_reason_stands_in_the_table_of_its_kind() -> None:
    shown = [name for kind, name in doc_tables.blocks(text_of("docs/operating.md")) if kind == "reasons"]
    assert sorted(shown) == sorted(Kind)
