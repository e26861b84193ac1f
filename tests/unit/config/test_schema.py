"""The JSON schema that editors use takes what the links file takes, and marks what it refuses."""

import json
from pathlib import Path

import jsonschema
import pytest

from strait.config.json_schema import schema_text
from strait.config.links import load
from strait.config.validation import read_yaml
from support.doc_tables import ROOT

RIGHT = """
clusters: {a: {bootstrap.servers: "h:1"}, b: {bootstrap.servers: "h:2"}}
links:
  a-to-b:
    source: a
    destination: b
    topics:
      include: [orders]
      rules:
        - {match: "x.*", class: gold, naming: {policy: alias}, create: false, start: {0: 7}}
        - {match: ".*", start: 2026-01-31T12:00:00Z}
      budget: {classes: {gold: 1}}
    naming: {policy: rules, rules: [{match: "(.*)", replace: "x.\\\\1"}], otherwise: refuse}
"""


def checked(file: Path, text: str) -> list[str]:
    file.write_text(text, encoding="utf-8")
    raw = json.loads(json.dumps(read_yaml(file, "links file")))  # in JSON every key is a text
    checker = jsonschema.Draft202012Validator(json.loads(schema_text()))
    return [f"{'.'.join(str(part) for part in error.path)}: {error.message}" for error in checker.iter_errors(raw)]


def test_what_the_links_file_takes_fits_the_schema(tmp_path: Path) -> None:
    assert checked(tmp_path / "links.yaml", RIGHT) == []
    load(tmp_path / "links.yaml")


@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [
        ("topics:", "topic:", "links.a-to-b: Additional properties are not allowed ('topic' was unexpected)"),
        ("policy: rules", "policy: rule", "links.a-to-b.naming.policy: 'rule' is not one of"),
        ("create: false", "create: 7", "links.a-to-b.topics.rules.0.create: 7 is not valid under any of"),
        ("a-to-b:", '"a to b":', "links: 'a to b' does not match any of the regexes"),
        ("source: a", "sauce: a", "links.a-to-b: 'source' is a required property"),
    ],
)
def test_what_the_links_file_refuses_is_marked(tmp_path: Path, right: str, wrong: str, error: str) -> None:
    found = checked(tmp_path / "links.yaml", RIGHT.replace(right, wrong, 1))
    assert any(each.startswith(error) for each in found), found


def test_the_examples_name_the_schema_for_editors() -> None:
    text = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    assert "# yaml-language-server: $schema=" in text
