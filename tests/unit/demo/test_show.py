"""What the demo tells people at its end."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console  # noqa: TID251  # as the demo does

from strait.demo.figures import GroupFigures, TopicFigures
from strait.demo.folder import DemoFolder
from strait.demo.show import show
from strait.demo.status import DemoStatus
from strait.demo.steps import Steps
from strait.demo.up import bring_up
from strait.errors import SetupError

PIDS = list(range(27_572, 27_592))
INVOICES = TopicFigures("shop", "invoices", 2, 1_900, 0, {"batch_too_large": 1}, 0, 12.5, 80.0)
STATUS = DemoStatus(
    parts={"source": True},
    clusters={"source": "127.0.0.1:19092"},
    links_file="/home/me/.strait/demo/links.yaml",
    airflow_url="http://127.0.0.1:8080",
    airflow_password="secret",
    log_ports=(8793, 8794),
    application_pids=PIDS,
    topics=[INVOICES],
    consumer_groups=[GroupFigures("shop", 1, 1), GroupFigures("back", 0, 0)],
    memory_pss_bytes=1 << 30,
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A terminal of 80 columns, with `strait` on the PATH."""
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "strait").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_a_command_to_copy_stands_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show(STATUS)
    lines = capsys.readouterr().out.splitlines()
    assert "  strait demo kill" in lines
    assert "  strait groups shop -f /home/me/.strait/demo/links.yaml" in lines


def test_it_is_proposed_as_it_can_be_typed_if_its_environment_is_not_active(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.executable", "/home/me/strait/.venv/bin/python")
    monkeypatch.setattr(Path, "cwd", lambda: Path("/home/me/strait"))
    show(STATUS)
    assert "  .venv/bin/strait demo kill" in capsys.readouterr().out.splitlines()


def test_no_line_ends_with_blanks_and_none_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    show(STATUS)
    steps = Steps(Console(highlight=False))
    with steps.step("Kafka clusters source at 127.0.0.1:19092 and destination at 127.0.0.1:29092"):
        pass
    lines = capsys.readouterr().out.splitlines()
    assert not [line for line in lines if line != line.rstrip()]
    assert lines[-1].startswith("✓ Kafka clusters source")


def test_a_demo_without_airflow_ends_before_anything_is_fetched_or_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin/python"))
    with pytest.raises(SetupError, match=r"Airflow: not installed \(.*strait\[airflow\]"):
        bring_up(DemoFolder(), cast(Any, None), Steps(Console()))


def test_a_file_below_the_current_folder_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    show(replace(STATUS, links_file=str(tmp_path / ".strait/demo/links.yaml")))
    assert "  strait groups shop -f .strait/demo/links.yaml" in capsys.readouterr().out.splitlines()


def test_it_names_the_page_the_login_what_waits_and_the_groups(capsys: pytest.CaptureFixture[str]) -> None:
    show(STATUS)
    shown = capsys.readouterr().out
    assert "http://127.0.0.1:8080/plugin/strait   user admin   password secret" in shown
    assert "ports 8793 and 8794, on all addresses" in shown
    assert "Waiting   shop invoices: 1 batch_too_large\n" in shown, "the code is what `strait explain` takes"
    assert "link shop: 1 of 1 in sync" in shown
    assert "link back" not in shown, "it has no consumer group"


def test_a_part_that_does_not_run_is_named_and_nothing_is_proposed(capsys: pytest.CaptureFixture[str]) -> None:
    show(replace(STATUS, parts={"source": True, "application-back": False}))
    shown = capsys.readouterr().out
    assert "Not running: application-back." in shown
    assert "demo kill" not in shown
