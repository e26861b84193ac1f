"""Add bytecode to the archive from which Spark's Python processes import PySpark.

Python does not cache the bytecode of modules in an archive. So each of these processes, one per slot and more at
startup, compiles two megabytes of source again: half a second of CPU, while Spark allows it ten seconds to report
(SPARK's ``PythonWorkerFactory``). ``python -m strait.launch.bytecode`` adds the bytecode, once; `make install` runs it.
"""

import py_compile
import sys
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from strait.errors import SetupError
from strait.launch.spark_home import find_spark_submit
from strait.launch.step import run_step


def make(archive: Path | None = None) -> Path:
    """Add bytecode to PySpark's archive, or to ``archive``, and return its path. Does nothing if it has some. A Python
    of another version imports the source as before. Raises SetupError."""
    archive = archive or find_spark_submit().parents[1] / "python" / "lib" / "pyspark.zip"
    try:
        with ZipFile(archive) as packed:
            if not any(name.endswith(".pyc") for name in packed.namelist()):
                _replace(archive, packed)
    except OSError as error:
        raise SetupError(f"bytecode of PySpark: {error}") from error
    return archive


def _replace(archive: Path, packed: ZipFile) -> None:
    """Replace the archive by another file, since it may be a link to one that other environments use too."""
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=f".{archive.name}-") as scratch:
        folder, whole = Path(scratch) / "sources", Path(scratch) / archive.name
        packed.extractall(folder)
        with ZipFile(whole, "w", ZIP_DEFLATED) as compiled:
            for entry in packed.infolist():
                compiled.writestr(entry, packed.read(entry))
                if entry.filename.endswith(".py"):
                    source = folder / entry.filename
                    py_compile.compile(
                        str(source),
                        f"{source}c",
                        str(archive / entry.filename),
                        doraise=True,
                        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                    )
                    compiled.write(f"{source}c", f"{entry.filename}c")
        whole.chmod(archive.stat().st_mode)
        whole.replace(archive)


if __name__ == "__main__":
    sys.exit(run_step(make))
