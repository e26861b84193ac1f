"""The package of an application: Strait and the libraries that it copies with, in one archive for the hosts of a
cluster.

    environment/  bin/python    the host's Python of the version in package.json, with the libraries in packages/
                  packages/     Strait, and every library except Spark's own, which the cluster has
                  replicate.py  the entry point of the driver
                  package.json  versions

``python -m strait.launch.package ARCHIVE`` writes it, from a checkout and from an installed package; `make package` runs it.
Equal versions give equal archives.
"""

import gzip
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import strait
from strait.config.home import shared
from strait.errors import SetupError, StraitError
from strait.launch.base import REPLICATE

ENVIRONMENT = "environment"
"""The directory that it is unpacked to, in the working directory of a driver or an executor."""

LIBRARIES = (
    "aiokafka",
    "cachetools",
    "confluent-kafka",
    "cramjam",
    "crc32c",
    "cryptography",
    "httpx",
    "kafka-python",
    "numpy",
    "pandas",
    "psutil",
    "pyarrow",
    "pydantic",
    "pyyaml",
    "regex",
)
"""Distributions, which are installed with their dependencies; versions are those of requirements.lock."""

SIGNER = "aws-msk-iam-sasl-signer-python"
"""Added if it is installed here; versions are those of requirements-msk.lock."""

_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
_PYTHON = f"""#!/bin/sh
# Python {_VERSION} of this host, with the libraries of this package before all others.
here=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH="$here/packages${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
exec python{_VERSION} "$@"
"""


def build(archive: Path) -> None:
    """Write the archive, with Strait as it runs here and the versions in its requirements.lock.

    Raises:
        SetupError: a library cannot be installed, or the archive cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="strait-package-") as scratch:
        environment = Path(scratch) / ENVIRONMENT
        packages = environment / "packages"
        signs = importlib.util.find_spec(SIGNER.replace("-", "_").removesuffix("_python")) is not None
        lock, more = ("requirements-msk.lock", (SIGNER,)) if signs else ("requirements.lock", ())
        _install(packages, "--constraint", shared() / lock, *LIBRARIES, *more)
        _add_strait(packages)
        remove_commands(packages)
        (environment / "bin").mkdir()
        (environment / "bin" / "python").write_text(_PYTHON, encoding="utf-8")
        (environment / "bin" / "python").chmod(0o755)
        shutil.copy(REPLICATE, environment)
        versions = {"strait": strait.__version__, "python": _VERSION, "machine": platform.machine()}
        (environment / "package.json").write_text(json.dumps(versions) + "\n", encoding="utf-8")
        archive.parent.mkdir(parents=True, exist_ok=True)
        partial = archive.with_name(f".{archive.name}")
        try:
            # Most of it is compiled code: a higher level would take four times as long to save a tenth of the size.
            with (
                partial.open("wb") as file,
                gzip.GzipFile("", "wb", 1, file, mtime=0) as packed,
                tarfile.open(fileobj=packed, mode="w") as tar,
            ):
                for path in sorted(environment.rglob("*")):
                    tar.add(path, str(path.relative_to(environment)), recursive=False, filter=_of_nobody)
            partial.replace(archive)
        except OSError as error:
            raise SetupError(f"package {archive}: writing it: {error.strerror}") from error
        finally:
            partial.unlink(missing_ok=True)


def _add_strait(packages: Path) -> None:
    """Add Strait: a checkout is built, and the files of an installed package are copied."""
    checkout = shared()
    if (checkout / "pyproject.toml").is_file():
        _install(packages, "--no-deps", checkout)
        # It has the path of the checkout, and times.
        shutil.rmtree(packages / f"strait-{strait.__version__}.dist-info", ignore_errors=True)
    else:
        here = Path(strait.__file__).resolve().parent
        shutil.copytree(here, packages / here.name, ignore=shutil.ignore_patterns("__pycache__"))


def remove_commands(packages: Path) -> None:
    """Remove the libraries' commands, which nothing runs there. Their first lines, and so their checksums in the lists of
    installed files, differ with the path of this host's Python."""
    shutil.rmtree(packages / "bin", ignore_errors=True)
    for record in packages.glob("*.dist-info/RECORD"):
        lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
        record.write_text("".join(line for line in lines if not line.startswith("bin/")), encoding="utf-8")


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove attributes that differ from build to build: times, owners, and the builder's umask."""
    member.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))  # 1980, the first year of a wheel's times
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


def _install(target: Path, *what: str | Path) -> None:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.is_file() else shutil.which("uv")
    tool = [uv, "pip"] if uv else [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    python = ["--python", sys.executable] if uv else []
    command = [*tool, "install", "--quiet", "--no-compile", *python, "--target", str(target), *map(str, what)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split()[-60:])
        raise SetupError(f"package: {tool[0]}: {said}")


def main() -> int:
    archive = Path(sys.argv[1]).resolve()
    try:
        build(archive)
    except StraitError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{archive}  {archive.stat().st_size / 1e6:.0f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
