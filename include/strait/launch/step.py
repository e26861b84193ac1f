"""A step of installing, as a program of its own."""

import sys
from collections.abc import Callable

from strait.errors import StraitError


def run_step(step: Callable[[], object], *, otherwise: str = "") -> int:
    """Print what the step gives, or its error in one line; returns the exit code. ``otherwise``: what an error means for
    all else."""
    try:
        sys.stdout.write(f"{step()}\n")
    except StraitError as error:
        sys.stderr.write(f"{error}{otherwise}\n")
        return 1
    return 0
