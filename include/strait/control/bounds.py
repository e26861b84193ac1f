"""Queries the source for the ends of partitions. strait.planning.plan.bounds interprets them."""

from collections.abc import Collection

from strait.config.links import Link
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.planning.plan.bounds import NOTHING, Bounds, Ends, bounded, bounds_of
from strait.planning.plan.planner import Survey
from strait.state.schema import Plan


def with_ends(
    link: Link, found: Survey, plans: Collection[Plan], source: Admin, reached: Collection[TopicPartition], now_ms: int
) -> Survey:
    """Return the survey with the ends of its copies. Queries the source only for ends that no plan has.

    Raises:
        ClusterUnavailable, NotAuthorized: the source does not answer. An error about one partition is the reason why it
            waits.
    """
    bounds = bounds_of(link, found, plans, reached, now_ms)
    return found if bounds is None else bounded(found, bounds, _looked_up(source, bounds, now_ms))


def _looked_up(source: Admin, bounds: Bounds, now_ms: int) -> Ends:
    if not bounds.wanted:
        return NOTHING
    logs = source.offsets_each(bounds.wanted, "end")
    times = {place: wanted.at for place, wanted in bounds.wanted.items() if isinstance(wanted.at, int)}
    since = source.first_since_each(times)
    failures = {place: error.message for place, error in (*logs.failures.items(), *since.failures.items())}
    # A record in the future may be followed by others that are not.
    first = {
        place: one.offset for place, one in since.results.items() if one.offset >= 0 and one.timestamp_ms <= now_ms
    }
    known = {place: first.get(place, end) for place, end in logs.results.items() if place not in failures}
    return Ends(known, failures)
