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
    plugins = ("-p", "support.no_skips", "-p", "support.no_leftovers")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-c", os.devnull, "--rootdir", folder, *options, file],
        env=os.environ | {"PYTHONPATH": str(SUPPORT), "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


SKIPPED = """
import pytest

from support.halves import HALVES
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


def test_the_suite_fails_if_either_half_does(tmp_path):
    for half in HALVES:
        for folder in half:
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / "test_sample.py").write_text("def test_it(): ...\n", encoding="utf-8")
    command = [sys.executable, SUPPORT / "support" / "halves.py", "-c", os.devnull, "--import-mode=importlib"]
    for half in HALVES:
        sample = tmp_path / half[-1] / "test_sample.py"
        sample.write_text("def test_it(): raise SystemError\n", encoding="utf-8")
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout
        assert "1 failed" in done.stdout
        assert done.stdout.count(" passed") == 2
        sample.write_text("def test_it(): ...\n", encoding="utf-8")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0
