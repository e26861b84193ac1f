"""What a preview says while its process works, which here is a script without Spark."""

from pathlib import Path

import pytest

from strait.config.links import Spark
from strait.errors import LaunchError
from strait.launch import preview as subject

SAYS = """
import pathlib, sys, time
sys.stdin.buffer.read()
time.sleep(0.1)
pathlib.Path(sys.argv[1]).write_text("Spark evaluates 1 record, twice")
for _ in range(600):
    time.sleep(0.1)
    if pathlib.Path("{told}").exists():
        break
print('{{"results": [], "refused": ""}}')
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(subject, "_TELL_SECONDS", 0.02)
    monkeypatch.setattr(subject, "_MODULE", "a_preview")
    monkeypatch.setattr(subject, "_environment", lambda *_: {"PYTHONPATH": str(tmp_path)})
    monkeypatch.setattr(subject, "_arguments", lambda _: {})
    return tmp_path / "a_preview.py"


def test_it_says_what_it_does_until_there_is_a_result(script: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    script.write_text(SAYS.format(told=told))
    said: list[str] = []

    def progress(text: str) -> None:
        said.append(text)
        if "evaluates" in text:
            told.touch()

    assert subject.evaluate(
        {"t": {}}, [subject.Sample(0, 1, 2, None, b"x" * 200_000)], Spark(), progress
    ) == subject.Evaluated([])
    assert said[0].startswith("preview: Spark starts (") and said[-1].startswith(
        "preview: Spark evaluates 1 record, twice ("
    )


def test_a_process_that_ends_is_explained_and_one_that_does_not_is_ended(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.write_text("import sys; sys.exit('no Java')")
    with pytest.raises(LaunchError, match="no Java"):
        subject.evaluate({"t": {}}, [], Spark())
    monkeypatch.setattr(subject, "_SECONDS", 0.2)
    script.write_text("import time; time.sleep(600)")
    with pytest.raises(LaunchError, match="no result after"):
        subject.evaluate({"t": {}}, [], Spark())
