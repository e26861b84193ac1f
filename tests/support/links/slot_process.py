"""``python -m support.links.slot_process SPEC SLOT UNLIKE``: one slot, until the plan is stopped or its parent is
gone. UNLIKE is JSON, what is unlike in this process: see ``EngineLink.start_slot``."""

import importlib
import json
import os
import sys
import time
from pathlib import Path

from strait.config.app_spec import AppSpec
from strait.engine.slot import run_slot


def change(place: str, value: float) -> None:
    """Only what is there: a constant that has got another name must not go unnoticed."""
    module_name, name = place.split(":")
    module = importlib.import_module(module_name)
    if not hasattr(module, name):
        raise AttributeError(f"there is no {place} to change")
    setattr(module, name, value)


def make_clock_jump(seconds: float) -> None:
    """Every other second the wall clock is that far off."""
    right = time.time
    time.time = lambda: right() + seconds * (int(time.monotonic()) % 2)


if __name__ == "__main__":
    spec = AppSpec.read(Path(sys.argv[1]))
    parent = os.getppid()
    unlike = json.loads(sys.argv[3])
    for place, value in unlike["changed"].items():
        change(place, value)
    if unlike["clock_jumps_seconds"]:
        make_clock_jump(unlike["clock_jumps_seconds"])
    while True:
        run_slot(spec, int(sys.argv[2]), f"by hand {os.getpid()}", lambda: os.getppid() != parent)
        if not spec.standby or os.getppid() != parent:
            break
        time.sleep(0.1)
