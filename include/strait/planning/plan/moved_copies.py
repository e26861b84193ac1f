"""Leaves copies that another tool made out of a link's start: they came from a cluster whose records the link does not
replicate. Pure."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from strait.config.links import Link
from strait.config.route_names import topic_of
from strait.model import ClusterFacts, TopicPartition
from strait.planning.plan.planner import Survey
from strait.planning.topics.policies import copies_of
from strait.planning.topics.start_offsets import after_copies
from strait.reasons import Reason
from strait.state.moved_copies import MovedCopies, clusters_left_out, end_of_copies
from strait.state.schema import Waiting


def leaves_copies_out(link: Link, found: Survey) -> bool:
    """Return whether a topic starts of which the link does not replicate all copies."""
    return any(_leaves_out(link, found, topic) for topic in _starting(found))


def after_moved_in(link: Link, found: Survey, source: ClusterFacts, known: Collection[MovedCopies]) -> Survey:
    """Return the survey with starts after the copies that the link leaves out, by the same rule as those of links.

    Args:
        known: the copies on the source.
    """
    source_id, destination_id = found.clusters
    ends = {}
    for topic in _starting(found) if known else ():
        if not _leaves_out(link, found, topic):
            continue
        left_out = clusters_left_out(copies_of(link, topic, found.selection.names[topic]), source_id, destination_id)
        facts = source.topics[topic]
        for number in range(facts.partitions):
            ends[TopicPartition(topic, number)] = end_of_copies(
                known, topic_of(topic), facts.topic_id, number, left_out
            )
    ends = {place: end for place, end in ends.items() if end}
    new = {
        place: request._replace(
            fresh=replace(request.fresh, begin=after_copies(request.fresh.begin, ends.get(place, 0)))
        )
        for place, request in found.new.items()
    }
    return replace(found, new=new, moved_in=ends)


def withheld(link: Link, found: Survey, reason: Reason, detail: str) -> Survey:
    """Return the survey without the starts that depend on which records are copies, since that is unknown."""
    held = {place for place in found.new if _leaves_out(link, found, place.topic)}
    topics = sorted({place.topic for place in held})
    waiting = [
        Waiting(
            topic=topic,
            partitions=tuple(sorted(place.partition for place in held if place.topic == topic)),
            reason=reason,
            detail=detail,
        )
        for topic in topics
    ]
    new = {place: request for place, request in found.new.items() if place not in held}
    return replace(found, new=new, waiting=(*found.waiting, *waiting))


def _starting(found: Survey) -> Iterator[str]:
    yield from dict.fromkeys(place.topic for place in found.new)
    yield from (item.source for item in found.destinations.create)


def _leaves_out(link: Link, found: Survey, topic: str) -> bool:
    return copies_of(link, topic, found.selection.names[topic]) != "all"
