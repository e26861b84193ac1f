"""Check whether this host is fit to run Strait: programs, libraries, and free resources."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import psutil

from strait.errors import SetupError
from strait.launch.java import find_java
from strait.launch.spark_home import find_spark_submit
from strait.text import plural

OLDEST_PYTHON, FIRST_UNTRIED_PYTHON = (3, 11), (3, 14)
MOST_LOAD = 4.0
"""Runnable processes per core: above this a Python process of Spark may need longer than the ten seconds that Spark
gives it to start."""
LEAST_MEMORY_BYTES = 1 << 30
LEAST_DISK_BYTES = 2 << 30


class Verdict(StrEnum):
    """The result of one check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Check(NamedTuple):
    """One check. ``found``: the observed state; ``remedy``: the action to take, "" if none is needed."""

    subject: str
    verdict: Verdict
    found: str
    remedy: str = ""


def checks(folder: Path) -> Iterator[Check]:
    """Check this host, one property after the other. ``folder``: the directory that applications are started from."""
    yield python(sys.version_info[:2])
    yield _found("Java", lambda: str(find_java()), "")
    yield spark(_version("pyspark"), _version("pyspark-client"))
    yield _found("spark-submit", lambda: str(find_spark_submit()), "run `make install`")
    airflow = _version("apache-airflow")
    yield Check("Airflow", Verdict.OK, airflow or "not installed; only the DAGs need it")
    yield compiled()
    yield load(os.getloadavg()[0], os.cpu_count() or 1)
    yield memory(psutil.virtual_memory().available)
    yield disk(folder, shutil.disk_usage(folder).free)


def python(version: tuple[int, int]) -> Check:
    found = platform.python_version()
    if version < OLDEST_PYTHON:
        return Check("Python", Verdict.FAILED, found, "install Python 3.11 to 3.13")
    if version >= FIRST_UNTRIED_PYTHON:
        return Check("Python", Verdict.WARNING, f"{found}, not tested", "use Python 3.11 to 3.13")
    return Check("Python", Verdict.OK, found)


def spark(pyspark: str, client: str) -> Check:
    """Check PySpark. If the versions of the two differ, every Python process of Spark dies: they share files."""
    if not pyspark:
        return Check("PySpark", Verdict.FAILED, "not installed", "run `make install`, or pip install pyspark")
    if client and client != pyspark:
        found = f"{pyspark}, but pyspark-client is {client}"
        return Check("PySpark", Verdict.FAILED, found, f"pip install pyspark-client=={pyspark}")
    return Check("PySpark", Verdict.OK, pyspark)


def compiled() -> Check:
    from strait.wire.joining import COMPILED

    if COMPILED:
        return Check("compiled step", Verdict.OK, "there")
    remedy = "install a C compiler and Python's headers, then run `make -B install`"
    return Check("compiled step", Verdict.WARNING, "missing: small batches cost several times the CPU", remedy)


def load(processes: float, cores: int) -> Check:
    found = f"load {processes:.0f} on {plural(cores, 'core')}"
    if processes > MOST_LOAD * cores:
        return Check("load", Verdict.WARNING, found, "stop other work, or give the host more cores")
    return Check("load", Verdict.OK, found)


def memory(available: int) -> Check:
    found = f"{available / (1 << 30):.1f} GiB available"
    if available < LEAST_MEMORY_BYTES:
        return Check("memory", Verdict.WARNING, found, "an application needs about 1 GiB: free some")
    return Check("memory", Verdict.OK, found)


def disk(folder: Path, free: int) -> Check:
    found = f"{free / (1 << 30):.1f} GiB free for {folder}"
    if free < LEAST_DISK_BYTES:
        return Check("disk", Verdict.WARNING, found, "free some: logs, ledger and state of Spark need it")
    return Check("disk", Verdict.OK, found)


def _found(subject: str, look: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(subject, Verdict.OK, look())
    except SetupError as error:
        return Check(subject, Verdict.FAILED, error.message, remedy or error.hint)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
