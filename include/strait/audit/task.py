"""Compares one chunk: reads both clusters' logs and judges them. Runs in Spark's executors, and without Spark in tests."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strait.audit.chunks import Chunk
from strait.audit.comparing import Compared, Sides, compare
from strait.audit.feed import Options
from strait.audit.findings import verdict_of
from strait.audit.followers import Followers, FollowersRead, LeaderRead
from strait.audit.ledger_check import check
from strait.audit.numbering import MappedSource, Numbering, SameOffsets, StampedCopy
from strait.audit.ordering import Edges, compare_in_order
from strait.audit.reading import LogSide, Pace
from strait.audit.replicas import MOST_LOCATED, located
from strait.audit.task_result import ChunkResult
from strait.config.cluster import Cluster
from strait.errors import StraitError
from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs

if TYPE_CHECKING:
    from strait.audit.evaluating import EvaluatedSource  # and Arrow, which other audits do not load

LEFT_OUT = "left out by the rule"


@dataclass(frozen=True)
class TaskSettings:
    """The settings of all tasks of an audit.

    Attributes:
        owners: producer ID -> its writer on the destination, if that is on record.
        bytes_per_second: one task's share of the budget for each cluster; 0: no limit.
        replicas: check the followers of each partition, too.
        source_cluster, destination_cluster: Kafka's IDs of the clusters that the audit was planned for; "": unknown.
    """

    source: str
    source_properties: Mapping[str, str] = field(repr=False)
    destination: str
    destination_properties: Mapping[str, str] = field(repr=False)
    producer_id: int
    owners: Mapping[str, str]
    strong: bool
    bytes_per_second: float = 0.0
    replicas: bool = False
    source_cluster: str = ""
    destination_cluster: str = ""

    @property
    def clusters(self) -> tuple[Cluster, Cluster]:
        """Source and destination."""
        here, there = (
            Cluster(self.source_properties, self.source),
            Cluster(self.destination_properties, self.destination),
        )
        return here.expecting(self.source_cluster), there.expecting(self.destination_cluster)


class Auditor:
    """Compares chunks over connections that it keeps until it is closed."""

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        here, there = settings.clusters
        self._source = LogSide(PartitionLogs(*here), Pace(settings.bytes_per_second))
        self._copy = LogSide(PartitionLogs(*there), Pace(settings.bytes_per_second))
        self._followers = (
            Followers(here, "source", self._source.pace),
            Followers(there, "destination", self._copy.pace),
        )

    @property
    def strong(self) -> bool:
        return self._settings.strong

    @property
    def replicas(self) -> bool:
        return self._settings.replicas

    def close(self) -> None:
        for side in (self._source, self._copy):
            side.logs.__exit__(None, None, None)
        for followers in self._followers:
            followers.close()

    def source_of(self, chunk: Chunk) -> LogSide:
        """Return the source, ready to read a chunk."""
        self._source.skipped_producers, self._source.skipped = frozenset(chunk.facts.skipped_producers), 0
        self._source.compacted = chunk.facts.source_compacted
        return self._source

    def compare(self, chunk: Chunk, evaluated: "EvaluatedSource | None" = None) -> ChunkResult:
        """Compare a chunk. If a cluster does not serve it, the result has the error. ``evaluated``: the source of a topic
        whose records are transformed."""
        began, cpu = time.monotonic(), time.process_time()
        self._copy.compacted = chunk.facts.copy_compacted
        tail, error, found, leaders = 0, "", Compared(), self.leaders_of(chunk)
        try:
            if evaluated is None:
                found, tail = self._compared(chunk, leaders)
                skipped = self._source.skipped
            else:
                found, tail = self._with_evaluated(chunk, evaluated, leaders[1])
                skipped = evaluated.read.skipped
            if skipped:
                found.tally.counts["skipped", "copies"] += skipped
        except StraitError as failure:
            error = str(failure)
        self._locate(chunk, found)
        followers = FollowersRead() if error else self._checked(leaders, found, evaluated)
        return _result(chunk, found, followers, tail, error, time.monotonic() - began, time.process_time() - cpu)

    def leaders_of(self, chunk: Chunk) -> tuple[LeaderRead, LeaderRead]:
        """Return the ranges that will be read from the leaders of source and destination."""
        facts, (_, _, first, end) = chunk.facts, chunk.bounds
        return (
            LeaderRead(TopicPartition(facts.topic, facts.partition), first, end, facts.source_compacted),
            LeaderRead(
                TopicPartition(facts.copy_topic, facts.partition), chunk.copy_from, chunk.copy_to, facts.copy_compacted
            ),
        )

    def check_source(self, leader: LeaderRead) -> FollowersRead:
        """Check the source's followers, if these are to be checked. ``leader``: as it was read, with its damaged batches."""
        return self._check(leader, self._source, self._followers[0])

    def _check(self, leader: LeaderRead, side: LogSide, followers: Followers) -> FollowersRead:
        leader.end = min(leader.end, side.readable)
        return followers.check(leader) if leader.checksums else FollowersRead()

    def _checked(
        self, leaders: tuple[LeaderRead, LeaderRead], found: Compared, evaluated: "EvaluatedSource | None"
    ) -> FollowersRead:
        """Check the followers of the read partitions, and add their faults to the result."""
        whole = FollowersRead()
        damaged = [one for one in found.tally.differences if one.kind == "damaged"]
        for leader, side, followers in zip(leaders, (self._source, self._copy), self._followers, strict=True):
            if evaluated is not None and side is self._source:
                read = evaluated.read.followers
            else:
                leader.damaged.update(one.source if side is self._source else one.copy for one in damaged)
                read = self._check(leader, side, followers)
            whole.unread += read.unread
            whole.bytes += read.bytes
            for difference in read.differences:
                found.tally.add(difference)
        return whole

    def _locate(self, chunk: Chunk, found: Compared) -> None:
        """Name the replicas that hold the first damaged batches."""
        left, facts = MOST_LOCATED, chunk.facts
        here, there = self._settings.clusters
        for at, one in enumerate(found.tally.differences):
            if one.kind == "damaged" and left:
                left -= 1
                cluster, topic = (there, facts.copy_topic) if one.source < 0 else (here, facts.topic)
                found.tally.differences[at] = located(one, cluster, TopicPartition(topic, facts.partition))

    def _compared(self, chunk: Chunk, leaders: tuple[LeaderRead, LeaderRead]) -> tuple[Compared, int]:
        facts, bounds = chunk.facts, chunk.bounds
        if chunk.is_evaluated:
            raise StraitError("its records are transformed, and their transformation is not evaluated here")
        options = Options(timed=facts.timed, strong=self._settings.strong)
        here, there = TopicPartition(facts.topic, facts.partition), TopicPartition(facts.copy_topic, facts.partition)
        with (
            closing(self.source_of(chunk).items(here, bounds.source_from, bounds.source_to)) as source_items,
            closing(self._copy.items(there, chunk.copy_from, chunk.copy_to)) as copy_items,
        ):
            source, copy = (
                leader.noting(items) if self._settings.replicas else items
                for leader, items in zip(leaders, (source_items, copy_items), strict=True)
            )
            if chunk.relation == "ledger":
                return check(copy, chunk.marks, self._settings.producer_id), 0
            if chunk.relation == "order":
                ranges = bounds[2:], (chunk.copy_from, chunk.copy_to)
                edges = Edges(facts.source_start, facts.copy_start, chunk.by_time, chunk.moved_in, *ranges)
                return compare_in_order(source, copy, options, edges, chunk.explain)
            sides = Sides(source, copy, *self._numbering(chunk))
            return compare(sides, bounds, options, chunk.explain, self._owner(chunk)), 0

    def _with_evaluated(self, chunk: Chunk, evaluated: "EvaluatedSource", leader: LeaderRead) -> tuple[Compared, int]:
        facts = chunk.facts
        options = Options(timed=facts.timed, strong=self._settings.strong)
        there = TopicPartition(facts.copy_topic, facts.partition)
        with closing(self._copy.items(there, chunk.copy_from, chunk.copy_to)) as copy:
            items = leader.noting(copy) if self._settings.replicas else copy
            sides = Sides(evaluated.items(), items, *self._numbering(chunk))
            found = compare(sides, chunk.bounds, options, chunk.explain, self._owner(chunk))
        if evaluated.left_out:
            found.tally.counts["skipped", LEFT_OUT] += evaluated.left_out
        read = evaluated.read
        found.source_bytes, found.source_batches, found.newest_ms = read.bytes, read.batches, read.newest_ms
        return found, evaluated.tail

    def _numbering(self, chunk: Chunk) -> tuple[Numbering, Numbering]:
        if chunk.relation == "offset":
            return SameOffsets(), SameOffsets()
        return (
            MappedSource(chunk.pieces),
            StampedCopy(self._settings.producer_id, chunk.bounds.first, chunk.shift),
        )

    def _owner(self, chunk: Chunk) -> Callable[[int], str]:
        return lambda producer_id: self._settings.owners.get(str(producer_id), chunk.facts.on_foreign)


