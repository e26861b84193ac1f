"""Bytecode in the archive from which Spark has its Python processes import PySpark.

Nothing keeps what Python compiles from an archive, so each of these processes, one for each slot and more at a start,
compiles two megabytes of source anew: half a second of CPU, while Spark gives it ten seconds to report (SPARK's
``PythonWorkerFactory``). ``python -m strait.launch.bytecode`` puts it in, once; `make install` does.
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
    """Put bytecode into the archive of PySpark, or another one. Does nothing if it has some. Another Python than this
    one imports the source as before. Raises SetupError."""
    archive = archive or find_spark_submit().parents[1] / "python" / "lib" / "pyspark.zip"
    try:
        with ZipFile(archive) as packed:
            if not any(name.endswith(".pyc") for name in packed.namelist()):
                _replace(archive, packed)
    except OSError as error:
        raise SetupError(f"bytecode of PySpark: {error}") from error
    return archive


def _replace(archive: Path, packed: ZipFile) -> None:
    """The archive may be a link to what other environments use too, so another file takes its place."""
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
