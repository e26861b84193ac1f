"""Which way of running applications a link asks for."""

from pathlib import Path

from strait.config.links import Spark
from strait.launch.base import Launcher
from strait.launch.local import LocalLauncher


def launcher_for(spark: Spark, directory: Path, *, parent_pid: int | None = None) -> Launcher:
    """The launcher of a link's applications.

    Args:
        spark: where they run.
        directory: what the launcher keeps of its submissions; two of one directory know of each other's.
        parent_pid: pid of the process that applications on this host may not outlive; None lets them run on.
    """
    return LocalLauncher(directory, parent_pid=parent_pid)
