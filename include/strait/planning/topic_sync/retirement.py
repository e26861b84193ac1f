"""Destination topics whose source topic was deleted: kept, or deleted after a configured grace period. Pure.

A topic that is not listed may still exist: a permission may have been revoked, the cluster may be another one, or may
have lost all of its topics. And a destination topic may hold other records, too. So one is deleted only if all of the
following is true: the source confirms by name that the topic does not exist; the source is the cluster that was
replicated from, and it has other topics; the destination topic is the one that was written to; its log holds, from its
first offset to its last, exactly the records that the offset map lists as written by the link; it has the name under which
the link replicates the topic; and no other link replicates to it, by its plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from strait.config.links import Link
from strait.config.naming import Names, is_internal
from strait.config.rules import rule_of
from strait.config.selecting import is_own
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.topic_sync.actions import DeleteTopic
from strait.planning.topics.lost_mappings import by_topic
from strait.reasons import Reason
from strait.state.offset_map import destination_offset
from strait.state.schema import OffsetMapping, Waiting

Runs = Mapping[tuple[str, int], tuple[OffsetMapping, ...]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A topic whose grace period is over. ``copy`` None: its destination topic is not listed either."""

    source: str
    destination: str
    destination_id: str
    missing_since_ms: int
    copy: TopicFacts | None

    @property
    def partitions(self) -> list[TopicPartition]:
        """Partitions of the destination topic."""
        return [TopicPartition(self.destination, number) for number in range(self.copy.partitions if self.copy else 0)]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Responses of both clusters about the candidates.

    Attributes:
        ``gone``: source topics that, as the source confirms by name, do not exist; ``copies_gone``: the same for
            destination topics.
        logs: destination partition -> its first offset and its end offset.
        others: destination topic -> why another link may replicate to it, too.
    """

    gone: frozenset[str] = frozenset()
    copies_gone: frozenset[str] = frozenset()
    logs: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retirement:
    """Destination topics to delete; offset segments to remove, of topics that no longer exist on either side; source
    topic -> why its destination topic is kept."""

    delete: tuple[DeleteTopic, ...] = ()
    forget: tuple[OffsetMapping, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)

    @property
    def forgotten(self) -> frozenset[str]:
        """Source topics that no longer exist on either side."""
        return frozenset(run.topic for run in self.forget)


_DATED = {Reason.SOURCE_MISSING, Reason.AWAITING_APPROVAL}


def dated(waiting: Iterable[Waiting], before: Iterable[Waiting], now_ms: int) -> list[Waiting]:
    """Return the entries; those of topics that the source does not have get the time when the topic was first missed,
    and those that wait for approval the time since when they do."""
    since = {(item.topic, item.reason): item.since_ms for item in before if item.reason in _DATED and item.since_ms}
    return [
        item.model_copy(update={"since_ms": since.get((item.topic, item.reason), now_ms)})
        if item.reason in _DATED
        else item
        for item in waiting
    ]


def candidates(
    link: Link,
    waiting: Iterable[Waiting],
    source: ClusterFacts,
    destination: ClusterFacts,
    runs: Runs,
    copied_from: str,
    now_ms: int,
) -> tuple[Candidate, ...]:
    """Return the topics whose grace period is over, in order of ``waiting``.

    Args:
        waiting: entries of the current plans, with times.
        copied_from: ID of the cluster that the link first replicated from.
    """
    grace = link.delete_copies_after_seconds
    alive = any(not topic.internal and not is_internal(name) for name, topic in source.topics.items())
    if grace is None or not alive or source.cluster_id != copied_from:
        return ()
    over = {
        item.topic: item.since_ms
        for item in waiting
        if item.reason == Reason.SOURCE_MISSING
        and item.topic not in source.topics
        and 0 < item.since_ms <= now_ms - 1000 * grace
    }
    newest = {
        topic: max(of_topic, key=lambda run: (run.checkpoint_at_ms, run.sequence_base))
        for topic, of_topic in by_topic(runs, over.keys()).items()
    }
    names = Names(link)
    return tuple(
        Candidate(topic, last.destination, last.destination_id, over[topic], destination.topics.get(last.destination))
        for topic, last in newest.items()
        if is_own(link, names, topic, last.destination)  # segments are not signed, and could name any topic
    )


def retire(link: Link, found: Iterable[Candidate], evidence: Evidence, runs: Runs) -> Retirement:
    """Judge each candidate by the evidence."""
    found = tuple(found)
    of_topic = by_topic(runs, [candidate.source for candidate in found])
    delete, forget, kept = [], [], {}
    for candidate in found:
        if candidate.source not in evidence.gone:
            kept[candidate.source] = (
                "the source does not confirm that the topic is deleted; DESCRIBE on it may be missing"
            )
        elif candidate.copy is None and candidate.destination in evidence.copies_gone:
            forget += of_topic[candidate.source]
        elif why := _why_kept(link, candidate, evidence, of_topic[candidate.source]):
            kept[candidate.source] = why
        else:
            delete.append(DeleteTopic(candidate.destination, candidate.source, candidate.missing_since_ms))
    return Retirement(tuple(delete), tuple(forget), kept)


def _why_kept(link: Link, candidate: Candidate, evidence: Evidence, runs: Sequence[OffsetMapping]) -> str:
    copy = candidate.copy
    if copy is None:
        return f"the destination does not say whether {candidate.destination} exists; DESCRIBE on it may be missing"
    if not copy.topic_id or copy.topic_id != candidate.destination_id:
        return f"{copy.topic} is not the topic that was replicated to"
    if rule_of(link.topics, candidate.source).on_foreign != "halt":
        return f"others may write to {copy.topic}, by its rule's `on_foreign`"
    if why := evidence.others.get(copy.topic):
        return why
    for partition in candidate.partitions:
        of_partition = [
            run for run in runs if run.partition == partition.partition and run.destination_id == copy.topic_id
        ]
        if partition not in evidence.logs:
            return f"the offsets of partition {partition} are unknown"
        if not _all_ours(of_partition, *evidence.logs[partition]):
            return f"partition {partition} has records that the offset map does not list as the link's"
    return ""


def _all_ours(runs: Sequence[OffsetMapping], first: int, end: int) -> bool:
    """Return whether the segments cover offsets [first, end) of the destination partition without a place at which
    another producer wrote."""
    if first == end:
        return True
    ordered = sorted(runs, key=lambda run: (run.sequence_base, run.destination_base))
    if not ordered or ordered[0].destination_base > first:
        return False
    unbroken = all(
        following.destination_base == destination_offset(run, following.sequence_base)
        for run, following in pairwise(ordered)
    )
    written = max(run.sequence_end for run in ordered)
    return unbroken and destination_offset(ordered[-1], max(written, ordered[-1].sequence_base)) == end
