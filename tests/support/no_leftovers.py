"""Pytest plugin: a run fails if a process that it started is still there at its end; the process is ended then.

Whatever the tests start inherits a mark in its environment, so orphans are found too.
"""

import os
import uuid

import psutil
import pytest

_MARK = "STRAIT_TEST_RUN"
_GRACE_SECONDS = 5.0
_found = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    os.environ[_MARK] = uuid.uuid4().hex
    config.stash[_found] = []


@pytest.hookimpl(trylast=True)  # after the session's fixtures have ended what is theirs
def pytest_sessionfinish(session: pytest.Session) -> None:
    _, left = psutil.wait_procs(_started_here(), timeout=_GRACE_SECONDS)
    for process in left:
        session.config.stash[_found].append(_describe(process))
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue  # it ended by itself after all
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if found := config.stash[_found]:
        terminalreporter.section("processes that the tests left behind", red=True)
        for line in found:
            terminalreporter.line(line)


def _started_here() -> list[psutil.Process]:
    mine = {child.pid for child in psutil.Process().children(recursive=True)}
    return [
        process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and (process.pid in mine or _is_marked(process)) and not _may_stay(process)
    ]


def _is_marked(process: psutil.Process) -> bool:
    try:
        return process.environ().get(_MARK) == os.environ[_MARK]
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return False


def _may_stay(process: psutil.Process) -> bool:
    """Zombies use nothing; Python's own helper processes end with this one."""
    try:
        helper = any("multiprocessing.resource_tracker" in word for word in process.cmdline())
        return helper or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid}: {' '.join(process.cmdline())[:300]}"
    except psutil.NoSuchProcess:
        return f"{process.pid}: gone by now"
