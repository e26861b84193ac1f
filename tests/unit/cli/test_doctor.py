"""`strait doctor`: what it makes of a links file, and of a link whose topics are not visible."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from strait.cli import doctor as module
from strait.cli.main import app
from strait.config.links import parse
from strait.control.link_rights import LinkRights
from strait.launch.host import Verdict


@pytest.fixture(autouse=True)
def healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "checks", lambda _: iter(()))
    for variable in ("STRAIT_LINKS_FILE", "STRAIT_CONFIG", "AIRFLOW__API__BASE_URL"):
        monkeypatch.delenv(variable, raising=False)


def doctor(*arguments: str) -> tuple[int, dict[str, str]]:
    done = CliRunner().invoke(app, ["doctor", "--json", *arguments])
    (check,) = json.loads(done.output)["checks"]
    return done.exit_code, check


def test_a_host_without_a_links_file_passes_with_a_warning() -> None:
    code, check = doctor()
    assert (code, check["verdict"]) == (0, "warning")


@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_named_links_file_that_is_not_there_fails(monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    if by == "environment":
        monkeypatch.setenv("STRAIT_LINKS_FILE", "/nonexist/links.yaml")
    code, check = doctor(*(("-f", "/nonexist/links.yaml") if by == "option" else ()))
    assert (code, check["verdict"]) == (1, "failed")
    assert "/nonexist/links.yaml: cannot be read: No such file" in check["found"]


def links(**topics: Any) -> dict[str, Any]:
    ends = {"a": {"bootstrap.servers": "h:1"}, "b": {"bootstrap.servers": "h:2"}}
    return {"clusters": ends, "links": {"l": {"source": "a", "destination": "b", "topics": topics}}}


def test_a_property_that_librdkafka_rejects_fails(tmp_path: Path) -> None:
    raw = links(include=["orders"])
    raw["clusters"]["a"]["socket.timeout.ms"] = "abc"
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(raw))
    code, check = doctor()
    assert (code, check["verdict"]) == (1, "failed")
    assert "clusters.a: `socket.timeout.ms`" in check["found"]


@pytest.mark.parametrize(
    ("topics", "rights", "verdict"),
    [
        ({"regex": [".*"]}, LinkRights(0, ()), Verdict.WARNING),
        ({"regex": [".*"]}, LinkRights(2, ()), Verdict.OK),
        ({"allow_empty": True}, LinkRights(0, ()), Verdict.OK),
        ({"include": ["x"]}, LinkRights(0, ("x (source), which does not exist or needs DESCRIBE",)), Verdict.FAILED),
    ],
)
def test_a_selection_of_no_visible_topic_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, topics: dict[str, Any], rights: LinkRights, verdict: Verdict
) -> None:
    monkeypatch.setattr(module, "link_rights", lambda _: rights)
    check = module._rights(parse(links(**topics), where="x"), "l")
    assert check.verdict is verdict
    assert ("DESCRIBE" in check.remedy) is (verdict is Verdict.WARNING)
