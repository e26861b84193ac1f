"""The trigger that follows a link's reports and applications. Runs in the triggerer, beside those of all other
links."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

if TYPE_CHECKING:
    from strait_airflow.settings import LiveSettings
    from strait_airflow.watching import LinkWatch

LOOK_EVERY_SECONDS = 1.0
READ_SETTINGS_EVERY_SECONDS = 2.0
"""Each time asks Airflow for a Variable and two Connections."""


class HealthTrigger(BaseTrigger):
    """Fires when a task group of the link is in trouble or somebody edits its settings, else at ``until`` (seconds since
    1970).

    What it fires holds `troubles` and `edited`, or `error` where the link could not be watched or an edit is wrong. Edits
    from before its start are the monitor's: so one that is wrong, or not to be applied now, does not end every watch at
    its beginning. No secret is in its arguments, which Airflow stores: it reads the Connections itself.
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
            troubles, edited = await self._watch()
            yield TriggerEvent({"troubles": troubles, "edited": edited})
        except StraitError as error:
            yield TriggerEvent({"error": {"message": str(error), "retriable": error.retriable}})

    async def _watch(self) -> tuple[list[dict[str, str]], bool]:
        from asgiref.sync import sync_to_async

        from strait_airflow import settings
        from strait_airflow.watching import LinkWatch

        # The only way to Airflow's database from here; what follows talks to Kafka and the launcher, in other threads.
        file = await sync_to_async(settings.clusters_of)(self.link)
        before = await sync_to_async(settings.live_settings)(self.link)
        watch = await asyncio.to_thread(LinkWatch, file, self.link)
        try:
            return await self._until_something(watch, before)
        finally:
            await asyncio.to_thread(watch.close)

    async def _until_something(self, watch: "LinkWatch", before: "LiveSettings") -> tuple[list[dict[str, str]], bool]:
        read_at = time.monotonic() + READ_SETTINGS_EVERY_SECONDS
        while True:
            troubles = await asyncio.to_thread(watch.look)
            edited = False
            if time.monotonic() >= read_at:
                edited = await self._edited(before)
                read_at = time.monotonic() + READ_SETTINGS_EVERY_SECONDS
            if troubles or edited or time.time() >= self.until:
                return [{"group": t.group, "reason": str(t.reason), "detail": t.detail} for t in troubles], edited
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _edited(self, before: "LiveSettings") -> bool:
        """Raises ConfigError for an edit that is wrong."""
        from asgiref.sync import sync_to_async

        from strait_airflow import settings

        now = await sync_to_async(settings.live_settings)(self.link)
        if now.error is not None and before.error is None:
            raise now.error
        return now != before and now.error is None
