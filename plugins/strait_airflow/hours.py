"""Gives the complete hours of a link's topics to their assets, from the link's DAG.

Airflow's own events tell which hour was the last: they are written with the success of the task, so each hour has one event,
even if tasks are killed. The asset's state repeats it, for the watch and for events that Airflow's database has lost.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from strait.waiting import tries, unix_ms
from strait_airflow.assets import HOURS, hours_in, topic_of
from strait_airflow.lineage import emit_lineage
from strait_airflow.noticing import ACTED, Acted
from strait_airflow.noticing import HOURS as FACT
from strait_airflow.stored import is_time

if TYPE_CHECKING:
    from airflow.sdk import Asset
    from airflow.sdk.definitions.context import Context

    from strait.config.assets import Assets
    from strait.control.hours import LinkHours
    from strait.planning.status.complete_hours import Told
    from strait.state.reader import StateReader
    from strait_airflow.control import Store

log = logging.getLogger(__name__)

GIVEN = "hours"
"""Key of the asset's state: topic -> [start of the next hour by the events, the same once those of this run are written]."""

_SETTLE_SECONDS = 4.0
_EVENTS_READ = 20  # a user may have made others by hand


class Next(NamedTuple):
    """Start of a topic's next hour, in ms since 1970.

    Attributes:
        confirmed: after the newest event that is known to be written.
        expected: after those that a run was about to write.
    """

    confirmed: int
    expected: int

    @property
    def unsure(self) -> bool:
        """Whether the task that was to write events may have been killed."""
        return self.confirmed != self.expected


def next_hours(stored: Any) -> dict[str, Next]:
    """Return topic -> its next hour, from the asset's state."""
    found = {}
    for topic, pair in stored.items() if isinstance(stored, dict) else ():
        if isinstance(pair, list) and len(pair) == 2 and all(map(is_time, pair)):
            found[str(topic)] = Next(*pair)
    return found


def emit_hours(link: str, store: "Store", context: "Context") -> None:
    """Add an event for each complete hour to the outlets of the task, oldest first, and drop the outlets that get none."""
    from strait.errors import StraitError
    from strait_airflow.errors import described

    task: Any = context["task"]
    assets = {topic_of(asset): asset for asset in task.outlets}
    task.outlets = []  # an outlet without a key would start the runs of those that wait for none
    if not assets:
        return
    try:
        _emit(link, store, context, assets)
    except StraitError as error:
        log.warning("hours of topics: %s", described(error, link))
        _not_acted_upon(store)


def _not_acted_upon(store: "Store") -> None:
    """Have the watch wake the DAG again for hours that it finds complete."""
    acted = Acted.of(store.get(ACTED))
    seen = {name: value for name, value in acted.seen.items() if name != FACT}
    store.set(ACTED, acted._replace(seen=seen).data())


