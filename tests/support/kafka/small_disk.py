"""A disk of a size that a test chooses, and changes: a RAM disk, mounted for as long as the block lasts. That takes
rights."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


class SmallDisk:
    """``folder`` is where it is mounted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def resize(self, *, free_bytes: int) -> None:
        """Leave just so much room."""
        found = os.statvfs(self.folder)
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        _run("mount", "-o", f"remount,size={used + free_bytes}", str(self.folder))


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """Raises subprocess.CalledProcessError where nobody may mount."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder))
    try:
        yield SmallDisk(folder)
    finally:
        _run("umount", "--lazy", str(folder))


@cache
def can_mount() -> bool:
    """Whether this process may mount a disk."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder), 1 << 20):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30)
