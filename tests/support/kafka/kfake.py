"""Brokers that are not Apache Kafka's: kfake of franz-go, with requests taken away. Needs Go."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from strait.config import home

_SOURCES = Path(__file__).parents[1] / "kfake"

WITHOUT_LOG_DIRS: Mapping[int, int] = {35: -1}
WITHOUT_PRODUCERS: Mapping[int, int] = {61: -1}
WITHOUT_EPOCHS: Mapping[int, int] = {23: -1}
WITHOUT_ACLS: Mapping[int, int] = {29: -1, 30: -1, 31: -1}
WITHOUT_TRANSACTIONS: Mapping[int, int] = {24: -1, 25: -1, 26: -1, 28: -1}
SERVERLESS: Mapping[int, int] = {0: 9, 1: 12, 2: 6, 3: 11, 22: 4, 23: 4, 35: -1, 61: -1, 65: -1, 29: -1, 30: -1, 48: -1}
"""As a service has it that serves producers and consumers alone."""
TOO_OLD: Mapping[int, int] = {0: 7, 1: 10}


@dataclass(frozen=True)
class OtherBrokers:
    """Addresses of a cluster that runs."""

    bootstrap: str

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(range(len(self.bootstrap.split(","))))

    @property
    def client_properties(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap}


@contextmanager
def kfake(most: Mapping[int, int], brokers: int = 1) -> Iterator[OtherBrokers]:
    """Brokers for as long as the block runs. ``most``: API key -> the highest version that is served, -1 for none."""
    cut = ",".join(f"{key}={version}" for key, version in most.items())
    with subprocess.Popen(
        [_built(), "-brokers", str(brokers), "-most", cut], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield OtherBrokers(process.stdout.readline().strip())
        finally:
            process.stdin.close()


@cache
def _built() -> Path:
    """Compiled once for this machine, and again when its source has changed."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go on this machine, which kfake is made with")
    sources = sorted(path for path in _SOURCES.iterdir() if path.name in ("main.go", "go.mod", "go.sum"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    program = home.home() / f"kfake-{digest}"
    if not program.is_file():
        partial = program.with_name(f".{program.name}-{os.getpid()}")
        subprocess.run([go, "build", "-o", partial, "."], cwd=_SOURCES, check=True, timeout=500)
        partial.replace(program)
    return program
