"""Processes that cannot outlive this one, however it ends: the kernel kills them."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from strait.embedded.detached import Detached
from strait.errors import SetupError
from strait.launch.processes import with_parent

# To the kernel the parent is the thread that started the child. This one lives as long as the process does, so that
# it does not matter which thread calls `start_leashed`.
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")


def start_leashed(
    process: Detached, argv: Sequence[str], *, environment: Mapping[str, str], log: Path, directory: Path
) -> None:
    """Start a process as ``process.start`` does; it dies with this process."""
    leashed = with_parent(argv)
    if leashed is None:
        raise SetupError(
            f"{argv[0]}: starting it: there is no `setpriv` on PATH", hint="install util-linux 2.33 or later"
        )
    _STARTER.submit(process.start, leashed, environment=environment, log=log, directory=directory).result()
