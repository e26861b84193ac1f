"""The nets under the suite: runs that should fail, do."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.halves import HALVES

SUPPORT = Path(__file__).parents[1]


def run_pytest(folder: Path, source: str, *options: str, ci: str = "") -> subprocess.CompletedProcess[str]:
    file = folder / "test_sample.py"
    file.write_text(source, encoding="utf-8")
    plugins = ("-p", "support.fixtures.no_skips", "-p", "support.fixtures.no_leftovers")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-c", os.devnull, "--rootdir", folder, *options, file],
        env=os.environ | {"PYTHONPATH": str(SUPPORT), "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


SKIPPED = """
import pytest
@pytest.mark.broker
@pytest.mark.skipif(True, reason="no broker here")
def test_something_real(): ...
"""


@pytest.mark.parametrize(("options", "ci"), [((), "true"), (("--no-skips",), "")])
def test_a_skipped_integration_test_fails_the_run(tmp_path, options, ci):
    done = run_pytest(tmp_path, SKIPPED, *options, ci=ci)
    assert done.returncode == 1, done.stdout
    assert "skipped, which is not allowed here: Skipped: no broker here" in done.stdout


def test_a_skipped_integration_test_is_fine_at_home(tmp_path):
    assert run_pytest(tmp_path, SKIPPED).returncode == 0


def test_a_skipped_unit_test_is_fine_everywhere(tmp_path):
    assert run_pytest(tmp_path, SKIPPED.replace("@pytest.mark.broker\n", ""), ci="true").returncode == 0


def test_a_skipped_module_fails_the_run(tmp_path):
    done = run_pytest(tmp_path, 'import pytest; pytest.importorskip("no_such_module")', ci="true")
    assert done.returncode != 0, done.stdout


LEFT_BEHIND = """
import subprocess
from pathlib import Path
def test_that_forgets_a_process(tmp_path):
    # By way of a shell that ends at once: an orphan, as a crashed launcher leaves them.
    subprocess.run(["sh", "-c", "sleep 300 & echo $! > {pid_file}"], stdout=subprocess.DEVNULL)
"""


def test_a_process_left_behind_fails_the_run_and_is_ended(tmp_path):
    pid_file = tmp_path / "pid"
    done = run_pytest(tmp_path, LEFT_BEHIND.format(pid_file=pid_file))
    pid = int(pid_file.read_text(encoding="ascii"))
    assert done.returncode == 1, done.stdout
    assert f"{pid}: sleep 300" in done.stdout
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_both_halves_together_are_the_whole_suite():
    tests = SUPPORT
    folders = [f"tests/{folder.name}" for folder in tests.iterdir() if any(folder.rglob("test_*.py"))]
    assert sorted(folder for half in HALVES for folder in half) == sorted(folders)


def run_halves(folder: Path, **samples: str) -> subprocess.CompletedProcess[str]:
    """With one test in each folder: ``samples`` by the folder's name, else one that passes."""
    for tier in (tier for half in HALVES for tier in half):
        (folder / tier).mkdir(parents=True, exist_ok=True)
        source = samples.get(Path(tier).name, "def test_it(): ...")
        (folder / tier / "test_sample.py").write_text(source, encoding="utf-8")
    options = ("-c", os.devnull, "--import-mode=importlib", "-p", "support.fixtures.no_leftovers")
    return subprocess.run(
        [sys.executable, SUPPORT / "support" / "halves.py", *options],
        env=os.environ | {"PYTHONPATH": str(SUPPORT), "PYTEST_ADDOPTS": ""},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_suite_passes_if_both_halves_do(tmp_path):
    done = run_halves(tmp_path)
    assert done.returncode == 0, done.stdout
    assert [line.count(" passed") for line in done.stdout.splitlines()[-2:]] == [1, 1]


@pytest.mark.parametrize("tier", [Path(half[-1]).name for half in HALVES])
def test_the_suite_fails_if_either_half_does_and_says_last_what_failed(tmp_path, tier):
    done = run_halves(tmp_path, **{tier: "def test_it(): raise SystemError('of its own')"})
    assert done.returncode == 1, done.stdout
    assert any("FAILED" in line and tier in line and "of its own" in line for line in done.stdout.splitlines()[-4:])


def test_the_suite_says_last_what_was_left_behind(tmp_path):
    done = run_halves(tmp_path, broker=LEFT_BEHIND.format(pid_file=tmp_path / "pid"))
    assert done.returncode == 1, done.stdout
    assert any("sleep 300" in line for line in done.stdout.splitlines()[-4:]), done.stdout
