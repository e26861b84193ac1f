"""`strait pools adopt`: which links it says join the pool, and the file that it leaves behind."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from strait.cli.main import app
from strait.config.links import load
from strait.errors import ConfigError

ADDRESS = {"bootstrap.servers": "a:1", "sasl.password": "Secret"}
LINK = {"source": "a", "destination": "b", "topics": {"include": ["orders"]}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "links.yaml"
    links = {"one": LINK, "two": LINK, "three": LINK | {"spark": {"master": "spark://host:7077"}}}
    found.write_text("# shop\n" + yaml.safe_dump({"clusters": {"a": ADDRESS, "b": ADDRESS}, "links": links}))
    found.chmod(0o640)
    return found


def adopt(path: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["pools", "adopt", *arguments, "-f", str(path)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "Secret" not in done.output
    return done.output


def structured(path: Path, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(adopt(path, *arguments, "-o", "json"))
    return found


def test_it_says_who_joins_and_who_does_not_and_changes_the_file_once(path: Path) -> None:
    before = path.read_text()
    assert adopt(path, "--dry-run").splitlines() == [
        "pool main: would run 2 links: one, two",
        "link three: keeps Spark applications of its own: it has another `spark` block",
    ]
    assert path.read_text() == before
    assert structured(path, "--dry-run")["written"] is False
    assert adopt(path).startswith("pool main: runs 2 links: one, two\n")
    assert path.read_text().startswith(before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert load(path).members("main") == ("one", "two")
    assert [one.name for one in path.parent.iterdir()] == ["links.yaml"]
    after = path.read_text()
    assert structured(path) == {
        "schema_version": 1,
        "pool": "main",
        "links": ["one", "two"],
        "separate": {"three": "it has another `spark` block"},
        "written": False,
    }
    assert path.read_text() == after


def test_a_file_behind_a_link_is_changed_where_it_is(path: Path) -> None:
    real = path.rename(path.with_name("real.yaml"))
    path.symlink_to(real)
    adopt(path, "shared")
    assert path.is_symlink()
    assert load(real).members("shared") == ("one", "two")


def test_a_file_that_cannot_be_written_stays_as_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_text()

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(ConfigError, match="cannot be written: No space left on device"):
        CliRunner().invoke(app, ["pools", "adopt", "-f", str(path)], catch_exceptions=False)
    assert path.read_text() == before
