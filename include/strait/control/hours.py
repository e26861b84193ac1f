"""Follows which hours of a link's topics are replicated completely: queries the source once for each hour, and then compares
with the slots' reports. See `strait.planning.status.complete_hours` for the rule."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from strait.config.assets import Assets
from strait.consumer_groups.offsets import Offsets
from strait.control.group_status import group_status
from strait.control.time_ends import ends_before
from strait.model import TopicPartition, is_known_id
from strait.planning.status.complete_hours import (
    HOUR_MS,
    Told,
    TopicEnds,
    complete_hours,
    due_hours,
    event_of,
    first_offsets,
    following,
    key_of,
)
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.schema import PlannedTopic
from strait.state.translation import Fit, Translation
from strait.text import utc
from strait.waiting import unix_ms


class LinkHours:
    """The hours of one link. Not thread-safe; keeps the ends that it has looked up."""

    def __init__(self, link: ConfiguredLink) -> None:
        self._link = link
        self._ends: dict[tuple[str, int], TopicEnds] = {}

    @property
    def _settings(self) -> Assets:
        return self._link.settings.assets

    def complete(self, state: StateReader, next_ms: Mapping[str, int], now_ms: int) -> dict[str, list[int]]:
        """Return topic -> the starts of its complete hours, oldest first; topics without one are omitted.

        Args:
            state: follows `plan` and `reports`, and has caught up.
            next_ms: topic -> the start of its first hour of interest.

        Raises:
            ClusterUnavailable, NotAuthorized
        """
        topics = _planned(state)
        lateness_ms = 1000 * self._settings.lateness_seconds
        due = {topic: due_hours(start, now_ms, lateness_ms) for topic, start in next_ms.items() if topic in topics}
        self._forget(due)
        self._look_up({(topic, start) for topic, starts in due.items() for start in starts}, topics, now_ms)
        if not self._ends:
            return {}
        groups = (group_status(self._link, group, state) for group in sorted(state.plans))
        rows = [row for group in groups for row in group.partitions]
        found = {}
        for topic, starts in due.items():
            of_topic = [row for row in rows if row.topic == topic]
            hours = [(start, self._ends[topic, start]) for start in starts if (topic, start) in self._ends]
            found[topic] = complete_hours(topic, hours, _id(topics[topic].source_id, hours), of_topic)
        return {topic: starts for topic, starts in found.items() if starts}

    def events(
        self, state: StateReader, topic: str, starts: Sequence[int], before: Told | None
    ) -> Iterator[dict[str, Any]]:
        """Yield the facts of each of these complete hours.

        Args:
            starts: as `complete` returned them.
            before: the newest hour that had an event; None: there is none.

        An offset on the destination is null only if it stays unknown.

        Raises:
            OffsetsPending: an offset of the next hour on the destination is not known yet; a later call has it.
            ClusterUnavailable, NotAuthorized, StateError
        """
        planned = _planned(state)[topic]
        with Offsets(self._link) as offsets:
            before = before or self._before(offsets, topic, starts[0])
            for start in starts:
                ends = following(before, self._ends[topic, start])
                before = _with_starts(offsets, topic, before, ends)
                firsts = first_offsets(ends, before)
                found = {
                    one.partition: _end(one, firsts[one.partition])
                    for one in offsets.replicated(_places(topic, ends.ends))
                }
                yield {
                    "link": self._link.name,
                    "topic": topic,
                    "destination_topic": planned.destination,
                    "lateness_seconds": self._settings.lateness_seconds,
                    **event_of(start, ends, found, before),
                }
                before = Told(start, ends, found)

    def _before(self, offsets: Offsets, topic: str, start_ms: int) -> Told:
        """Return the ends of the hour before the first one of a topic."""
        first = start_ms - HOUR_MS
        admin = self._link.admin("source")
        known = self._ends[topic, start_ms]
        places = [TopicPartition(topic, number) for number in known.ends]
        passed_ms = start_ms + 1000 * self._settings.lateness_seconds
        found = ends_before(admin, places, passed_ms, unix_ms())
        ends = {place.partition: end for place, end in found.items()}
        there = {one.partition: _end(one, 0) for one in offsets.replicated(_places(topic, ends))}
        return Told(first, TopicEnds(known.source_id, ends), there)

    def _look_up(self, wanted: Collection[tuple[str, int]], planned: Mapping[str, PlannedTopic], now_ms: int) -> None:
        """Query the ends of hours that are not known, or were those of another topic of the same name."""
        missing = [
            (topic, start)
            for topic, start in sorted(wanted)
            if (topic, start) not in self._ends
            or not _same(self._ends[topic, start].source_id, planned[topic].source_id)
        ]
        if not missing:
            return
        admin = self._link.admin("source")
        facts = admin.observe({topic for topic, _ in missing}.__contains__).topics
        for start in sorted({start for _, start in missing}):
            topics = [topic for topic, other in missing if other == start and topic in facts]
            places = [TopicPartition(topic, number) for topic in topics for number in range(facts[topic].partitions)]
            passed_ms = start + HOUR_MS + 1000 * self._settings.lateness_seconds
            ends = ends_before(admin, places, passed_ms, now_ms) if places else {}
            for topic in topics:
                of_topic = {place.partition: end for place, end in ends.items() if place.topic == topic}
                self._ends[topic, start] = TopicEnds(facts[topic].topic_id, of_topic)

    def _forget(self, due: Mapping[str, Sequence[int]]) -> None:
        wanted = {(topic, start) for topic, starts in due.items() for start in starts}
        self._ends = {known: ends for known, ends in self._ends.items() if known in wanted}


def _with_starts(offsets: Offsets, topic: str, before: Told, ends: TopicEnds) -> Told:
    """Return the hour before with those of its ends on the destination that were unknown then and are known now."""
    if before.ends.source_id != ends.source_id:
        return before
    unknown = {
        number: before.ends.ends[number]
        for number, there in before.there.items()
        if there is None and number in ends.ends and number in before.ends.ends
    }
    if not unknown:
        return before
    found = {one.partition: one.to_offset for one in offsets.replicated(_places(topic, unknown))}
    return before._replace(there={**before.there, **found})


def _end(found: Translation, first: int | None) -> int | None:
    """Return the end of an hour in a partition of the destination. While no record of the partition is replicated, as if a
    filter has omitted all, hours that start with its first record end with it too: none of them has a record there."""
    return first if found.fit == Fit.NOT_REPLICATED and first == 0 else found.to_offset


def _places(topic: str, offsets: Mapping[int, int]) -> list[tuple[TopicPartition, int]]:
    return [(TopicPartition(topic, number), offset) for number, offset in sorted(offsets.items())]


def hours_text(complete: Mapping[str, Sequence[int]]) -> str:
    """Return complete hours as one line."""
    return ", ".join(f"{topic} {utc(starts[-1])}" for topic, starts in sorted(complete.items()))


def hours_value(complete: Mapping[str, Sequence[int]]) -> str:
    """Return text that differs if other hours are complete."""
    return " ".join(f"{topic}/{key_of(starts[-1])}" for topic, starts in sorted(complete.items()))


def _planned(state: StateReader) -> dict[str, PlannedTopic]:
    return {topic.source: topic for plan in state.plans.values() for topic in plan.topics}


def _same(one: str, other: str) -> bool:
    """Whether two IDs are of the same topic, as far as brokers have IDs."""
    return one == other or not (is_known_id(one) and is_known_id(other))


def _id(planned: str, hours: Sequence[tuple[int, TopicEnds]]) -> str:
    """Return the planned topic's ID, in the form that the hours have: a cluster may have got IDs since."""
    found = hours[0][1].source_id if hours else planned
    return found if _same(found, planned) else planned
