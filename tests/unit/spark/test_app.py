"""How the application ends."""

from concurrent.futures import Future
from pathlib import Path

from pyspark.sql import SparkSession

from strait.launch import supervised
from strait.launch.base import EXIT_FAILED
from strait.spark import app


def test_a_defect_ends_as_a_failure_with_its_cause_and_its_traceback(tmp_path: Path, monkeypatch, capsys, caplog):
    """Its cluster would start it again without limit otherwise."""

    def break_down(*_: object) -> None:
        raise ZeroDivisionError("no\nnumber")

    for name, value in supervised.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(app, "_copy", break_down)
    monkeypatch.setattr(app, "_on_signals", lambda _: None)
    session: Future[SparkSession] = Future()
    (tmp_path / "attempts").write_text("")
    assert app.run(tmp_path / "spec.json", session) == EXIT_FAILED
    assert capsys.readouterr().err.splitlines()[-1] == "strait: ZeroDivisionError: no number"
    assert "Traceback" in caplog.text
