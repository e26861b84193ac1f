"""Unpacks a package in the working directory of a driver, then runs the package's application with the package's Python.

The launcher writes a copy of this file beside each spec. It runs before anything of Strait can be imported: Spark unpacks
archives for executors, but in a Standalone cluster it starts the driver's Python first.
"""

import os
import shutil
import sys
import tarfile
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    archive, *arguments = sys.argv[1:]
    environment = Path("environment").resolve()
    if not environment.is_dir():  # a driver that is started again has it
        partial = environment.with_name(f"environment.{os.getpid()}")
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(partial, filter="data")
            partial.replace(environment)
        except (OSError, tarfile.TarError) as error:
            sys.exit(f"strait: package {archive}: cannot be unpacked on this host: {error}")
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    python = str(environment / "bin" / "python")
    os.execv(python, [python, str(environment / "replicate.py"), *arguments])  # noqa: S606


if __name__ == "__main__":
    main()
