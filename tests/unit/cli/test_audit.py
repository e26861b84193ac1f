"""`strait audit` as it is typed: wrong lines are refused before anything starts, and results are printed for people."""

import errno
import json
import os
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from strait.audit.certificate import certificate
from strait.audit.plan import AuditPlan
from strait.audit.progress import AuditProgress, read_progress
from strait.cli import audit_output
from strait.cli.main import app
from strait.cli.options import Output
from strait.config.audit import AuditRequest
from strait.control import audit as control_audit
from strait.errors import ClusterUnavailable, ConfigError, LaunchError, SetupError
from strait.kafka import connection
from strait.launch.base import Application, State
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
        id="x",
        state="comparing",
        chunks=40,
        done=10,
        bytes=10**9,
        unexplained=3,
        began_at_ms=0,
        at_ms=10_000,
        read_at_ms=10_000,
    )
    line = audit_output._progress_line(progress)
    assert "[#####...............] 10/40 chunks" in line
    assert "100 MB/s" in line and "30 s left" in line and "3 differences" in line
    assert audit_output._progress_line(AuditProgress(id="x", state="planning")).endswith("planning")
    assert audit_output._progress_line(AuditProgress(id="x", state="starting", chunks=40, done=10)).endswith("starting")
    slow = progress.model_copy(update={"bytes": 340_000, "at_ms": 7_200_000, "read_at_ms": 7_200_000})
    assert "  47 B/s  6 h left" in audit_output._progress_line(slow)


def test_the_rate_and_the_rest_of_a_resumed_audit_are_of_what_it_compared_since() -> None:
    progress = AuditProgress(
        id="x", state="comparing", chunks=40, done=20, earlier=18, began_at_ms=0, at_ms=10_000,
        bytes=10**9, earlier_bytes=9 * 10**8, read_at_ms=8_000,
    )  # fmt: skip
    assert (progress.seconds_left(), progress.bytes_per_second()) == (100.0, 1.25e7)
    just = progress.model_copy(update={"earlier": 20, "earlier_bytes": 10**9})
    assert (just.seconds_left(), just.bytes_per_second()) == (None, None), "nothing was compared since"


def test_progress_in_a_file_has_no_line_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit_output, "_PROGRESS_SECONDS", 0.0)
    shown = audit_output.Shown(Output.TABLE)
    for done in (0, 0, 1, 1, 2):
        shown.show("", AuditProgress(id="x", state="comparing", chunks=2, done=done))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("] ")[1].split(" ")[0] for line in lines] == ["0/2", "1/2", "2/2"]


def test_an_audit_without_news_shows_since_when(capsys: pytest.CaptureFixture[str]) -> None:
    now = [1000.0]
    shown = audit_output.Shown(Output.TABLE, lambda: now[0])
    for _ in range(300):
        shown.show("", AuditProgress(id="x", state="comparing", chunks=2))
        now[0] += 0.5
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("chunks")[2] for line in lines] == ["", "  for 60 s", "  for 2 min"]


def test_a_problem_is_shown_once_until_it_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    shown = audit_output.Shown(Output.TABLE)
    waiting, other = "waiting: cluster a:\n away (after 3 s)", "t-1: cluster a: reading t-1 at offset 7: away"
    for problem in (waiting, waiting.replace("3", "9"), other, other.replace("7", "8"), "", waiting):
        shown.show("", AuditProgress(id="x", state="comparing", chunks=2, problem=problem))
    problems = [line for line in capsys.readouterr().err.splitlines() if ":" in line]
    once = "audit x: waiting: cluster a: away (after 3 s)"
    assert problems == [once, f"audit x: {other}", once]


def test_an_audit_of_a_cluster_that_does_not_answer_ends_before_anything_starts(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of the destination alone does not need the source."""
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_SECONDS", 0.3)
    monkeypatch.setenv("STRAIT_HOME", str(file.parent / "home"))
    for words, cluster in (([], "a"), (["--ledger"], "b")):
        with pytest.raises(ClusterUnavailable, match=f"cluster {cluster}: connecting: .*refused") as failed:
            CliRunner().invoke(app, ["audit", "a-to-b", *words, "-f", str(file)], catch_exceptions=False)
        assert "bootstrap.servers" in failed.value.hint
    assert not list((file.parent / "home").glob("audit-applications/*"))


WHOLE = {"body": {"verdict": "equal"}, "times": {"id": "over"}, "sha256": "x"}


def test_a_certificate_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "certificate.json"
    audit_output.write_certificate(out, WHOLE, "/results/over")
    before = out.read_text()
    write = Path.write_text

    def full(path: Path, text: str, **how: str) -> int:
        write(path, text[:10], **how)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(SetupError) as failed:
        audit_output.write_certificate(out, WHOLE, "/results/over")
    assert str(failed.value) == (
        f"audit over: writing its certificate to {out}: No space left on device (`strait audit --resume over --out FILE` "
        "writes it elsewhere; unsigned it is /results/over/certificate.json)"
    )
    assert out.read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["certificate.json"]


def test_a_certificate_is_written_into_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    audit_output.write_certificate(pipe, WHOLE, "/results/over")
    assert json.loads(os.read(reader, 1000)) == WHOLE
    os.close(reader)
    assert pipe.is_fifo()


def test_the_certificate_of_an_audit_that_is_over_is_written_and_signed_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAIT_HOME", str(file.parent / "home"))
    directory, out = file.parent / "home" / "audits" / "over", file.parent / "again.json"
    directory.mkdir(parents=True)
    plan = AuditPlan(
        id="over", link="", request=AuditRequest(), source="a", destination="b", source_cluster="x",
        destination_cluster="y", planned_at_ms=1,
    )  # fmt: skip
    whole = certificate(plan, (), began_at_ms=1, ended_at_ms=2, chunks={})
    (directory / "certificate.json").write_text(json.dumps(whole))
    found = CliRunner().invoke(app, ["audit", "--resume", "over", "--out", str(out), "-f", str(file)])
    assert found.exit_code == 0, found.output
    assert json.loads(out.read_text()) == whole


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
    monkeypatch.setattr(control_audit, "Admin", lambda *_: None)
    with pytest.raises(SetupError) as failed:
        CliRunner().invoke(app, ["audit", "a-to-b", "-f", str(file)], catch_exceptions=False)
    assert str(failed.value).startswith("audit: writing ") and "\n" not in str(failed.value)


class _Finished:
    """A launcher whose application has ended well, elsewhere."""

    def submit(self, *_: object) -> None: ...

    def stop(self, *_: object, **__: object) -> None: ...

    def state(self, name: str) -> Application:
        return Application(name, "1", State.FINISHED, "", 0)


def test_an_audit_whose_result_cannot_be_read_yet_can_be_resumed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its certificate is in another file system, and its verdict on a cluster that does not answer."""

    def away(*_: object) -> None:
        raise ClusterUnavailable("b", "no answer")

    home = file.parent / "home"
    monkeypatch.setenv("STRAIT_HOME", str(home))
    monkeypatch.setattr(control_audit, "Admin", lambda *_: None)
    monkeypatch.setattr(control_audit, "launcher_for", lambda *_, **__: _Finished())
    monkeypatch.setattr(control_audit, "audits", away)
    with pytest.raises(ClusterUnavailable):
        CliRunner().invoke(app, ["audit", "a-to-b", "-f", str(file)], catch_exceptions=False)
    (spec,) = (home / "audit-applications").glob("strait-audit-*.json")
    assert control_audit.recorded_job(home, spec.stem.removeprefix("strait-audit-")) is not None


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
