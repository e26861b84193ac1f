"""Run an installation step as a separate program."""

import sys
from collections.abc import Callable

from strait.errors import StraitError


def run_step(step: Callable[[], object], *, otherwise: str = "") -> int:
    """Print the step's result, or its error in one line, and return the exit code. ``otherwise``: appended to an error,
    to state its consequence."""
    try:
        sys.stdout.write(f"{step()}\n")
    except StraitError as error:
        sys.stderr.write(f"{error}{otherwise}\n")
        return 1
    return 0
