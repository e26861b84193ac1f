"""Where and with what a benchmark ran: without this its numbers say nothing."""

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import psutil
import pyspark

from strait import __version__
from strait.config import home
from strait.embedded import jars
from strait.launch.java import find_java

_MODEL = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Machine:
    """This machine."""

    cpu: str
    cores: int
    memory_gib: float
    kernel: str
    load_average: float


def machine() -> Machine:
    """As it is now; the load average says whether others were using it."""
    model = _MODEL.search(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return Machine(
        cpu=model.group(1).strip() if model else platform.machine(),
        cores=os.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        kernel=platform.release(),
        load_average=round(os.getloadavg()[0], 2),
    )


def versions() -> dict[str, str]:
    """Of everything that has a part in the numbers."""
    java = subprocess.run([find_java(), "-version"], capture_output=True, text=True, check=True).stderr
    return {
        "strait": __version__,
        "kafka": jars.KAFKA_VERSION,
        "spark": pyspark.__version__,
        "python": platform.python_version(),
        "java": java.splitlines()[0].split('"')[1],
        "librdkafka": confluent_kafka.libversion()[0],
    }


def commit() -> str:
    """The commit that is checked out, with ``+`` when files differ from it; empty outside a checkout."""
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"],
        cwd=home.project_root(),
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip()
