"""When `strait run` restarts an application that runs but does not report, as a hanging one: by the rule of the monitor DAG."""

import math
import time
from collections.abc import Iterable, Mapping

from strait.cli.kept_application import KeptApplication
from strait.config.links import Spark
from strait.launch.base import Application
from strait.planning.status.health import IN_CLUSTER, ON_THIS_HOST, Patience, trouble_of
from strait.planning.status.status import Status
from strait.reasons import Reason
from strait.state.schema import Plan
from strait.waiting import unix_ms

_CURRENT_SECONDS = 30.0
"""Age after which the last statuses describe the present no more: a destination that does not respond shows none."""


def patience_of(spark: Spark) -> Patience:
    """Return how long applications with these settings may be silent."""
    return IN_CLUSTER if spark.deploy_mode == "cluster" else ON_THIS_HOST


class Silence:
    """Since when slots of a link do not report, by the statuses that were read one after another."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._since: dict[tuple[str, int], float] = {}
        self._slots: Mapping[str, int] = {}
        self._read_at = -math.inf

    def hear(self, statuses: Iterable[Status]) -> None:
        """Note which slots report, by the statuses of all task groups that were read now."""
        self._read_at = now = time.monotonic()
        groups = [status for status in statuses if not status.stopped]
        silent = [(status.group, slot.slot) for status in groups for slot in status.slots if slot.silent]
        self._since = {place: self._since.get(place, now) for place in silent}
        self._slots = {status.group: len(status.slots) for status in groups}

    def forget(self) -> None:
        """Start again: the statuses cannot be read, or the application is another one."""
        self._since, self._slots, self._read_at = {}, {}, -math.inf

    def silent(self, group: str) -> tuple[int, ...]:
        """Return the slots of a task group that were silent for longer than is permitted when statuses were read last."""
        if time.monotonic() - self._read_at > _CURRENT_SECONDS:
            return ()
        most = self._patience.silent_seconds
        return tuple(slot for (of, slot), since in self._since.items() if of == group and self._read_at - since > most)

    @property
    def is_total(self) -> bool:
        """Whether that is true of every slot of every task group that runs."""
        return bool(self._slots) and all(len(self.silent(group)) == slots for group, slots in self._slots.items())


def why_hangs(
    plan: Plan, found: Application | None, kept: KeptApplication, silent: tuple[int, ...], patience: Patience
) -> str:
    """Return why the application must be restarted; "": it need not be, or may still be starting."""
    running_seconds = time.monotonic() - kept.starting_at
    trouble = trouble_of(plan, found, silent, unix_ms(), patience, running_seconds=running_seconds)
    return trouble.detail if trouble is not None and trouble.reason is Reason.SLOT_SILENT else ""
