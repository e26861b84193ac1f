"""How many slots an application can run at once. A slot never yields its core: one slot too many would wait for ever."""

import time

from pyspark.sql import SparkSession

from strait.errors import SetupError

_EXECUTORS_SECONDS = 60.0


def require_cores(session: SparkSession, slots: int) -> int:
    """The number of slots that can run at once; waits a while for a cluster's executors.

    Raises:
        TooFewCores: fewer than ``slots``.
    """
    deadline = time.monotonic() + _EXECUTORS_SECONDS
    while (cores := _cores(session)) < slots and time.monotonic() < deadline and not _is_local(session):
        time.sleep(0.2)
    if cores < slots:
        raise TooFewCores(slots, cores)
    return cores


class TooFewCores(SetupError):
    """The plan has more slots than this application has cores. Submitted again, it gets as many as the plan says."""

    def __init__(self, slots: int, cores: int) -> None:
        super().__init__(
            f"running {slots} slots: needs {slots} cores, has {cores}; resubmit",
            hint="give the Spark cluster more cores or the task group fewer slots, if that does not help",
        )


def _is_local(session: SparkSession) -> bool:
    return str(session.sparkContext.master).startswith("local")


def _cores(session: SparkSession) -> int:
    """By Spark's own list of executors; one thread of a local master is kept for Spark's other jobs."""
    executors = session.sparkContext._jsc.sc().statusStore().executorList(True)  # noqa: SLF001  no Python API has it
    cores = sum(executors.apply(index).totalCores() for index in range(executors.size()))
    return int(cores) - 1 if _is_local(session) else int(cores)
