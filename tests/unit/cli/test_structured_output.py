"""`strait wait`, `strait logs` and `strait offsets export` for scripts."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from strait.cli.main import app
from strait.state.positions import Position

FILE = {
    "clusters": {"a": {"bootstrap.servers": "h:1"}, "b": {"bootstrap.servers": "h:2"}},
    "links": {"l": {"source": "a", "destination": "b", "topics": {"include": ["t"]}}},
}


@pytest.fixture
def run(tmp_path: Path):
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(FILE))

    def command(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "-f", str(tmp_path / "links.yaml")])

    return command


@pytest.mark.parametrize("left", ["", "1 of 2 partitions has not caught up"])
def test_a_wait_tells_whether_its_state_was_reached(run, monkeypatch: pytest.MonkeyPatch, left: str) -> None:
    monkeypatch.setattr("strait.cli.wait._check", lambda *_: nullcontext(lambda: left))
    result = run("wait", "l", "--timeout", "0s", "-o", "json")
    (line,) = result.stdout.splitlines()
    told = json.loads(line)
    assert told.pop("seconds") >= 0
    assert told == {"schema_version": 1, "link": "l", "for": "caught-up", "reached": not left, "missing": left}
    assert (result.exit_code == 0) is (not left)
    text = run("wait", "l", "--timeout", "0s")
    assert text.stdout == ("" if left else "link l: caught-up\n")


def test_logs_are_one_document(run, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = SimpleNamespace(log_tail=lambda _: "one\ntwo\nthree\n")
    found = {"default": (launcher, SimpleNamespace(name="strait-l", log="/logs/1.log"))}
    monkeypatch.setattr("strait.cli.logs._newest", lambda *_, **__: found)
    told = json.loads(run("logs", "l", "-n", "2", "--json").stdout)
    one = {"group": "default", "application": "strait-l", "log": "/logs/1.log", "lines": ["two", "three"]}
    assert told == {"schema_version": 1, "link": "l", "logs": [one]}
    assert "no end" in str(run("logs", "l", "--follow", "-o", "yaml").exception)


def test_settings_of_the_file_need_no_cluster(run) -> None:
    told = json.loads(run("settings", "l", "--from-file", "--json").stdout)
    assert (told["plan"], told["settings"]["topics"]["include"]) == (None, ["t"])
    lines = run("settings", "l", "--from-file").stdout.splitlines()
    assert lines[0].startswith("# settings in ") and "l:" in lines


def test_the_schema_is_json_or_yaml() -> None:
    told = {form: CliRunner().invoke(app, ["schema", "-o", form]).stdout for form in ("json", "yaml")}
    assert json.loads(told["json"]) == yaml.safe_load(told["yaml"])
    assert CliRunner().invoke(app, ["schema"]).stdout == told["json"]


def test_positions_that_are_not_exact_are_told_beside_the_exit_code(run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Position("t", 0, 5, "t", 5, "exact"), Position("t", 1, 5, "t", 9, "ahead")]
    monkeypatch.setattr("strait.cli.positions.hand_over.positions", lambda _: found)
    result = run("offsets", "export", "l")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:] == ["t,0,5,t,5,exact", "t,1,5,t,9,ahead"]
    assert result.stderr.startswith("link l: 1 position is not known exactly")
    found.pop()
    result = run("offsets", "export", "l")
    assert (result.exit_code, result.stderr) == (0, "")
