"""``python -m support.slot_process SPEC SLOT``: one slot, epoch after epoch, until the plan is stopped or its parent is gone."""

import os
import sys
from pathlib import Path

from strait.engine.slot import run_epoch
from strait.spec import AppSpec

if __name__ == "__main__":
    spec = AppSpec.read(Path(sys.argv[1]))
    parent = os.getppid()
    epoch = 0
    while True:
        epoch += 1
        rows = run_epoch(spec, int(sys.argv[2]), epoch, "by hand", lambda: os.getppid() != parent)
        if not rows:
            break
