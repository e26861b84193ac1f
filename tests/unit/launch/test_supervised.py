"""What an application and its launcher tell each other through the submission's folder."""

import os
import runpy
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from strait.errors import ConfigError
from strait.launch import supervised
from strait.launch.applications import RESTART_LIMIT, RESTART_WINDOW_SECONDS
from strait.launch.base import EXIT_CONFIG, EXIT_FAILED, EXIT_NEEDS_MORE_CORES, REPLICATE
from strait.launch.standalone import unpack


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in supervised.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tmp_path


def test_each_start_says_where_its_log_is_and_that_copying_has_not_begun(folder, monkeypatch):
    (folder / "started").touch()
    for number in (1, 2):
        monkeypatch.setenv("SPARK_DRIVER_LOG_URL_STDOUT", f"http://worker:{number}/logPage/?driverId=driver-{number}")
        assert supervised.begin()
        assert supervised.log_address(folder) == f"http://worker:{number}/logPage/?driverId=driver-{number}"
    assert not (folder / "started").exists()


def test_one_that_was_asked_to_stop_does_not_begin_again(folder):
    assert supervised.begin()
    assert not supervised.stop_asked()
    supervised.ask_to_stop(folder)
    assert supervised.stop_asked()
    assert not supervised.begin()


@pytest.mark.parametrize("exit_code", [0, EXIT_CONFIG, EXIT_NEEDS_MORE_CORES])
def test_an_end_that_another_start_cannot_mend_is_final(folder, exit_code):
    assert supervised.begin()
    assert supervised.end(exit_code) == 0
    assert (folder / "exit").read_text() == f"{exit_code}\n"
    assert not supervised.begin()


def test_a_failure_is_left_to_the_cluster_but_not_for_ever(folder):
    for _ in range(RESTART_LIMIT - 1):
        assert supervised.begin()
        assert supervised.end(EXIT_FAILED) == EXIT_FAILED
    assert supervised.begin()
    assert supervised.end(EXIT_FAILED) == 0
    assert (folder / "exit").read_text() == f"{EXIT_FAILED}\n"


def test_failures_of_long_ago_do_not_count(folder):
    (folder / "attempts").write_text("1000 http://x\n" * RESTART_LIMIT)
    assert supervised.begin()
    assert supervised.end(EXIT_FAILED) == EXIT_FAILED


def test_a_folder_that_this_host_does_not_see_is_refused_and_ends_it_for_good(folder, monkeypatch):
    monkeypatch.setenv("STRAIT_SUBMISSION", str(folder / "elsewhere"))
    with pytest.raises(ConfigError, match=r"cannot be used on this host: No such file.*share STRAIT_HOME"):
        supervised.begin()
    assert supervised.end(EXIT_CONFIG) == 0
    supervised.ask_to_stop(folder / "elsewhere")


def test_one_that_nobody_supervises_ends_as_it_ends(monkeypatch, tmp_path):
    monkeypatch.setenv("STRAIT_SUBMISSION", str(tmp_path))
    assert supervised.begin()
    assert supervised.end(EXIT_CONFIG) == EXIT_CONFIG
    assert not supervised.stop_asked()
    assert list(tmp_path.iterdir()) == []


def test_what_fails_before_it_begins_counts_as_a_start(folder, monkeypatch):
    assert [supervised.fail_to_begin() for _ in range(RESTART_LIMIT)] == [EXIT_FAILED] * (RESTART_LIMIT - 1) + [0]
    assert (folder / "exit").read_text() == f"{EXIT_FAILED}\n"
    assert supervised.fail_to_begin() == 0
    monkeypatch.setenv("STRAIT_SUBMISSION", str(folder / "elsewhere"))
    assert supervised.fail_to_begin() == 0


def test_an_entry_point_that_lacks_a_library_is_not_started_for_ever(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["replicate.py", "--spec", "spec.json"])
    monkeypatch.setitem(sys.modules, "strait.spark.session", None)
    main = runpy.run_path(str(REPLICATE))["main"]
    assert [main() for _ in range(RESTART_LIMIT)] == [EXIT_FAILED] * (RESTART_LIMIT - 1) + [0]
    assert "ModuleNotFoundError" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["missing", "no archive", "cut off", "without a Python"])
def test_a_package_that_cannot_be_used_is_not_tried_for_ever(folder, monkeypatch, capsys, damage):
    archive = folder / "package.tar.gz"
    if damage != "missing":
        (folder / "file").write_bytes(os.urandom(100_000))
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(folder / "file", "file")
        whole = archive.read_bytes()
        archive.write_bytes({"no archive": b"x", "cut off": whole[:50_000], "without a Python": whole}[damage])
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["unpack.py", str(archive), "--spec", "spec.json"])
    assert [_exit_code(unpack.main) for _ in range(RESTART_LIMIT)] == [EXIT_FAILED] * (RESTART_LIMIT - 1) + [0]
    assert (folder / "exit").read_text() == f"{EXIT_FAILED}\n"
    assert not supervised.begin()
    assert _exit_code(unpack.main) == 0
    assert f"strait: package {archive}: cannot be used on this host: " in capsys.readouterr().err


def test_unpacking_counts_as_applications_do():
    assert (unpack.STARTS, unpack.WINDOW_SECONDS) == (RESTART_LIMIT, RESTART_WINDOW_SECONDS)


def _exit_code(main: Callable[[], NoReturn]) -> object:
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code
