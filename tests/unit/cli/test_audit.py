"""`strait audit` as it is typed: wrong lines are refused before anything starts, and results are printed for people."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from strait.audit.progress import AuditProgress, read_progress
from strait.cli import audit_output
from strait.cli.main import app
from strait.cli.options import Output
from strait.errors import ConfigError, LaunchError, SetupError
from strait.launch.submission import locked

CLUSTERS = {"a": {"bootstrap.servers": "localhost:1"}, "b": {"bootstrap.servers": "localhost:2"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    links = {"a-to-b": {"source": "a", "destination": "b"}, "b-to-a": {"source": "b", "destination": "a"}}
    path = tmp_path / "links.yaml"
    path.write_text(yaml.safe_dump({"clusters": CLUSTERS, "links": links}))
    return path


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["orders"], "has no link 'orders'"),
        (["a-to-b", "--source", "a"], "need --relation offset or order"),
        (["--relation", "order", "orders"], "name both clusters"),
        (["--relation", "order", "--source", "a", "--destination", "b"], "name the source topics"),
        (["--relation", "similar", "--source", "a", "--destination", "b", "orders"], "must be map, offset or order"),
        (["--relation", "offset", "--source", "a", "--destination", "c", "orders"], "has no cluster 'c'"),
        (["--resume", "none"], "knows no audit 'none'"),
        (["--resume", "over"], "over is over; its certificate is"),
        (["--resume", "none", "--budget", "1MB/s"], "--resume continues what was requested"),
        (["a-to-b", "orders", "--resume", "none"], "--resume continues what was requested"),
        (
            ["a-to-b", "--since", "2026-11-27", "--until", "2026-11-26"],
            "--until 2026-11-26 is not after --since 2026-11-27",
        ),
        (["a-to-b", "--out", "none/certificate.json"], "--out none/certificate.json cannot be written"),
        (["a-to-b", "--out", "."], "--out . is a directory"),
        (["a-to-b", "--key", "none.pem"], "none.pem: cannot be read"),
        (["a-to-b", "--key", __file__], "not a private key in PEM"),
    ],
)
def test_a_wrong_line_is_refused(file: Path, words: list[str], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRAIT_HOME", str(file.parent / "home"))
    (file.parent / "home" / "audits" / "over").mkdir(parents=True)
    (file.parent / "home" / "audits" / "over" / "certificate.json").touch()
    found = CliRunner().invoke(app, ["audit", *words, "-f", str(file)])
    assert isinstance(found.exception, ConfigError)
    assert why in str(found.exception)


def test_progress_shows_the_share_the_rate_and_the_rest() -> None:
    progress = AuditProgress(
        id="x", state="comparing", chunks=40, done=10, bytes=10**9, unexplained=3, began_at_ms=0, at_ms=10_000
    )
    line = audit_output._progress_line(progress)
    assert "[#####...............] 10/40 chunks" in line
    assert "100 MB/s" in line and "30 s left" in line and "3 differences" in line
    assert audit_output._progress_line(AuditProgress(id="x", state="planning")).endswith("planning")


def test_progress_in_a_file_has_no_line_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit_output, "_PROGRESS_SECONDS", 0.0)
    shown = audit_output.Shown(Output.TABLE)
    for done in (0, 0, 1, 1, 2):
        shown.show("", AuditProgress(id="x", state="comparing", chunks=2, done=done))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("] ")[1].split(" ")[0] for line in lines] == ["0/2", "1/2", "2/2"]


def test_progress_that_cannot_be_read_is_unknown() -> None:
    progress = AuditProgress(id="x", state="done")
    assert read_progress(progress.model_dump_json().encode()) == progress
    assert read_progress(b"{") is None
    assert progress.seconds_left() is None and progress.bytes_per_second() is None


def test_a_home_that_cannot_be_written_ends_the_audit_in_one_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = file.parent / "home"
    home.mkdir()
    (home / "audit-applications").write_text("a file where a directory has to be")
    monkeypatch.setenv("STRAIT_HOME", str(home))
    with pytest.raises(SetupError) as failed:
        CliRunner().invoke(app, ["audit", "a-to-b", "-f", str(file)], catch_exceptions=False)
    assert str(failed.value).startswith("audit: writing ") and "\n" not in str(failed.value)


def test_a_lock_that_cannot_be_written_is_an_error_of_this_host(tmp_path: Path) -> None:
    (tmp_path / "applications").write_text("")
    with (
        pytest.raises(LaunchError, match=r"application one: locking .*: File exists"),
        locked(tmp_path / "applications", "one"),
    ):
        pass


def test_several_problems_are_one_line_where_only_one_fits() -> None:
    error = ConfigError("audit", ["cluster a has no topic x", "cluster b has no topic x"], hint="name another")
    assert error.in_one_line == "audit: cluster a has no topic x; cluster b has no topic x (name another)"
    assert ConfigError("audit", ["one"]).in_one_line == str(ConfigError("audit", ["one"]))
