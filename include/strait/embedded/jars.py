"""Fetch Kafka's broker, tools and MirrorMaker once, as Maven artifacts, with the Ivy that PySpark includes.

``python -m strait.embedded.jars`` fetches them now and prints the directory.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from strait.config import home
from strait.errors import SetupError
from strait.launch.java import build_of, find_java
from strait.launch.step import run_step

KAFKA_VERSION = "4.3.1"
LOG4J_VERSION = "2.25.4"
REPOSITORY_VARIABLE = "DEFAULT_ARTIFACT_REPOSITORY"  # Spark's name for the same setting

_ATTEMPTS = 3  # Ivy gives up at the first connection error; files that it has already stay in its cache
_EXPECTED = 93  # number of modules, to show progress; not checked
_HERE = Path(__file__).parent
CHECKSUMS = _HERE / "jars.sha256"
"""Checksums as ``sha256sum kafka-*/*.jar`` prints them in the directory of jars."""


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """Return the directory with every jar of this version of Kafka, fetched now if this machine does not have it yet.

    Only the default version comes with MirrorMaker; versions before 4.0 come with ZooKeeper.

    The directory appears complete or not at all, and callers in other processes wait for the first one.
    """
    return fetched(
        f"kafka-{version}",
        f"Kafka {version}",
        _HERE / _ivy_file(version),
        {"kafka.version": version, "log4j.version": LOG4J_VERSION},
        size="" if before_4(version) else ", about 55 MB",
    )


def fetched(name: str, what: str, ivy_file: Path, versions: Mapping[str, str], *, size: str = "") -> Path:
    """Return the directory ``name`` beside Kafka's jars with all files that an Ivy file lists, fetched now if it is
    missing.

    Args:
        ``what``: name of the download, human-readable.
        versions: property of the Ivy file -> version.
    """
    folder = home.home() / "jars" / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / ".lock"):
        if not folder.is_dir():
            _fetch(folder, what, ivy_file, versions, size)
    return folder


def classpath(version: str = KAFKA_VERSION) -> str:
    """Return the class path for ``java -cp``: every jar of Kafka."""
    return f"{kafka_jars(version)}/*"


def class_data() -> Path:
    """Return the path of the class-data archive of this version of Kafka for this machine's Java; see
    strait.embedded.class_data."""
    return kafka_jars().with_name(f"kafka-{KAFKA_VERSION}.{build_of(find_java())}.jsa")


def _ivy_file(version: str) -> str:
    if version == KAFKA_VERSION:
        return "ivy.xml"
    return "ivy-older.xml" if before_4(version) else "ivy-brokers.xml"


def before_4(version: str) -> bool:
    """Whether these brokers may run on ZooKeeper, and log through log4j 1."""
    return int(version.split(".")[0]) < 4


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path, what: str, ivy_file: Path, versions: Mapping[str, str], size: str) -> None:
    mirror = os.environ.get(REPOSITORY_VARIABLE)
    repository = mirror or "Maven Central"
    cache = folder.parent / "ivy-cache"
    console = Console(stderr=True)
    console.print(f"Fetching {what} from {repository} (once{size})")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as scratch:
        retrieved = Path(scratch) / "jars"
        command = _ivy(ivy_file, versions, mirror, cache, retrieved)
        for attempt in range(1, _ATTEMPTS + 1):
            code, output = _run_ivy(command, console)
            if code == 0:
                break
            if attempt == _ATTEMPTS:
                raise SetupError(
                    f"setup: fetching {what} from {repository}: {_cause(output)}",
                    hint="check this machine's network and proxy, or name a mirror of Maven Central "
                    f"in {REPOSITORY_VARIABLE}",
                )
        try:
            _verify(folder.name, retrieved, repository)
            retrieved.rename(folder)
        finally:
            shutil.rmtree(cache)
    console.print(f"{what} is in {folder}")


def _verify(name: str, retrieved: Path, repository: str) -> None:
    """Compare the fetched files with their checksums in `CHECKSUMS`, which cover the versions used by default. For
    other versions only Ivy has compared them, with the repository's own checksums. Raises SetupError."""
    lines = (line.split() for line in CHECKSUMS.read_text(encoding="ascii").splitlines())
    known = {file: checksum for checksum, file in lines if file.startswith(f"{name}/")}
    for jar in sorted(retrieved.iterdir()) if known else ():
        with jar.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if known.get(f"{name}/{jar.name}") != found:
            raise SetupError(
                f"setup: {jar.name} from {repository} is not the file that Strait was made with: its SHA-256 is {found}",
                hint="do not use it, and tell who runs that repository",
            )


def _ivy(ivy_file: Path, versions: Mapping[str, str], mirror: str | None, cache: Path, retrieved: Path) -> list[str]:
    return [
        str(find_java()),
        *_proxy_options(),
        *(["-Dmaven.resolver=mirror", f"-Dmaven.repository={mirror}"] if mirror else ["-Dmaven.resolver=central"]),
        *(f"-D{name}={version}" for name, version in versions.items()),
        *("-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *("-settings", str(_HERE / "ivysettings.xml"), "-ivy", str(ivy_file)),
        *("-cache", str(cache), "-confs", "default"),
        *("-retrieve", f"{retrieved}/[artifact]-[revision].[ext]"),
    ]


def _ivy_jar() -> Path:
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise SetupError("setup: looking for Ivy: PySpark is not installed", hint="run `make install`")
    folder = Path(pyspark.origin).parent / "jars"
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise SetupError(f"setup: looking for Ivy: {folder} has no ivy-*.jar", hint="reinstall pyspark")
    return found[-1]


def _proxy_options() -> list[str]:
    """Return Java's proxy options, since Java does not read ``https_proxy`` and its relatives automatically."""
    options = []
    for scheme, address in urllib.request.getproxies().items():
        proxy = urllib.parse.urlsplit(address)
        if scheme in ("http", "https") and proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    return options


def _run_ivy(command: list[str], console: Console) -> tuple[int, list[str]]:
    output = []
    resolved = downloaded = 0
    with (
        console.status("Ivy starts") as status,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy,
    ):
        assert ivy.stdout is not None
        for line in map(str.strip, ivy.stdout):
            output.append(line)
            resolved += line.startswith("found ")
            downloaded += line.startswith("[SUCCESSFUL")
            status.update(f"{resolved} of {_EXPECTED} modules resolved, {downloaded} downloaded")
    return ivy.returncode, output


def _cause(output: list[str]) -> str:
    """Return the most informative line of Ivy's output, which ends with pages of consequences."""
    telling = ("Server access error", "Host ", "module not found", "Exception")
    for word in telling:
        for line in output:
            if word in line:
                return line
    return output[-1] if output else "Ivy said nothing"


if __name__ == "__main__":
    sys.exit(run_step(kafka_jars))
