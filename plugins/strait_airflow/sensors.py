"""The sensor that follows a link's health without holding a worker."""

import time
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseSensorOperator

from strait_airflow.triggers import HealthTrigger

UNTIL_SECOND = 50
"""Of the minute in which it started: the rest is left for what follows, so that the next run is not kept waiting."""

AT_LEAST_SECONDS = 10


class HealthSensor(BaseSensorOperator):
    """Ends at once when a task group of the link is in trouble or its settings are edited, else when the minute is nearly
    over.

    Returns `troubles`, a list of objects with `group`, `reason` and `detail`, and whether the settings were `edited`.
    """

    def __init__(self, *, link: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.link = link

    def execute(self, context: Any) -> None:
        now = time.time()
        seconds = max(UNTIL_SECOND - now % 60, AT_LEAST_SECONDS)
        self.defer(
            trigger=HealthTrigger(link=self.link, until=now + seconds),
            method_name="end",
            timeout=timedelta(seconds=seconds + 60),
        )

    def end(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        """Runs in a worker when the trigger has fired."""
        from strait_airflow.errors import raise_for

        if error := event.get("error"):
            raise_for(error["message"], retriable=error["retriable"])
        troubles: list[dict[str, str]] = event["troubles"]
        for trouble in troubles:
            self.log.warning("group %(group)s: %(reason)s: %(detail)s", trouble)
        if event["edited"]:
            self.log.info("link %s: its settings were edited", self.link)
        elif not troubles:
            self.log.info("link %s: every application runs and every slot reports", self.link)
        return {"troubles": troubles, "edited": event["edited"]}
