"""Every path, link, command, target, module and variable that a document names exists, and examples are valid."""

import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from strait.config import links
from strait.config.naming import PRODUCERS_TOPIC
from strait.errors import StraitError
from support import doc_tables, pages
from support.checks import each
from support.doc_tables import ROOT

DOCUMENTS = doc_tables.documents()
# What only exists once something has run.
MADE_LATER = {".strait/demo", ".venv/bin/strait", ".venv/bin/python", ".venv/bin/pytest"}
GENERIC = {"--help", "--version"}
INTERNAL_VARIABLES = {
    "STRAIT_SUBMISSION",
    "STRAIT_SUPERVISED",
    "STRAIT_TIED_TO",
}  # set by Strait for what it starts itself

every_document = each(DOCUMENTS, lambda path: path.relative_to(ROOT))


def code_of(path: Path) -> list[str]:
    """What stands in backticks and in fenced blocks without a language."""
    text = path.read_text(encoding="utf-8")
    fenced = [line for block in re.findall(r"```\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    inline = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [*inline, *fenced]


def anchors(path: Path) -> set[str]:
    """GitHub's anchors of the headings."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@every_document
def test_links_lead_somewhere(path: Path) -> list[str]:
    broken = []
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    return broken


@every_document
def test_files_exist(path: Path) -> list[str]:
    named = [code for code in code_of(path) if re.fullmatch(r"\.?[\w-]+(/[\w.-]+)+/?", code)]
    folders = {each.name for each in ROOT.iterdir()}
    ours = [name for name in named if name.split("/")[0] in folders and name not in MADE_LATER]
    return [name for name in ours if not (ROOT / name).exists()]


@cache
def defined_tests() -> set[str]:
    """The names of tests and of their files."""
    files = list((ROOT / "tests").rglob("test_*.py"))
    found = (re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE) for file in files)
    return {file.stem for file in files}.union(*found)


@every_document
def test_tests_exist(path: Path) -> set[str]:
    return {code for code in code_of(path) if re.fullmatch(r"test_\w+", code)} - defined_tests()


def test_each_guarantee_names_its_tests() -> None:
    rows = (
        (ROOT / "docs/explanation/guarantees.md")
        .read_text(encoding="utf-8")
        .partition("| claim | `make test` |")[2]
        .splitlines()[2:]
    )
    assert rows and all(re.search(r"`test_\w+`", row) for row in rows if row)


@every_document
def test_modules_exist(path: Path) -> list[str]:
    modules = {
        name for code in code_of(path) for name in re.findall(r"(?<![\w./])strait(?:\.[a-z_]+)+(?![\w.<-])", code)
    }
    gauges = set(
        re.findall(r'gauge\("([\w.-]+)"', (ROOT / "plugins/strait_airflow/gauges.py").read_text(encoding="utf-8"))
    )
    return [name for name in sorted(modules - gauges - {PRODUCERS_TOPIC}) if not _is_module(name)]


def _is_module(name: str) -> bool:
    base = ROOT / "include" / name.replace(".", "/")
    return base.is_dir() or base.with_suffix(".py").is_file()


@every_document
def test_make_targets_exist(path: Path) -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {match for code in code_of(path) for match in re.findall(r"^make ([a-z-]+)", code)}
    return named - targets


@every_document
def test_commands_and_options_exist(path: Path) -> list[str]:
    """In running text: a command's name, and options behind it, with or without its arguments."""
    commands = doc_tables.commands()
    wrong = []
    for code in code_of(path):
        found = re.match(r"(?:\.venv/bin/)?strait ([a-z].*)", code)
        if found is None:
            continue
        words = found[1].split()
        name = next(
            (f"strait {' '.join(words[:n])}" for n in (2, 1) if f"strait {' '.join(words[:n])}" in commands), ""
        )
        if not name and words[0] == "audit":
            name = "strait audit run"  # its default
        parameters = commands[name].params if name else []
        options = {option for each in parameters for option in [*each.opts, *each.secondary_opts]}
        is_group = len(words) == 1 and any(command.startswith(f"strait {words[0]} ") for command in commands)
        if not name and not is_group:
            wrong.append(code)
        wrong += [f"{code}: {word}" for word in words if word.startswith("-") and word not in options | GENERIC]
    return wrong


@every_document
def test_commands_in_shell_blocks_parse_as_they_are_written(path: Path) -> dict[str, str]:
    wrong = {}
    for line in pages.strait_lines(path):
        try:
            with pytest.MonkeyPatch.context() as environment:
                environment.delenv("STRAIT_LINKS_FILE", raising=False)
                pages.parse(line)
        except Exception as error:  # noqa: BLE001 -- click's errors and KeyError alike are shown with their line
            wrong[line] = repr(error)
    return wrong


def test_every_target_of_make_is_in_a_document() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    offered = set(re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE))
    named = {match for path in DOCUMENTS for code in code_of(path) for match in re.findall(r"^make ([a-z-]+)", code)}
    assert offered - {"help"} <= named


def test_every_environment_variable_is_in_its_table() -> None:
    code = [*ROOT.glob("include/strait/**/*.py"), *ROOT.glob("plugins/**/*.py"), *ROOT.glob("dags/*.py")]
    used = {name for file in code for name in re.findall(r"\bSTRAIT_[A-Z_]+\b", file.read_text(encoding="utf-8"))}
    used = {name for name in used if not name.startswith("STRAIT_BENCH")} - {"STRAIT_PREFIX"} - INTERNAL_VARIABLES
    table = (
        (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8").partition("## Environment variables")[2]
    )
    assert set(re.findall(r"^\| `(STRAIT_\w+)`", table, re.MULTILINE)) == used


@every_document
def test_links_files_in_examples_are_valid(path: Path) -> list[str]:
    wrong = []
    for block in re.findall(r"```yaml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
        try:
            links.parse(yaml.safe_load(block), where=str(path))
        except StraitError as error:
            wrong.append(str(error))
    return wrong


def test_architecture_names_every_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = [f"strait.{path.parent.name}" for path in (ROOT / "include/strait").glob("*/__init__.py")]
    assert [
        package for package in packages if package not in text and f"{package.replace('.', '/')}/" not in text
    ] == []


def test_no_document_has_a_path_of_somebodys_machine() -> None:
    found = [
        p.name for p in DOCUMENTS if re.search(r"(?<![\w.])/(home|work|root|Users)/", p.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_decision_records_are_numbered_without_gaps_and_say_what_they_must() -> None:
    records = sorted((ROOT / "docs/adr").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        text = path.read_text(encoding="utf-8")
        assert re.search(r"^Date: \d{4}-\d\d-\d\d\. Status: \w+", text, re.MULTILINE), path.name
        for heading in ("Context", "Decision", "Consequences"):
            assert f"## {heading}" in text, f"{path.name} has no {heading}"
