"""The commands that the README names."""

import os
import subprocess
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_make_alone_lists_every_command_that_people_type():
    shown = subprocess.run(["make"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    listed = {line.split()[1] for line in shown.splitlines()}
    assert listed >= {"install", "demo", "test", "check", "lock", "bench"}


def test_the_lock_pins_what_requirements_asks_for():
    def pins(name: str) -> set[str]:
        lines = (PROJECT / name).read_text(encoding="utf-8").splitlines()
        return {line.split("#")[0].split(";")[0].strip().lower() for line in lines} - {""}

    assert pins("requirements.txt") <= pins("requirements.lock"), "run `make lock`"


def test_continuous_integration_runs_the_whole_suite_without_skips():
    script = PROJECT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "CI=true exec make test" in script.read_text(encoding="utf-8")