def _result(
    chunk: Chunk, found: Compared, followers: FollowersRead, tail: int, error: str, seconds: float, cpu_seconds: float
) -> ChunkResult:
    if error:
        return failed(chunk, error)
    counts = found.tally.counts
    return ChunkResult(
        *_place(chunk),
        verdict_of(counts, complete=not followers.unread),
        records=found.records,
        by_batch=found.by_batch,
        by_record=found.by_record,
        source_bytes=found.source_bytes,
        copy_bytes=found.copy_bytes,
        source_batches=found.source_batches,
        copy_batches=found.copy_batches,
        source_digest=found.digests[0],
        copy_digest=found.digests[1],
        counts=tuple((kind, explained, records) for (kind, explained), records in sorted(counts.items())),
        differences=tuple(found.tally.differences),
        tail=tail,
        newest_ms=found.newest_ms,
        replica_bytes=followers.bytes,
        unread="; ".join(followers.unread),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
    )


def failed(chunk: Chunk, error: str) -> ChunkResult:
    """Return the result of a chunk that could not be compared."""
    return ChunkResult(*_place(chunk), "error", error=error)


def _place(chunk: Chunk) -> tuple[str, int, int, int, int, int, int, int]:
    return (chunk.facts.topic, chunk.facts.partition, *chunk.bounds, chunk.copy_from, chunk.copy_to)
