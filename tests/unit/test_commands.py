"""The commands that the README names."""

import os
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).parents[2]


def test_make_alone_lists_every_command_that_people_type():
    shown = subprocess.run(["make"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    listed = {line.split()[1] for line in shown.splitlines()}
    assert listed >= {"install", "demo", "test", "check", "lock", "bench", "sbom"}


@pytest.mark.parametrize(
    ("name", "lock"),
    [
        ("requirements", "requirements"),
        ("requirements-airflow", "requirements"),
        ("requirements-kubernetes", "requirements"),
        ("requirements-msk", "requirements-msk"),
        ("requirements-dev", "requirements-dev"),
    ],
)
def test_the_lock_pins_what_requirements_asks_for_with_a_hash_of_each(name: str, lock: str) -> None:
    asked, lock = map(Requirement, _entries(PROJECT / f"{name}.txt")), _entries(PROJECT / f"{lock}.lock")
    pinned = dict(line.split()[0].split("==") for line in lock)
    for one in asked:
        assert one.specifier.contains(pinned.get(canonicalize_name(one.name), "0")), f"{one}: run `make lock`"
    assert all("--hash=sha256:" in line for line in lock)


def test_what_strait_runs_on_is_locked_once_and_needs_none_of_the_tests_tools() -> None:
    runs, tests = (
        {line.split()[0] for line in _entries(PROJECT / name)}
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert runs <= tests
    tools = {"pytest", "pytest-xdist", "hypothesis", "playwright", "mypy", "ruff", "import-linter", "cyclonedx-bom"}
    assert tools <= {line.partition("==")[0] for line in _entries(PROJECT / "requirements-dev.txt")}
    assert not tools & {line.partition("==")[0] for line in runs}


def _entries(path: Path) -> list[str]:
    """Each requirement of a file with its hashes, in one line."""
    lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    return [text for line in lines if (text := line.split("#")[0].strip().lower()) and not text.startswith("-r ")]


def test_continuous_integration_runs_the_whole_suite_without_skips():
    script = PROJECT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "CI=true exec make test" in script.read_text(encoding="utf-8")
