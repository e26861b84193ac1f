"""A class-data archive for Spark's driver (JEP 350). With it an application starts some seconds sooner and uses half
the CPU for that, since the JVM maps its classes instead of reading and verifying them one by one.

``python -m strait.launch.class_data`` creates it, once for each Java and pyspark; `make install` runs it. Without it,
or if Java or pyspark have changed since, a driver starts as it would without this module.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import strait
from strait.config.links import Spark
from strait.errors import SetupError
from strait.launch.java import build_of, find_java
from strait.launch.properties import spark_environment, spark_properties, written
from strait.launch.spark_home import find_spark_submit
from strait.launch.step import run_step

_TRAINING = Path(strait.__file__).with_name("spark") / "class_data_training.py"
_SECONDS = 300.0


def option(spark_home: Path, java: Path) -> str:
    """Return the JVM option for a driver of this Spark; "" if there is no archive. The JVM uses the archive only with
    the jars and flags that it was created with, and silently ignores it otherwise."""
    archive = _archive(spark_home, java)
    return f'"-XX:SharedArchiveFile={archive}" -Xlog:cds=off -Xlog:class+path=off' if archive.is_file() else ""


def make(spark_home: Path) -> Path:
    """Run a small query like an application's, have its JVM archive the classes it has loaded, and return the archive.
    Does nothing if there is one.

    Raises:
        SetupError: Spark does not start, or its JVM writes no archive.
    """
    java = find_java()
    archive = _archive(spark_home, java)
    if archive.is_file():
        return archive
    with tempfile.TemporaryDirectory(prefix="strait-class-data-") as scratch:
        folder = Path(scratch)
        fresh = archive.with_name(f".{archive.name}.{folder.name}")
        properties = written(spark_properties("class-data", 1, Spark(), folder, f'"-XX:ArchiveClassesAtExit={fresh}"'))
        (folder / "spark.properties").write_text(properties, encoding="utf-8")
        command: list[str | Path] = [
            spark_home / "bin" / "spark-submit",
            "--properties-file",
            folder / "spark.properties",
            _TRAINING,
            folder,
        ]
        environment = os.environ | spark_environment(Spark(), folder) | {"SPARK_HOME": str(spark_home)}
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd=folder
            )
            if done.returncode or not fresh.is_file():
                said = (done.stderr or done.stdout).strip().splitlines()[-1:]
                raise SetupError(f"class data of Spark: exit code {done.returncode}, no archive: {' '.join(said)}")
            fresh.replace(archive)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SetupError(f"class data of Spark: {error}") from error
        finally:
            fresh.unlink(missing_ok=True)
    return archive


def _archive(spark_home: Path, java: Path) -> Path:
    """Return the path of the archive, next to the jars so that it is deleted with them."""
    return spark_home / f"class-data.{build_of(java)}.jsa"


if __name__ == "__main__":
    sys.exit(run_step(lambda: make(find_spark_submit().parents[1]), otherwise="; applications work without it"))
