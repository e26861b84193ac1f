"""Find the Java that Spark, brokers, Ivy and MirrorMaker run on.

``python -m strait.launch.java`` prints its path, or how to install it if there is none.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from strait.errors import SetupError
from strait.launch.step import run_step

MINIMUM_VERSION = 17
INSTALL_HINT = (
    f"install Java {MINIMUM_VERSION} or later (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "others: https://adoptium.net) and put it on PATH or into JAVA_HOME"
)

_VERSION_LINE = re.compile(r'version "(?:1\.)?(\d+)')  # "17.0.15", and "1.8.0_292" for Java 8


def find_java() -> Path:
    """Return the first ``java`` that is new enough: from ``JAVA_HOME``, else from ``PATH``. Raises SetupError."""
    rejected = []
    for place, java in _candidates():
        version = _version(java)
        if version is not None and version >= MINIMUM_VERSION:
            return java
        rejected.append(f"{place}: {java} " + ("does not run" if version is None else f"is Java {version}"))
    found = "; ".join(rejected) or "neither JAVA_HOME nor PATH has one"
    raise SetupError(f"setup: looking for Java {MINIMUM_VERSION} or later: {found}", hint=INSTALL_HINT)


def inherited(java: Path) -> dict[str, str]:
    """Return this process's environment for one with Spark on ``java``: without Airflow's settings and secrets, which its
    tasks have, and without another ``JAVA_HOME``, which Spark would prefer to ``PATH``."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "_AIRFLOW"))}
    if java != Path(kept.get("JAVA_HOME", ""), "bin", "java"):
        kept.pop("JAVA_HOME", None)
    return kept


def _candidates() -> Iterator[tuple[str, Path]]:
    if java_home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(java_home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)


def _version(java: Path) -> int | None:
    """Return the feature release, or None if this file cannot be run or prints no version."""
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION_LINE.search(shown.stderr + shown.stdout)
    return int(match.group(1)) if match else None


def build_of(java: Path) -> str:
    """Return an identifier of this exact build of Java: class-data archives (JEP 350) work with no other."""
    java = java.resolve()
    facts = java.stat()
    return hashlib.sha256(f"{java} {facts.st_size} {facts.st_mtime_ns}".encode()).hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(run_step(find_java))
