"""Unpack a package in the working directory of a driver, then run the package's application with the package's Python.

The launcher copies this file next to each spec. It runs before anything of Strait can be imported: Spark unpacks
archives for executors, but a Standalone cluster starts the driver's Python first.
"""

import os
import shutil
import sys
import tarfile
import time
from pathlib import Path
from typing import NoReturn

STARTS, WINDOW_SECONDS = 5, 600.0
"""See RESTART_LIMIT and RESTART_WINDOW_SECONDS in strait.launch.applications."""


def main() -> NoReturn:
    archive, *arguments = sys.argv[1:]
    environment = Path("environment").resolve()
    try:
        if not environment.is_dir():  # a restarted driver has it
            _unpack(archive, environment)
        python = str(environment / "bin" / "python")
        os.execv(python, [python, str(environment / "replicate.py"), *arguments])  # noqa: S606
    except Exception as error:  # noqa: BLE001  damage shows in many ways
        sys.stderr.write(f"strait: package {archive}: cannot be used on this host: {error}\n")
        sys.exit(_failed(Path(os.environ["STRAIT_SUBMISSION"])))


def _unpack(archive: str, environment: Path) -> None:
    partial = environment.with_name(f"environment.{os.getpid()}")
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(partial, filter="data")
        partial.replace(environment)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _failed(submission: Path) -> int:
    """Record this start and return the exit code: 1 to be started again, 0 if the end is final, as in
    `strait.launch.supervised`."""
    if (submission / "stop").exists() or (submission / "exit").exists():
        return 0
    now_ms = time.time_ns() // 1_000_000
    with (submission / "attempts").open("a+", encoding="utf-8") as file:
        file.write(f"{now_ms} {os.environ.get('SPARK_DRIVER_LOG_URL_STDOUT', '')}\n")
        file.seek(0)
        starts = [int(line.partition(" ")[0]) for line in file]
    if sum(start >= now_ms - WINDOW_SECONDS * 1000 for start in starts) < STARTS:
        return 1
    written = submission / f"exit.{os.getpid()}"
    written.write_text("1\n", encoding="ascii")
    written.replace(submission / "exit")  # a reader sees all of it or nothing
    return 0


if __name__ == "__main__":
    main()
