"""Translates offsets of one partition with its offset map, its newest report and the log ends of both sides. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from strait.config.route_names import is_route, topic_of
from strait.model import TopicPartition
from strait.state.offset_map import Gap
from strait.state.report_records import PartitionReport
from strait.state.schema import PlannedTopic
from strait.state.translation import Fit, Translated, Translation, Translator

_DETAILS = {
    Fit.EXACT: "",
    Fit.OVERLAP: "{:,} consumed records come after the first that was not",
    Fit.AHEAD: "not known to be replicated up to there yet; the result is the end of the records that are",
    Fit.BEFORE_START: "before the first replicated record, which is the result; no replicated record is skipped",
    Fit.INEXACT: "the offset map cannot tell exactly; some records may be read again, none is skipped",
}
_REBUILT = "the offset map was rebuilt, and does not know the records before this offset"


class Known(NamedTuple):
    """One partition of a link. ``target`` and ``start``: the partition on the other side, and the first offset that it
    holds; ``translator``: None if the map has no entry for it; ``shared``: other producers may write to the
    destination; ``doubt``: why the map's entries are not valid for it, "" if they are; ``over``: the source offset before
    which its copy has ended, -1 if it has not."""

    link: str
    producer_id: int
    topic: PlannedTopic
    target: TopicPartition
    start: int
    report: PartitionReport | None
    translator: Translator | None
    shared: bool
    doubt: str
    over: int = -1

    def to_source(self, offset: int) -> Translated:
        """Return the source's offset for one of the destination; for a route the offset of its next record, or the one up to
        which it has read: records before that are of other routes."""
        assert self.translator is not None
        if not is_route(self.topic.source):
            return self.translator.to_source(offset)
        read = Gap(0, 0) if self.report is None else Gap(self.report.written, self.report.position)
        return self.translator.next_to_source(offset, read)


def translation(place: TopicPartition, offset: int, known: Known, *, reverse: bool) -> Translation:
    """Return the translation of an offset of ``place``, a partition of the source, or with ``reverse`` of the destination."""
    target, translator = topic_of(known.target.topic), known.translator
    if known.doubt:
        return Translation(*place, offset, target, None, str(Fit.UNKNOWN), known.doubt)
    if translator is None:
        detail = "no record of the partition has been replicated into the present topic"
        return Translation(*place, offset, target, None, str(Fit.NOT_REPLICATED), detail, known.shared)
    kept = -1 if reverse or known.report is None else known.report.log_start
    if offset < kept:  # the group continues with the first record that the source still holds
        there = translation(place, kept, known, reverse=False)
        detail = there.detail or f"the source has deleted offsets {offset} to {kept - 1}; the next record is the same"
        return replace(there, offset=offset, detail=detail)
    found = known.to_source(offset) if reverse else translator.to_destination(offset)
    if found.fit is Fit.UNKNOWN and found.offset > known.start:
        return Translation(*place, offset, target, None, str(Fit.UNKNOWN), _REBUILT, known.shared)
    if found.fit is Fit.UNKNOWN:
        detail = f"records before offset {known.start} were deleted there; the result is the first that is left"
        return Translation(*place, offset, target, known.start, str(Fit.DELETED), detail, known.shared)
    made = result(place, offset, known, found.offset, found.fit, shared=known.shared)
    if not reverse and 0 <= known.over < offset and not made.detail:
        detail = f"after the end of the copy, source offset {known.over} by `until`; the result is that end"
        return replace(made, detail=detail)
    return made


def pending(found: Translation, known: Known) -> str:
    """Return why the translation of an offset that slots have reported as replicated is not final; "" if it is.

    A log end or a report may be missing for some seconds, as during a leader election or after a plan was published. A result
    at the log's end is final although it is `Fit.AHEAD`: the destination has lost the records after it, or has all of them.
    """
    if known.doubt:
        return known.doubt
    if found.fit != Fit.AHEAD or found.to_offset is None or known.translator is None:
        return ""
    return found.detail if found.to_offset < known.translator.log_end else ""


def untouched_routes(committed: Collection[TopicPartition], sources: Mapping[str, str]) -> list[TopicPartition]:
    """Return the destination partitions in which a group has committed nothing, of routes of source partitions of which it has
    committed an offset on another route. ``sources``: as in `lowest_of_routes`."""
    routes: dict[str, list[str]] = {}
    for copy, name in sources.items():
        if is_route(name):
            routes.setdefault(topic_of(name), []).append(copy)
    beside = {
        place._replace(topic=copy)
        for place in committed
        if is_route(sources.get(place.topic, ""))
        for copy in routes[topic_of(sources[place.topic])]
    }
    return sorted(beside - set(committed))


def lowest_of_routes(found: Iterable[Translation], sources: Mapping[str, str]) -> list[Translation]:
    """Return a group's offsets on the source. The routes of one partition get the lowest offset of them; none if that of a
    route is unknown.

    Args:
        sources: destination topic -> source topic, or route.
    """
    found = list(found)
    routes: dict[TopicPartition, list[Translation]] = {}
    for one in found:
        if is_route(sources.get(one.topic, "")):
            routes.setdefault(TopicPartition(one.to_topic, one.partition), []).append(one)
    lowest: dict[TopicPartition, Translation] = {}
    for place, of_place in routes.items():
        lowest[place] = min(of_place, key=lambda one: -1 if one.to_offset is None else one.to_offset)

    def merged(one: Translation) -> Translation:
        low = lowest.get(TopicPartition(one.to_topic, one.partition), one)
        if low is one or low.to_offset == one.to_offset:
            return one
        detail = f"the lowest of its routes, that of {low.topic}; this one alone: {one.to_offset}, {one.fit}"
        return replace(one, to_offset=low.to_offset, fit=low.fit, detail="; ".join(filter(None, (one.detail, detail))))

    return list(map(merged, found))


def result(
    place: TopicPartition, offset: int, known: Known, to_offset: int, fit: Fit, *, shared: bool, rereads: int = 0
) -> Translation:
    """Return the translation with its detail; an offset before the first retained one is raised to that one."""
    if to_offset < known.start:
        detail = f"records from offset {to_offset} on were deleted there; the result is the first that is left"
        to_offset, fit, rereads = known.start, Fit.DELETED, 0
    else:
        detail = _DETAILS[fit].format(rereads)
    return Translation(*place, offset, topic_of(known.target.topic), to_offset, str(fit), detail, shared, rereads)
