"""What an application and its launcher tell each other through the submission's folder."""

from pathlib import Path

import pytest

from strait.errors import ConfigError
from strait.launch import supervised
from strait.launch.applications import RESTART_LIMIT
from strait.launch.base import EXIT_CONFIG, EXIT_FAILED, EXIT_NEEDS_MORE_CORES


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
