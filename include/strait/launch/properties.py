"""The Spark properties and environment of an application: Strait's own, then those of its submission, then the link's
`spark.conf`, which takes precedence."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from strait.config.links import Spark
from strait.errors import SetupError
from strait.text import plural

_FOLDER = Path(__file__).parent
LOGGING = _FOLDER / "log4j2.properties"
"""The Log4j configuration of a driver's JVM."""

TASK_ATTEMPTS = 1_000_000
"""Spark counts the failures of a task over its whole life, and fails the application at this limit. A slot is one task
for months, so `strait.spark.deaths` counts failures instead."""


def spark_properties(
    name: str, slots: int, spark: Spark, scratch: Path, java_options: str = "", *, evaluates: bool = False
) -> dict[str, str]:
    """Return all properties of an application. All temporary files go below ``scratch``: a killed JVM removes none.

    Args:
        java_options: additional options for the driver's JVM.
        evaluates: see `evaluating`.

    Raises:
        SetupError: this machine has fewer cores than slots.
    """
    properties = {
        "spark.app.name": name,
        "spark.driver.memory": spark.driver_memory,
    }
    properties |= _local(name, slots) if spark.master == "local" else standalone_properties(slots, spark.master)
    own = own_properties(f'"-Dlog4j2.configurationFile={LOGGING}" "-Djava.io.tmpdir={scratch}" {java_options}')
    sockets = scratch if spark.master == "local" and len(os.fsencode(scratch)) <= _LONGEST_FOLDER else _SOCKETS
    return evaluating(own | properties, evaluates=evaluates, sockets=sockets) | dict(spark.conf)


def spark_environment(spark: Spark, scratch: Path) -> dict[str, str]:
    """Return the settings that Spark reads only from its environment."""
    environment = {
        "SPARK_LOCAL_DIRS": str(scratch),
        # Otherwise Spark uses the first python3 on PATH, which lacks the libraries that the workers import.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    # A local master communicates only with its own processes.
    return environment | ({"SPARK_LOCAL_IP": "127.0.0.1"} if spark.master == "local" else {})


def written(properties: Mapping[str, str]) -> str:
    """Return the properties in the format that java.util.Properties reads."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in properties.items())


def _local(name: str, slots: int) -> dict[str, str]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if slots > cores:
        raise SetupError(
            f"application {name}: needs {plural(slots, 'core')} for its {plural(slots, 'slot')}, this machine has {cores}",
            hint="set fewer `slots` for its task group, or set `spark.master` to a Spark cluster",
        )
    return {
        # One thread more than slots, for Spark's own jobs: if slots held every thread, these would wait forever. The
        # second number is needed because plain local[N] does not retry a failed task.
        "spark.master": f"local[{slots + 1},{TASK_ATTEMPTS}]",
    }


def standalone_properties(slots: int, master: str) -> dict[str, str]:
    """Return the properties that an application requests from a Spark Standalone cluster."""
    return {
        "spark.master": master,
        "spark.cores.max": str(slots),
        "spark.task.maxFailures": str(TASK_ATTEMPTS),
        "spark.executor.memory": "512m",
        "spark.executor.defaultJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }


_QUICK = " -XX:TieredStopAtLevel=1"
_YOUNG = " -XX:MaxNewSize=48m"
_SOCKETS = Path("/tmp")  # noqa: S108  on each host; Spark gives sockets names of their own, and only their owner may connect
_LONGEST_FOLDER = 64
"""Bytes: Linux permits 107 for a socket's path, and Spark's names have 43."""


def evaluating(properties: Mapping[str, str], *, evaluates: bool, sockets: Path = _SOCKETS) -> dict[str, str]:
    """Return the properties of an application, changed if it evaluates expressions on records.

    Its JVMs then compile thoroughly, which triples their speed. JVMs that only schedule do not: it would cost seconds of CPU
    at each start. New objects get little memory: rows are needed for a moment, and however much there is would all be used.
    And Python processes have Unix domain sockets: over TCP, the end of a small batch waits for the acknowledgment of its
    beginning, tens of milliseconds at each step.

    Args:
        sockets: directory of the sockets, on each host.
    """
    if not evaluates:
        return dict(properties)
    thorough = {
        name: value.replace(_QUICK, _YOUNG) if name.endswith(".defaultJavaOptions") else value
        for name, value in properties.items()
    }
    return thorough | {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(sockets),
    }


def own_properties(java_options: str) -> dict[str, str]:
    """Return the properties that every application passes to Spark, with additional options for the driver's JVM."""
    lines = (_FOLDER / "spark.properties").read_text(encoding="utf-8").splitlines()
    properties = dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    properties["spark.driver.defaultJavaOptions"] = (
        f"{properties['spark.driver.defaultJavaOptions']} {java_options}".rstrip()
    )
    return properties


def _escaped(text: str) -> str:
    for raw, escaped in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("=", "\\="), (":", "\\:"), (" ", "\\ ")):
        text = text.replace(raw, escaped)
    return text
