"""How many slots an application can run at the same time. A slot never yields its core: one slot too many would wait
forever."""

from pyspark.sql import SparkSession

from strait.errors import SetupError
from strait.text import plural
from strait.waiting import tries

_POLL_SECONDS = 0.2


class TooFewCores(SetupError):
    """The plan has more slots than this application has cores. When submitted again, the application requests as many
    cores as the plan has slots."""

    def __init__(self, slots: int, cores: int) -> None:
        super().__init__(
            f"running {plural(slots, 'slot')}: needs {plural(slots, 'core')}, has {cores}; resubmit",
            hint="if this repeats, add cores to the Spark cluster or set fewer `slots` for the task group",
        )


def require_cores(session: SparkSession, slots: int) -> int:
    """Return the number of slots that can run at the same time. Waits for a cluster's executors as long as Spark itself
    would.

    Raises:
        TooFewCores: fewer than ``slots``.
    """
    for _ in tries(_executors_wait_seconds(session), _POLL_SECONDS):
        cores = _cores(session)
        if cores >= slots:
            return cores
    raise TooFewCores(slots, cores)


def _executors_wait_seconds(session: SparkSession) -> int:
    if _is_local(session):
        return 0
    conf = session.sparkContext._jsc.sc().conf()  # noqa: SLF001
    return int(conf.getTimeAsSeconds("spark.scheduler.maxRegisteredResourcesWaitingTime", "30s"))


def _cores(session: SparkSession) -> int:
    """Return the number of cores in Spark's own list of executors, which has no Python API. One thread of a local
    master is for Spark's own jobs."""
    executors = session.sparkContext._jsc.sc().statusStore().executorList(True)  # noqa: SLF001
    cores = sum(int(executors.apply(index).totalCores()) for index in range(executors.size()))
    return cores - 1 if _is_local(session) else cores


def _is_local(session: SparkSession) -> bool:
    return str(session.sparkContext.master).startswith("local")
