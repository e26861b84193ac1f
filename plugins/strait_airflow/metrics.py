"""The task that measures a link and determines whether it needs an operator, without a worker."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from strait_airflow.in_triggerer import LinkTaskTrigger, TriggererTask, in_thread
from strait_airflow.steps import FAILED, MONITOR, NEEDS, OUTCOME

if TYPE_CHECKING:
    from collections.abc import Sequence

AGAIN_AFTER_SECONDS = 5.0


class MetricsTrigger(LinkTaskTrigger):
    """Measures, unless `monitor` has found that this is impossible or was just done, and ends its task."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from strait.errors import StraitError
        from strait_airflow.errors import failure_of

        outcome = await self.of_task(MONITOR, OUTCOME) or {}
        try:
            if not outcome.get("measure", True):
                line = f"not measured: {_why_not(outcome['failures'], outcome['done'])}"
                self.log.info("done: %s", line)
                yield TaskSuccessEvent(xcoms={"return_value": line})
                return
            try:
                line, needs = await in_thread(self._measured)
            except StraitError as error:
                if not error.retriable:
                    raise
                self.log.warning("link %s: %s", self.link, error)
                await asyncio.sleep(AGAIN_AFTER_SECONDS)
                line, needs = await in_thread(self._measured)
        except StraitError as error:
            failure = failure_of(error, self.link)
            self.log.error("%s", failure.text)  # noqa: TRY400  messages are complete
            yield TaskFailedEvent(xcoms={FAILED: list(failure)})
        else:
            self.log.info("done: %s", line)
            yield TaskSuccessEvent(xcoms={"return_value": line, NEEDS: needs})

    def _measured(self) -> tuple[str, dict[str, Any]]:
        from strait_airflow import control, gauges
        from strait_airflow.steps import begin

        begin(self.link)
        gauges.connect()
        line, needs, partial = control.metrics(self.link)
        return line, {"found": [[need.id, need.line] for need in needs], "partial": partial}


def _why_not(failures: "Sequence[Sequence[str]]", done: str) -> str:
    """Return the causes of the failures, else the result of `monitor`. ``failures``: pairs of cause and text."""
    return "; ".join(dict.fromkeys(cause for cause, _ in failures)) or done


class Metrics(TriggererTask):
    """Prints one line per topic, sends the gauges, and hands over the needs of the link. Runs also after a failure."""

    trigger = MetricsTrigger
