"""Waits until a link has replicated its topics up to a moment on the source. Blocks only briefly in each call, so a
thread can serve many.

The ends are determined once, on the source: for the present, the offset of the next record of each partition, open
transactions included. For a time, the offset of the first record whose timestamp is that time plus ``lateness_seconds``
or later, once that has passed; the present end of a partition without such a record, or whose record has a timestamp in
the future. Every record that a producer has
written before that time is then replicated, and so is every record of an earlier timestamp that arrived before the first
one of a later timestamp: with `LogAppendTime` all of them, with `CreateTime` those that are not later than
``lateness_seconds``.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from strait.config.route_names import is_meant, topic_of, typed
from strait.consumer_groups.offsets import Offsets
from strait.control.group_status import group_status
from strait.control.time_ends import ends_before
from strait.kafka.admin import Admin
from strait.model import TopicFacts, TopicPartition, is_known_id
from strait.planning.status.up_to import Ends, UpTo, by_topic, progress_text, topics_to_reach
from strait.planning.topics.routes import under_names
from strait.state.link_handle import ConfiguredLink
from strait.text import utc
from strait.waiting import unix_ms


@dataclass(frozen=True, slots=True)
class Reached:
    """A link that has replicated its topics up to a moment.

    Attributes:
        ends: offsets on the source.
        copies: topic -> its name on the destination.
        destination_ends: partitions of destination topics -> the offset there of the first record after the moment;
            None: unknown.
    """

    link: str
    ends: Ends
    copies: Mapping[str, str]
    destination_ends: Mapping[TopicPartition, int | None]

    def as_data(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "link": self.link,
            "source_ends": by_topic(self.ends),
            "copies": dict(self.copies),
            "destination_ends": by_topic(self.destination_ends),
        }


class Reaching:
    """Follows one link. Not thread-safe.

    Args:
        topics: source topics; none: all that the link replicates, or those of ``up_to`` if it has offsets.
        up_to: the moment.
        lateness_seconds: how much later than its timestamp a record may arrive; see the module.
        ids: topic -> its ID on the source when the offsets of ``up_to`` were determined; None: `look` determines them,
            once. The positions of another topic of that name do not count.
    """

    def __init__(
        self,
        link: ConfiguredLink,
        topics: Sequence[str],
        up_to: UpTo,
        *,
        lateness_seconds: float = 0.0,
        ids: Mapping[str, str] | None = None,
    ) -> None:
        self._link = link
        self._topics = list(map(typed, topics))
        self._up_to = up_to
        self._lateness_ms = round(1000 * lateness_seconds)
        self._ends: Ends | None = up_to.ends or None
        self._ids = None if ids is None else dict(ids)
        self._state = link.state("plan", "reports")

    @property
    def fixed(self) -> UpTo:
        """The same moment as offsets, if they are known: a later `Reaching` then waits for exactly these."""
        return self._up_to if self._ends is None else UpTo(ends=self._ends)

    @property
    def ids(self) -> Mapping[str, str] | None:
        """The IDs of the topics of `fixed`, for that later `Reaching`; None: not determined yet."""
        return self._ids

    def look(self) -> str:
        """Return how much is missing, as one line; "" if the moment is reached.

        Raises:
            ConfigError: the source has no topic of that name.
            ClusterUnavailable, NotAuthorized, StateError
        """
        # For topics or offsets that are given the link need not have a plan, nor its destination respond.
        if (self._topics or self._ends is not None) and (waits := self._fix(frozenset())):
            return waits
        self._state.catch_up()
        if not self._state.plans:
            return "it has no plan yet"
        if waits := self._fix({topic.source for plan in self._state.plans.values() for topic in plan.topics}):
            return waits
        assert self._ends is not None
        groups = (group_status(self._link, group, self._state) for group in sorted(self._state.plans))
        rows = [row for group in groups for row in group.partitions]
        again = {topic.source for plan in self._state.plans.values() for topic in plan.topics if self._other(topic)}
        rows = [replace(row, position=-1, reason="source_recreated") if row.topic in again else row for row in rows]
        return progress_text(self._ends, rows)

    def result(self) -> Reached:
        """Return the offsets of the moment on both clusters, once `look` has found nothing missing.

        Raises:
            OffsetsPending: those of the destination cannot be determined yet; a later call has them.
            ClusterUnavailable, NotAuthorized, StateError
        """
        assert self._ends is not None
        copies = {topic.source: topic.destination for plan in self._state.plans.values() for topic in plan.topics}
        planned = {
            TopicPartition(name, place.partition): end
            for place, end in self._ends.items()
            for name in copies
            if is_meant(place.topic, name)
        }
        with Offsets(self._link) as offsets:
            found = offsets.replicated(planned.items())
        there = {TopicPartition(item.to_topic, item.partition): item.to_offset for item in found}
        names = {topic: copies[topic] for topic in sorted({place.topic for place in planned})}
        return Reached(self._link.name, self._ends, names, there)

    def close(self) -> None:
        self._state.close()

    def _fix(self, planned: Set[str]) -> str:
        """Determine the ends, if they are not known. Return why they cannot be known yet; "" if they are.

        Args:
            planned: topics that the link replicates, for a caller that has named none.
        """
        if self._ends is not None:
            if self._ids is None:
                self._ids = self._ids_of({place.topic for place in self._ends})
            return ""
        passes_ms = None if self._up_to.at_ms is None else self._up_to.at_ms + self._lateness_ms
        if passes_ms is not None and unix_ms() < passes_ms:
            return f"waits for {utc(passes_ms)} UTC"
        self._ends = self._look_up(planned, passes_ms) or None
        return "" if self._ends else "its plan has no topic"

    def _look_up(self, planned: Set[str], since_ms: int | None) -> Ends:
        admin = self._link.admin("source")
        facts = _observed(admin, {*self._topics, *planned})
        topics = topics_to_reach(self._link.name, self._topics, facts, planned & facts.keys())
        self._ids = {topic: facts[topic].topic_id for topic in topics}
        places = [TopicPartition(topic, number) for topic in topics for number in range(facts[topic].partitions)]
        return admin.offsets(places, "end") if since_ms is None else ends_before(admin, places, since_ms, unix_ms())

    def _ids_of(self, names: Set[str]) -> dict[str, str]:
        """Return the IDs of those of these topics and routes that the source has."""
        facts = _observed(self._link.admin("source"), names)
        return {name: facts[name].topic_id for name in names & facts.keys()}

    def _other(self, topic: Any) -> bool:
        """Whether the planned topic is not the one whose ends were looked up."""
        if self._ids is None:
            return False
        now = self._ids.get(topic.source) or self._ids.get(topic_of(topic.source), "")
        return is_known_id(now) and is_known_id(topic.source_id) and now != topic.source_id


def _observed(admin: Admin, names: Set[str]) -> Mapping[str, TopicFacts]:
    """Return all topics of the cluster, described for these topics and routes."""
    return under_names(admin.observe({*map(topic_of, names)}.__contains__), names).topics
