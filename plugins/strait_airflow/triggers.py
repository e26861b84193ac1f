"""The trigger that follows a link's reports and applications. Runs in the triggerer, beside those of all other
links."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

if TYPE_CHECKING:
    from strait_airflow.watching import LinkWatch

LOOK_EVERY_SECONDS = 1.0


class HealthTrigger(BaseTrigger):
    """Fires when a task group of the link is in trouble, else at ``until`` (seconds since 1970).

    What it fires holds `troubles`, or `error` where the link could not be watched. No secret is in its arguments, which
    Airflow stores: it reads the Connections itself.
    """

    def __init__(self, *, link: str, until: float) -> None:
        super().__init__()
        self.link = link
        self.until = until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "strait_airflow.triggers.HealthTrigger", {"link": self.link, "until": self.until}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from strait.errors import StraitError

        try:
            yield TriggerEvent({"troubles": await self._watch()})
        except StraitError as error:
            yield TriggerEvent({"error": {"message": str(error), "retriable": error.retriable}})

    async def _watch(self) -> list[dict[str, str]]:
        from asgiref.sync import sync_to_async

        from strait_airflow import settings
        from strait_airflow.watching import LinkWatch

        # The only way to Airflow's database from here; what follows talks to Kafka and the launcher, in other threads.
        file = await sync_to_async(settings.clusters_of)(self.link)
        watch = await asyncio.to_thread(LinkWatch, file, self.link)
        try:
            return await self._until_trouble(watch)
        finally:
            await asyncio.to_thread(watch.close)

    async def _until_trouble(self, watch: "LinkWatch") -> list[dict[str, str]]:
        while True:
            troubles = await asyncio.to_thread(watch.look)
            if troubles or time.time() >= self.until:
                return [{"group": t.group, "reason": str(t.reason), "detail": t.detail} for t in troubles]
            await asyncio.sleep(LOOK_EVERY_SECONDS)
