"""Count how often slots fail. Spark runs a failed slot again, and would fail the whole application after a number of
failures in its life; here only several failures of a slot within a short time do."""

import logging
import time
from collections import defaultdict, deque
from typing import Any

from pyspark.sql import SparkSession

from strait.errors import StraitError
from strait.spark.failure import root_cause
from strait.text import plural

log = logging.getLogger(__name__)

MOST_DEATHS = 4
WINDOW_SECONDS = 600.0
_LOOK_SECONDS = 1.0
_NOT_ITS_FAULT = "exited unrelated to the running tasks"  # Spark's message for an executor that was removed
_MOST_TASKS = 1 << 20


class SlotKeepsDying(StraitError):
    """A slot fails repeatedly, and running it again does not help."""


class DeathCount:
    """The failures of each slot within the window. Pure."""

    def __init__(self) -> None:
        self._at: defaultdict[int, deque[float]] = defaultdict(deque)

    def died(self, slot: int, now: float, cause: str) -> None:
        """Count a failure; ``now`` is in seconds. Raises SlotKeepsDying if the slot failed too often."""
        times = self._at[slot]
        times.append(now)
        while times[0] < now - WINDOW_SECONDS:
            times.popleft()
        if len(times) > MOST_DEATHS:
            raise SlotKeepsDying(
                f"slot {slot} failed {plural(len(times), 'time')} within {WINDOW_SECONDS / 60:.0f} minutes, the last time: {cause}"
            )


class SlotDeaths:
    """Reads failures from Spark's own list of tasks."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._count = DeathCount()
        self._failed: dict[int, int] = {}  # stage -> number of its tasks that have failed, at the last poll
        self._seen: dict[int, set[int]] = {}  # stage -> IDs of these tasks that Spark still lists
        self._look_at = 0.0

    def look(self) -> None:
        """Count the failures since the last poll, at most once per second. Raises SlotKeepsDying."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        tracker = self._session.sparkContext.statusTracker()
        stages = {stage: tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()}
        failed = {stage: int(info.numFailedTasks) for stage, info in stages.items() if info is not None}
        for stage, count in failed.items():
            if count != self._failed.get(stage, 0):
                self._take(stage, int(stages[stage].currentAttemptId), now)
        self._failed = failed

    def _take(self, stage: int, attempt: int, now: float) -> None:
        """Count the failed tasks in Spark's own list of tasks, which has no Python API."""
        context: Any = self._session.sparkContext
        tasks = context._jsc.sc().statusStore().taskList(stage, attempt, _MOST_TASKS)  # noqa: SLF001
        failed = {task.taskId(): task for task in map(tasks.apply, range(tasks.size())) if task.status() == "FAILED"}
        new = failed.keys() - self._seen.get(stage, set())
        self._seen[stage] = set(failed)
        for task in (failed[number] for number in sorted(new)):
            message = task.errorMessage().get() if task.errorMessage().isDefined() else ""
            if _NOT_ITS_FAULT in message:
                continue
            cause = root_cause(message)
            log.warning("slot %d failed and is run again: %s", task.index(), cause)
            self._count.died(int(task.index()), now, cause)
