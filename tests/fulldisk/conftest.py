"""An Airflow whose home is a small disk. `make fulldisk` runs these tests, as root."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

collect_ignore_glob = [] if "fulldisk" in os.environ.get("STRAIT_SITES", "") else ["*"]

SIZE = "150m"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with `airflow` in it, which is a disk of its own."""
    home = tmp_path / "airflow"
    home.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", home], check=True)
    yield tmp_path
    subprocess.run(["umount", "--lazy", home], check=True)
