"""Conditions that sensors wait for, and the trigger that checks one of them in the triggerer."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from airflow.triggers.base import BaseTrigger, TriggerEvent

from strait_airflow.steps import quiet

REACHED, FAILED = "reached", "failed"
"""Keys of the trigger's event: the result, or why waiting is pointless."""

_TELL_EVERY_SECONDS = 30.0
_THREADS = 4

_waiters = ThreadPoolExecutor(_THREADS, thread_name_prefix="strait-sensor")


class Condition(Protocol):
    """A condition of a link. Not thread-safe; ``look`` blocks only briefly."""

    def look(self) -> str:
        """Return the difference from it, as one line; "" if the condition holds. Raises StraitError."""
        ...

    def result(self) -> dict[str, Any]: ...

    def data(self) -> dict[str, Any]:
        """Return arguments for `condition_of` that wait for the same moment, not for a later one."""
        ...

    def close(self) -> None: ...


def condition_of(data: Mapping[str, Any]) -> Condition:
    """Return the condition with these arguments. Raises StraitError."""
    return CaughtUp(data) if data["kind"] == "caught_up" else Health(data)


class CaughtUp:
    """A link has replicated topics up to a moment on the source.

    Args:
        data: `link`, `topics`, `to` as text, `lateness_seconds`, and `ids`: the topics' IDs on the source, which are
            determined if they are absent.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        from strait.control.reaching import Reaching
        from strait.planning.status.up_to import UpTo
        from strait_airflow.settings import link_of

        self._data = {**data, "kind": "caught_up"}
        link, up_to = data["link"], UpTo.parse(data["to"])
        self._reaching = Reaching(
            link_of(link), data["topics"], up_to, lateness_seconds=data["lateness_seconds"], ids=data.get("ids")
        )

    def look(self) -> str:
        return self._reaching.look()

    def result(self) -> dict[str, Any]:
        return self._reaching.result().as_data()

    def data(self) -> dict[str, Any]:
        fixed = {**self._data, "to": self._reaching.fixed.as_text()}
        return fixed if self._reaching.ids is None else {**fixed, "ids": dict(self._reaching.ids)}

    def close(self) -> None:
        self._reaching.close()


class Health:
    """A link, or some of its topics, need nothing and are replicated.

    Args:
        data: `link` and `topics`; no topics: the whole link.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        from strait_airflow.settings import link_of

        self._data = {**data, "kind": "healthy"}
        self._link = link_of(data["link"])

    def look(self) -> str:
        from strait.control.link_status import link_groups

        found = link_groups(self._link, needs=True)
        return "; ".join(found.problems(self._data["topics"]))

    def result(self) -> dict[str, Any]:
        return {"link": self._data["link"], "topics": list(self._data["topics"])}

    def data(self) -> dict[str, Any]:
        return self._data

    def close(self) -> None:
        """Nothing stays open between two checks."""


class ConditionTrigger(BaseTrigger):
    """Fires once the condition holds, or if waiting is pointless. While a cluster does not respond, it waits on."""

    def __init__(self, *, condition: dict[str, Any], every_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.condition = condition
        self.every_seconds = every_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {"condition": self.condition, "every_seconds": self.every_seconds}
        return "strait_airflow.conditions.ConditionTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        yield TriggerEvent(await self._ended())  # type: ignore[no-untyped-call]  # Airflow's

    async def _ended(self) -> dict[str, Any]:
        from strait.errors import ClusterUnavailable, StateError, StraitError
        from strait.text import printable
        from strait_airflow.errors import described

        quiet()
        loop, link = asyncio.get_running_loop(), self.condition["link"]
        waiting: Condition | None = None
        told, tell_at = "", loop.time()
        try:
            while True:
                try:
                    if waiting is None:
                        waiting = await loop.run_in_executor(_waiters, condition_of, self.condition)
                    left = await loop.run_in_executor(_waiters, waiting.look)
                    if not left:
                        return {REACHED: await loop.run_in_executor(_waiters, waiting.result)}
                except (ClusterUnavailable, StateError) as error:
                    left = described(error, link)
                except StraitError as error:
                    return {FAILED: described(error, link)}
                if left != told and loop.time() >= tell_at:
                    told, tell_at = left, loop.time() + _TELL_EVERY_SECONDS
                    self.log.info("link %s: %s", link, printable(left))
                await asyncio.sleep(self.every_seconds)
        finally:
            if waiting is not None:
                _waiters.submit(waiting.close)
