"""The nets under the suite: runs that should fail, do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.fixtures.running import look_at
from support.fixtures.waiting import eventually

SUPPORT = Path(__file__).parents[1]


def run_pytest(folder: Path, source: str, *options: str | Path, ci: str = "") -> subprocess.CompletedProcess[str]:
    command, environment = pytest_command(folder, source, *options, ci=ci)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def pytest_command(
    folder: Path, source: str, *options: str | Path, ci: str = ""
) -> tuple[list[str | Path], dict[str, str]]:
    file = folder / "test_sample.py"
    file.write_text(source, encoding="utf-8")
    plugins = ("-p", "support.fixtures.no_skips", "-p", "support.fixtures.no_leftovers")
    return (
        [sys.executable, "-m", "pytest", *plugins, "-c", os.devnull, "--rootdir", folder, *options, file],
        os.environ | {"PYTHONPATH": str(SUPPORT), "CI": ci},
    )


def running(pid: int) -> bool:
    try:
        return bool(list(look_at([psutil.Process(pid)])))
    except psutil.NoSuchProcess:
        return False


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


@pytest.mark.core
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
    assert not running(pid)


def test_what_a_worker_leaves_behind_fails_the_run_once_and_is_ended(tmp_path):
    pid_file = tmp_path / "pid"
    done = run_pytest(tmp_path, LEFT_BEHIND.format(pid_file=pid_file), "-n", "2")
    pid = int(pid_file.read_text(encoding="ascii"))
    assert done.returncode == 1, done.stdout
    assert done.stdout.count(f"{pid}: sleep 300") == 1, done.stdout
    assert not running(pid)


CRASHED = (
    LEFT_BEHIND
    + """
def test_that_ends_its_worker():
    import os
    os._exit(3)
"""
)


def test_what_a_crashed_worker_leaves_behind_is_found_too(tmp_path):
    pid_file = tmp_path / "pid"
    done = run_pytest(tmp_path, CRASHED.format(pid_file=pid_file), "-n", "1", "--max-worker-restart", "0")
    pid = int(pid_file.read_text(encoding="ascii"))
    assert done.returncode != 0, done.stdout
    assert f"{pid}: sleep 300" in done.stdout, done.stdout


def test_a_worker_does_not_end_what_another_one_still_uses(tmp_path):
    """The first file is over while the second's process is needed."""
    (tmp_path / "test_quick.py").write_text("def test_it(): ...")
    source = """
import subprocess, sys, time
def test_that_waits():
    with subprocess.Popen(["sleep", "2"]) as process:
        pass
    assert process.returncode == 0
"""
    done = run_pytest(tmp_path, source, "-n", "2", "--dist", "loadfile", tmp_path / "test_quick.py")
    assert done.returncode == 0, done.stdout


@pytest.mark.core
def test_a_skipped_integration_test_fails_a_run_of_workers_too(tmp_path):
    done = run_pytest(tmp_path, SKIPPED, "-n", "2", ci="true")
    assert done.returncode == 1, done.stdout
    assert "skipped, which is not allowed here: Skipped: no broker here" in done.stdout


ENDED = """
import os, subprocess, time
from pathlib import Path
import pytest
@pytest.fixture
def cleaned():
    yield
    Path("{folder}/cleaned").touch()
def test_that_waits(cleaned):
    shell = "sleep 300 & echo $! > {folder}/pid.new; mv {folder}/pid.new {folder}/pid"
    subprocess.run(["sh", "-c", shell], stdout=subprocess.DEVNULL, start_new_session=True)
    time.sleep(300)
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_process(
    tmp_path: Path, number: signal.Signals, workers: tuple[str, ...]
) -> None:
    command, environment = pytest_command(tmp_path, ENDED.format(folder=tmp_path), *workers)
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as run:
        eventually((tmp_path / "pid").exists, what="the test has started its process")
        left = int((tmp_path / "pid").read_text())
        run.send_signal(number)
    eventually(lambda: not running(left), what="its process has been ended")
    assert run.returncode != 0
    if number == signal.SIGTERM and not workers:
        assert (tmp_path / "cleaned").exists(), "fixtures were not left in order"
