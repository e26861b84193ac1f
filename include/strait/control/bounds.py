"""Queries the source for the ends of partitions. strait.planning.plan.bounds interprets them."""

from collections.abc import Collection, Mapping

from strait.config.links import Link
from strait.config.rules import rule_of
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.planning.plan.bounds import NO_END, NOTHING, EndAt, Ends, bounded, bounds_of
from strait.planning.plan.planner import Survey
from strait.state.schema import Plan, TopicPolicy


def with_ends(
    link: Link, found: Survey, plans: Collection[Plan], source: Admin, reached: Collection[TopicPartition], now_ms: int
) -> Survey:
    """Return the survey with the ends of its copies. Queries the source only for ends that no plan has.

    Raises:
        ClusterUnavailable, NotAuthorized: the source does not answer. An error about one partition is the reason why it
            waits.
    """
    bounds = bounds_of(link, found, plans, reached, now_ms)
    return found if bounds is None else bounded(found, bounds, _looked_up(source, bounds.wanted, now_ms))


def ends_of(
    link: Link,
    policies: Mapping[str, TopicPolicy],
    places: Collection[TopicPartition],
    source: Admin,
    now_ms: int,
) -> Mapping[TopicPartition, int]:
    """Return the ends of copies that start: those in the policies, and for topics whose destination does not exist yet those
    that the rules would have now. Partitions without one are omitted, as are those whose end is unknown.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    known: dict[TopicPartition, int] = {}
    wanted: dict[TopicPartition, EndAt] = {}
    for place in places:
        until = rule_of(link.topics, place.topic).until
        end = policies[place.topic].end_of(place.partition) if place.topic in policies else NO_END
        if end == NO_END and isinstance(until, Mapping):
            end = until.get(place.partition, NO_END)
        if end != NO_END:
            known[place] = end
        elif isinstance(until, int):
            wanted[place] = EndAt(until)
    return known | dict(_looked_up(source, wanted, now_ms).known)


def _looked_up(source: Admin, ends: Mapping[TopicPartition, EndAt], now_ms: int) -> Ends:
    if not ends:
        return NOTHING
    logs = source.offsets_each(ends, "end")
    times = {place: wanted.at for place, wanted in ends.items() if isinstance(wanted.at, int)}
    since = source.first_since_each(times)
    failures = {place: error.message for place, error in (*logs.failures.items(), *since.failures.items())}
    # A record in the future may be followed by others that are not.
    first = {
        place: one.offset for place, one in since.results.items() if one.offset >= 0 and one.timestamp_ms <= now_ms
    }
    known = {place: first.get(place, end) for place, end in logs.results.items() if place not in failures}
    return Ends(known, failures)
