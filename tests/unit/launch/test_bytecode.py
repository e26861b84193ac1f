"""Bytecode in the archive of PySpark."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from strait.errors import SetupError
from strait.launch import bytecode


def test_python_imports_the_bytecode(tmp_path: Path) -> None:
    """Of another file that has the archive's place: environments share it by hard links."""
    shared, archive = tmp_path / "shared.zip", tmp_path / "archive.zip"
    with ZipFile(shared, "w") as packed:
        packed.writestr("part/__init__.py", "")
        packed.writestr("part/one.py", "def fail():\n    raise RuntimeError\n")
    archive.hardlink_to(shared)

    bytecode.make(archive)
    made = archive.read_bytes()
    bytecode.make(archive)

    assert archive.read_bytes() == made
    assert ZipFile(shared).namelist() == ["part/__init__.py", "part/one.py"]
    program = "import part.one; print(part.one.__file__); part.one.fail()"
    ran = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(archive)}, capture_output=True, text=True, check=False
    )
    assert ran.stdout.strip() == str(archive / "part" / "one.pyc")
    assert f'File "{archive}/part/one.py", line 2, in fail' in ran.stderr


def test_an_archive_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"bytecode of PySpark: .*none\.zip"):
        bytecode.make(tmp_path / "none.zip")
