"""The trigger that watches a link and wakes its DAG. It runs in the triggerer with those of all other links."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from strait.waiting import unix_ms
from strait_airflow.hours import GIVEN, next_hours
from strait_airflow.noticing import ACTED, FACTS, JUDGED, RETRY, Acted, Finding, Judged, Noticing

if TYPE_CHECKING:
    from strait_airflow.minute_look import MinuteLook
    from strait_airflow.watching import LinkWatch

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 1.0
READ_STORED_EVERY_SECONDS = 60.0
"""While nothing is found; otherwise with every poll. A manually triggered run may have stored it."""

AFTER_TROUBLE_SECONDS = 10.0
_PLANNERS = 2  # links that plan at the same time: the triggerer stays responsive

_planners = ThreadPoolExecutor(_PLANNERS, thread_name_prefix="strait-minute-look")


class LinkTrigger(BaseEventTrigger):
    """Fires when a run of the link's DAG has work to do; not again for a fact that a run has acted upon.

    The payload has `reasons`, human-readable lines; `plan`, whether planning may help; `silent`, the task groups whose
    applications do not report; `at_ms`, when that was observed (ms since 1970); and `seen`, the facts that the run
    stores as acted upon. No other state is kept: a restarted triggerer compares the present facts with those.
    """

    def __init__(self, *, link: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.link = link

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "strait_airflow.triggers.LinkTrigger", {"link": self.link}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while True:
            try:
                async for payload in self._watch():
                    yield TriggerEvent(payload)  # type: ignore[no-untyped-call]  # Airflow's
            except Exception:  # without this trigger nothing would wake the link's DAG
                log.exception("link %s: watching it failed; it goes on in %g s", self.link, AFTER_TROUBLE_SECONDS)
                await asyncio.sleep(AFTER_TROUBLE_SECONDS)

    async def _watch(self) -> AsyncIterator[dict[str, Any]]:
        from strait_airflow.watching import LinkWatch

        loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, thread_name_prefix=f"strait-{self.link}")
        watch, background = LinkWatch(self.link), _Background(self.link)
        acted, judged, background.next_hours = await self._stored()
        noticing, read_at = Noticing(acted, judged), time.monotonic()
        try:
            while True:
                facts, troubles = await loop.run_in_executor(thread, watch.look)
                if facts:  # otherwise not everything has been read yet
                    facts |= background.facts(watch, resting=noticing.waits_for_plan)
                    now_ms = unix_ms()
                    asking = noticing.wakes(facts, troubles, now_ms)  # a run may have acted upon it
                    if asking or time.monotonic() > read_at + READ_STORED_EVERY_SECONDS:
                        noticing.acted, noticing.judged, background.next_hours = await self._stored()
                        read_at = time.monotonic()
                    if due := noticing.due(facts, troubles, time.monotonic(), now_ms):
                        new = not noticing.acted.seen
                        yield _payload(due, facts, troubles, watch.silent_groups(), new=new)
                await asyncio.sleep(LOOK_EVERY_SECONDS if facts else LOOK_EVERY_SECONDS / 4)
        finally:
            background.close()
            thread.submit(watch.close)
            thread.shutdown(wait=False)  # its last poll may take seconds; watches of other links do not wait for it

    async def _stored(self) -> tuple[Acted, Judged, dict[str, int]]:
        """Return the values that runs have stored, and the next hour of each topic."""
        if self.asset_state_store is None:
            return Acted(), Judged(), {}
        store = self.asset_state_store

        def read() -> tuple[Acted, Judged, dict[str, int]]:
            hours = {topic: pair.expected for topic, pair in next_hours(store.get(GIVEN)).items()}
            return Acted.of(store.get(ACTED)), Judged.of(store.get(JUDGED)), hours

        return await asyncio.to_thread(read)  # Airflow before 3.3.2 has no `aget`


class _Background:
    """Runs the `MinuteLook` of one link in the background, so that it does not delay other links."""

    def __init__(self, link: str) -> None:
        self._link = link
        self._look: MinuteLook | None = None
        self._running: asyncio.Future[dict[str, Finding]] | None = None
        self._found: dict[str, Finding] = {}
        self.next_hours: dict[str, int] = {}

    def facts(self, watch: "LinkWatch", *, resting: bool) -> dict[str, Finding]:
        """Return the findings of the last pass, if any. Start the next one when it is due.

        Args:
            resting: a run is about to plan, so that planning here can wait.
        """
        if self._running is not None and self._running.done():
            self._take(self._running)
            self._running = None
        if self._running is None and watch.reaches_clusters:
            self._start(watch, plan=not resting)
        return self._found

    def close(self) -> None:
        if self._look is None:
            return
        if self._running is None:
            _planners.submit(self._look.close)
        else:
            look = self._look
            self._running.add_done_callback(lambda _: _planners.submit(look.close))

    def _start(self, watch: "LinkWatch", *, plan: bool) -> None:
        from strait_airflow.minute_look import EVERY_SECONDS, MinuteLook

        assert watch.settings is not None
        if self._look is None or self._look.settings is not watch.settings:
            self.close()
            self._look, self._found = MinuteLook(watch.settings, self._link), {}
            self._look.due_at = time.monotonic() + EVERY_SECONDS / 4  # a run for the new settings goes first
        if time.monotonic() >= self._look.due_at:
            self._running = asyncio.get_running_loop().run_in_executor(
                _planners, self._look.look, plan, dict(self.next_hours)
            )

    def _take(self, done: "asyncio.Future[dict[str, Finding]]") -> None:
        from strait.errors import StraitError

        try:
            self._found = self._found | done.result()
        except StraitError as error:
            log.warning("link %s: its plan and gauges: %s", self._link, error)


def _payload(
    due: list[str], facts: dict[str, Finding], troubles: dict[str, Finding], silent: list[str], *, new: bool
) -> dict[str, Any]:
    texts = {name: finding.text for name, finding in {**facts, **troubles}.items()}
    reasons = [texts.get(name, "the last run failed; it is tried again") for name in due]
    return {
        "reasons": ["no run has acted upon this link yet"] if new else reasons,
        "plan": any(name in FACTS or name == RETRY for name in due),
        "silent": silent,
        "at_ms": unix_ms(),
        "seen": {name: fact.value for name, fact in facts.items()},
    }