def _emit(link: str, store: "Store", context: "Context", assets: "Mapping[str, Asset]") -> None:
    from strait.control.hours import LinkHours, hours_text
    from strait.planning.status.complete_hours import HOUR_MS, due_hours
    from strait_airflow.settings import link_of

    of, now_ms = link_of(link, live=True), unix_ms()
    settings = of.settings.assets
    given, lateness_ms = next_hours(store.get(GIVEN)), 1000 * settings.lateness_seconds

    def is_due(start_ms: int) -> bool:
        return bool(due_hours(start_ms, now_ms, lateness_ms, 1))

    asked = [topic for topic in assets if topic not in given or given[topic].unsure or is_due(given[topic].confirmed)]
    if not asked:  # events are only read for topics that may get one
        return
    told = {topic: _told(context, assets[topic]) for topic in asked}
    starts = {topic: _next(told[topic], given.get(topic), now_ms, settings) for topic in asked}
    expected, given_now = dict(starts), dict[str, list[int]]()
    due = {topic: start for topic, start in starts.items() if is_due(start)}
    if due:
        hours = LinkHours(of)
        with of.state("plan", "reports") as state:
            state.catch_up()
            planned = {topic.source for plan in state.plans.values() for topic in plan.topics}
            if others := sorted(assets.keys() - planned):
                log.warning("hours of topics that the link does not replicate have no events: %s", ", ".join(others))
            complete = _settled(hours, state, {topic: due[topic] for topic in due.keys() & planned}, now_ms)
            for topic, facts in _facts(hours, state, complete, told).items():
                events = {one["hour"]: one for one in facts}
                asset = assets[topic]
                outlet: Any = context["outlet_events"][asset]
                outlet.extra = {HOURS: events}
                emit_lineage(of, events.values())
                outlet.partition_keys = tuple(events)  # a set would lose their order
                task: Any = context["task"]
                task.outlets.append(asset)
                given_now[topic] = complete[topic][: len(events)]
                expected[topic] = given_now[topic][-1] + HOUR_MS
        if due.keys() - complete.keys() or given_now != complete:
            _not_acted_upon(store)
        if given_now:
            log.info("hours are replicated: %s", hours_text(given_now))
    known = {topic: given[topic] for topic in assets if topic in given}
    known |= {topic: Next(starts[topic], expected[topic]) for topic in asked}
    store.set(GIVEN, {topic: list(found) for topic, found in sorted(known.items())})


def _settled(hours: "LinkHours", state: "StateReader", due: Mapping[str, int], now_ms: int) -> dict[str, list[int]]:
    """Return `LinkHours.complete`. If an hour ends with the present end of a log, slots are about to report it."""
    found: dict[str, list[int]] = {}
    for _ in tries(_SETTLE_SECONDS, _SETTLE_SECONDS / 4):
        state.catch_up()
        found = hours.complete(state, due, now_ms)
        if found.keys() == due.keys():
            break
    return found


def _facts(
    hours: "LinkHours", state: "StateReader", complete: Mapping[str, list[int]], told: "Mapping[str, Told | None]"
) -> dict[str, list[dict[str, Any]]]:
    """Return topic -> the facts of its hours, up to the first one whose offsets on the destination cannot be determined
    yet; topics without one are omitted. After a plan was published, slots report within seconds."""
    from strait.errors import OffsetsPending
    from strait.planning.status.complete_hours import told_by

    found: dict[str, list[dict[str, Any]]] = {topic: [] for topic in complete}
    pending: dict[str, OffsetsPending] = {}
    for _ in tries(_SETTLE_SECONDS, _SETTLE_SECONDS / 4):
        pending = {}
        for topic, starts in complete.items():
            of_topic = found[topic]
            if not (left := starts[len(of_topic) :]):
                continue
            try:
                for one in hours.events(state, topic, left, told_by(of_topic[-1]) if of_topic else told[topic]):
                    of_topic.append(one)  # not `extend`: hours before an error are kept
            except OffsetsPending as error:
                pending[topic] = error
        if not pending:
            break
    for topic, why in pending.items():
        log.warning("hours of topic %s: %s; the next run tries again", topic, why)
    return {topic: facts for topic, facts in found.items() if facts}


def _told(context: "Context", asset: "Asset") -> "Told | None":
    """Return the newest hour among the asset's newest events."""
    from strait.planning.status.complete_hours import told_by

    events = context["inlet_events"][asset].ascending(False).limit(_EVENTS_READ)
    found = [told for facts in hours_in(event.extra for event in events).values() if (told := told_by(facts))]
    return max(found, key=lambda told: told.start_ms, default=None)


def _next(told: "Told | None", given: Next | None, now_ms: int, settings: "Assets") -> int:
    from strait.planning.status.complete_hours import HOUR_MS, first_start

    if told is not None:
        return told.start_ms + HOUR_MS
    if given is not None:
        return given.confirmed
    return first_start(now_ms, None if settings.since is None else round(settings.since.timestamp() * 1000))
