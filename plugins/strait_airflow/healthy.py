"""The task that waits, without a worker, until a submitted application replicates."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from strait_airflow.graph import FAILED

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from strait.control.group_start import GroupStart
    from strait.planning.status.health import Start

LOOK_EVERY_SECONDS = 1.0
AFTER_TROUBLE_SECONDS = 5.0
_TROUBLES_MOST = 12
_THREADS = 4

_waiters = ThreadPoolExecutor(_THREADS, thread_name_prefix="strait-start")


class Healthy(BaseOperator):
    """Ends when each slot of a task group has reported after the submission, or fails with the cause.

    Args:
        submitted: the result of `submit`.
    """

    template_fields = ("submitted",)

    def __init__(self, *, link: str, submitted: Mapping[str, Any], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.link = link
        self.submitted = submitted

    def execute(self, context: "Context") -> None:
        where = self.submitted
        trigger = StartTrigger(
            link=self.link, group=where["group"], standby=where["standby"], since_ms=where["since_ms"]
        )
        self.log.info("application %s: waiting for the first report of each slot", where["name"])
        self.defer(trigger=trigger, method_name="never_resumed", timeout=timedelta(minutes=9))

    def never_resumed(self, context: "Context", event: Any) -> None:
        """Airflow requires a method to resume with; the trigger ends the task instead."""
        raise AssertionError(event)


class StartTrigger(BaseTrigger):
    """Follows the start of one application, and ends its task."""

    def __init__(self, *, link: str, group: str, standby: bool, since_ms: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.link = link
        self.group = group
        self.standby = standby
        self.since_ms = since_ms

    def serialize(self) -> tuple[str, dict[str, Any]]:
        where = {"link": self.link, "group": self.group, "standby": self.standby, "since_ms": self.since_ms}
        return "strait_airflow.healthy.StartTrigger", where

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from strait.text import printable

        ended = await self._ended()
        if ended.succeeded:
            self.log.info("%s", printable(ended.text))
            yield TaskSuccessEvent(xcoms={"return_value": ended.text})
        else:
            self.log.error("%s", printable(ended.text))
            yield TaskFailedEvent(xcoms={FAILED: "" if ended.exited else ended.text})

    async def _ended(self) -> "Start":
        from strait.errors import StraitError
        from strait.planning.status.health import Start
        from strait.text import printable

        loop, troubles = asyncio.get_running_loop(), 0
        waiting: GroupStart | None = None
        try:
            while True:
                try:
                    if waiting is None:
                        waiting = await loop.run_in_executor(_waiters, self._begin)
                    ended: Start | None = await loop.run_in_executor(_waiters, waiting.look)
                    if ended is not None:
                        return ended
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
                except StraitError as error:
                    troubles += 1
                    if troubles == _TROUBLES_MOST:
                        return Start(False, f"group {self.group}: {error}")
                    self.log.warning("group %s: %s", self.group, printable(str(error)))
                    await asyncio.sleep(AFTER_TROUBLE_SECONDS)
        finally:
            if waiting is not None:
                _waiters.submit(waiting.close)

    def _begin(self) -> "GroupStart":
        from strait.control.group_start import GroupStart
        from strait.state.link_handle import ConfiguredLink
        from strait_airflow.applications import supervisor
        from strait_airflow.settings import clusters_of

        file = clusters_of(self.link)
        supervise = supervisor(file, self.link)
        return GroupStart(
            ConfiguredLink.of(file, self.link), supervise, self.group, self.since_ms, standby=self.standby
        )
