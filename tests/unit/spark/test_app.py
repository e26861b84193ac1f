"""How the application ends."""

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strait.config.app_spec import AppSpec
from strait.config.audit import AuditJob, AuditRequest
from strait.errors import ClusterUnavailable, NotAuthorized, SetupError, StateError, StraitError
from strait.launch import supervised
from strait.launch.base import EXIT_CONFIG, EXIT_FAILED
from strait.spark import app


def test_a_defect_ends_as_a_failure_with_its_cause_and_its_traceback(tmp_path: Path, monkeypatch, capsys, caplog):
    """Its cluster would start it again without limit otherwise."""

    def break_down(*_: object) -> None:
        raise ZeroDivisionError("no\nnumber")

    for name, value in supervised.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(app, "_work", break_down)
    monkeypatch.setattr(app, "_on_signals", lambda _: None)
    session: Future[SparkSession] = Future()
    (tmp_path / "attempts").write_text("")
    assert app.run(tmp_path / "spec.json", session) == EXIT_FAILED
    assert capsys.readouterr().err.splitlines()[-1] == "strait: ZeroDivisionError: no number"
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    "error",
    [ClusterUnavailable("a", "away"), NotAuthorized("a", "denied"), SetupError("disk full"), StateError("unreadable")],
    ids=lambda error: type(error).__name__,
)
def test_an_audit_is_not_started_again_for_what_it_has_waited_for(monkeypatch, error: StraitError) -> None:
    """Its operator waits: Spark would start four times, which only delays the error."""

    def audit(*_: object) -> None:
        raise error

    clusters = {"source_name": "a", "source": {}, "destination_name": "b", "destination": {}}
    spec = AppSpec(
        link="", group="audit", slots=1, slot_memory_bytes=1 << 20, ledger_seconds=60, ledger_dir="", checkpoint_dir="",
        audit=AuditJob(id="x", directory="/results", request=AuditRequest()), **clusters,
    )  # fmt: skip
    session: Future[SparkSession] = Future()
    session.set_result(None)  # type: ignore[arg-type]
    monkeypatch.setattr(app, "read_spec", lambda _: spec)
    monkeypatch.setattr(app.yarn, "copy_of", lambda _: "application")
    monkeypatch.setattr(app.yarn, "on_yarn", lambda: False)
    monkeypatch.setattr(app.supervised, "begin", lambda: True)
    monkeypatch.setattr(app, "audit", audit)
    assert app._run(Path("spec.json"), session, threading.Event()) == EXIT_CONFIG


class Starts:
    """Spark that fails to start its own processes so many times; the application's folder is not there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failures: int, text: str) -> None:
        self.tried = 0
        self._failures = failures
        self._text = text
        monkeypatch.setattr(app, "_run_query", self._run_query)
        monkeypatch.setattr(app.folder, "forget_checkpoint", lambda *_: None)

    def _run_query(self, *_: Any) -> None:
        self.tried += 1
        if self.tried <= self._failures:
            raise PySparkException(self._text)

    def go(self) -> None:
        anything: Any = type("Batches", (), {"spec": None, "application": "a"})()
        app._run_slots(anything, Path("spec.json"), anything, 1, lambda: False)


SLOW = "Python worker failed to connect back. SQLSTATE: XXKST"


def test_a_host_too_slow_for_spark_s_processes_is_given_another_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(monkeypatch, app.START_ATTEMPTS - 1, SLOW)
    starts.go()
    assert starts.tried == app.START_ATTEMPTS


@pytest.mark.parametrize(("text", "tried"), [(SLOW, app.START_ATTEMPTS), ("anything else", 1)])
def test_what_does_not_pass_by_itself_ends_it(monkeypatch: pytest.MonkeyPatch, text: str, tried: int) -> None:
    starts = Starts(monkeypatch, 99, text)
    with pytest.raises(PySparkException, match=text):
        starts.go()
    assert starts.tried == tried
