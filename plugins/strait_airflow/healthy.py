"""The task that waits, without a worker, until a submitted application replicates."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from strait_airflow.in_triggerer import LinkTaskTrigger, TriggererTask, in_background, in_thread
from strait_airflow.steps import FAILED, SUBMIT

if TYPE_CHECKING:
    from strait.control.group_start import GroupStart
    from strait.planning.status.health import Start

LOOK_EVERY_SECONDS = 1.0
AFTER_TROUBLE_SECONDS = 5.0
_TROUBLES_MOST = 12


class StartTrigger(LinkTaskTrigger):
    """Follows the start of the application that `submit` of the same index has submitted, and ends its task."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from strait.text import printable, without_numbers
        from strait_airflow.verdict import Failure

        submitted = await self.of_task(SUBMIT, "return_value", same_index=True)
        self.log.info("application %s: waiting for the first report of each slot", submitted["name"])
        ended = await self._ended(submitted)
        if ended.succeeded:
            self.log.info("done: %s", printable(ended.text))
            yield TaskSuccessEvent(xcoms={"return_value": ended.text})
        else:
            self.log.error("%s", printable(ended.text))
            failure = Failure(without_numbers(ended.text), ended.text)
            yield TaskFailedEvent(xcoms={FAILED: [] if ended.exited else list(failure)})

    async def _ended(self, submitted: Mapping[str, Any]) -> "Start":
        from strait.errors import StraitError
        from strait.planning.status.health import Start
        from strait.text import printable

        troubles, group = 0, submitted["group"]
        waiting: GroupStart | None = None
        try:
            while True:
                try:
                    if waiting is None:
                        waiting = await in_thread(self._begin, submitted)
                    ended: Start | None = await in_thread(waiting.look)
                    if ended is not None:
                        return ended
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
                except StraitError as error:
                    troubles += 1
                    if troubles == _TROUBLES_MOST:
                        return Start(False, f"group {group}: {error}")
                    self.log.warning("group %s: %s", group, printable(str(error)))
                    await asyncio.sleep(AFTER_TROUBLE_SECONDS)
        finally:
            if waiting is not None:
                in_background(waiting.close)

    def _begin(self, submitted: Mapping[str, Any]) -> "GroupStart":
        from strait.control.group_start import GroupStart
        from strait.state.link_handle import ConfiguredLink
        from strait_airflow.applications import supervisor
        from strait_airflow.settings import clusters_of
        from strait_airflow.steps import begin

        begin(self.link)
        file = clusters_of(self.link)
        of, supervise = ConfiguredLink.of(file, self.link), supervisor(file, self.link)
        group, since_ms = submitted["group"], submitted["since_ms"]
        return GroupStart(of, supervise, group, since_ms, standby=bool(submitted["standby"]))


class Healthy(TriggererTask):
    """Ends when each slot of a task group has reported after the submission, or fails with the cause."""

    trigger = StartTrigger
