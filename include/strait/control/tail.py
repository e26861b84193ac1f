"""The tail of a link: records that its source holds and its destination never got, as after a failover on disaster."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from confluent_kafka import Message

from strait.control.last_copied import misplaced
from strait.control.quarantine import Quarantine
from strait.control.registration import writing_links
from strait.control.resumption import ResumePoint, Resumption, resumption
from strait.kafka.admin import Admin
from strait.kafka.reading import read_under_names
from strait.model import TopicPartition
from strait.net.partition_logs import LoggedBatch, PartitionLogs
from strait.planning.tail import TailPart, doubted, of_transformed, tail_part
from strait.planning.topic_sync.heartbeats import written_by_links
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.state.registrations import producers_left_out
from strait.state.schema import Loss, Registration
from strait.state.tail_records import TailRecord

_READ_BYTES = 4 << 20


class TailReader:
    """Reads the tail of one link. Each query is made only once, so that all results are of one moment.

    Raises (every method and property):
        ConfigError: the link has no plan.
        ClusterUnavailable, NotAuthorized, StateError
    """

    def __init__(self, link: ConfiguredLink) -> None:
        self.link = link
        self._batches: dict[TopicPartition, list[LoggedBatch]] = {}

    @cached_property
    def source(self) -> Admin:
        return self.link.admin("source")

    @cached_property
    def destination(self) -> Admin:
        return self.link.admin("destination")

    @cached_property
    def resumption(self) -> Resumption:
        """The offsets at which the link would resume, of all partitions except those of heartbeats, which links write
        themselves."""
        found = resumption(self.link, self.source, self.destination)
        beats = written_by_links(self.link.settings, found.plans.values(), self.link.file.clusters)
        return Resumption([point for point in found.points if point.topic.source not in beats], found.plans)

    @cached_property
    def parts(self) -> list[TailPart]:
        """The tail of each partition, including those that have none."""
        points = {point.place: point for point in self.resumption.points}
        first, stable, end = (self.source.offsets_each(points, where) for where in ("earliest", "latest", "end"))
        failures = {**first.failures, **stable.failures, **end.failures}
        parts = [
            tail_part(
                place,
                point.topic.destination,
                (None, False, failures[place].message, 0) if place in failures else _known(point),
                (0, 0, 0) if place in failures else (first.results[place], stable.results[place], end.results[place]),
            )
            for place, point in points.items()
        ]
        producer_id = next(plan.producer_id for plan in self.resumption.plans.values())
        with PartitionLogs(*self.link.source) as source, PartitionLogs(*self.link.destination) as copies:
            known = [
                doubted(part, misplaced(points[part.place], producer_id, source, copies))
                if part.exact and part.has_offsets
                else part
                for part in parts
            ]
        return [of_transformed(part) if points[part.place].topic.policy.transform else part for part in known]

    def records(self, parts: Collection[TailPart]) -> Iterator[TailRecord]:
        """Yield every committed record of these tails, in order within each partition; without records that links have
        written there if the link does not copy them, and without those in quarantine."""
        ranges = {part.place: part.range for part in parts if part.has_offsets}
        skipped = self._copies(ranges)
        quarantined = self._quarantined if ranges else frozenset()
        for place, message in read_under_names(*self.link.source, ranges):
            record = record_of(message, place)
            if (*place, record.offset, record.timestamp_ms) in quarantined:
                continue
            if not _within(skipped[place], record.offset):
                yield record

    @cached_property
    def dropped(self) -> dict[TopicPartition, int]:
        """Partitions of which a tail was dropped -> time of the last drop, in ms."""
        found: dict[TopicPartition, int] = {}
        for loss in self.drops:
            place = TopicPartition(loss.topic, loss.partition)
            found[place] = max(loss.at_ms, found.get(place, 0))
        return found

    @cached_property
    def drops(self) -> list[Loss]:
        """Tails that were dropped, according to the loss log, oldest first."""
        with self.link.state("losses") as state:
            state.catch_up()
            return [loss for loss in state.losses if loss.cause == Reason.TAIL_DROPPED]

    def batches(self, places: Collection[TopicPartition]) -> Mapping[TopicPartition, Sequence[LoggedBatch]]:
        """Return the batches in the source's log of each partition, from the tail's first offset on."""
        first = {part.place: part.range[0] for part in self.parts}
        with PartitionLogs(*self.link.source) as logs:
            for place in places:
                if place not in self._batches:
                    self._batches[place] = list(read_log(logs, place, first[place]))
        return {place: self._batches[place] for place in places}

    # --- records that are not part of the tail ------------------------------------------------------------------------

    @cached_property
    def _writing(self) -> Collection[Registration]:
        """Links that write to the source. Read after the tails' ends: each is registered before it writes."""
        self.parts  # noqa: B018
        return writing_links(*self.link.source)

    @cached_property
    def _quarantined(self) -> frozenset[tuple[str, int, int, int]]:
        entries = Quarantine(self.link).contents().entries()
        return frozenset((entry.topic, entry.partition, entry.offset, entry.timestamp_ms) for entry in entries)

    def _copies(self, places: Collection[TopicPartition]) -> dict[TopicPartition, list[tuple[int, int]]]:
        """Return offsets [from, to) of batches that the link skips, since a link has written them."""
        policies = {point.place: point.topic.policy.copies for point in self.resumption.points}
        left_out = {place: self._left_out(policies[place]) for place in places}
        batches = self.batches([place for place, producers in left_out.items() if producers])
        return {
            place: [(one.base, one.next) for one in batches.get(place, ()) if one.producer_id in producers]
            for place, producers in left_out.items()
        }

    def _left_out(self, policy: str) -> Collection[int]:
        """Return the producers whose batches the link does not copy, by the same rule as its slots."""
        if policy == "all":
            return ()
        return producers_left_out(policy, self._writing, self.source.cluster_id, self.destination.cluster_id)


def read_log(logs: PartitionLogs, place: TopicPartition, offset: int, end: int = sys.maxsize) -> Iterator[LoggedBatch]:
    """Yield every batch with offsets in [``offset``, ``end``)."""
    at = offset
    while at < end:
        part = logs.read(place, at, _READ_BYTES)
        for batch in part.batches:
            if batch.next > at and batch.base < end:
                yield batch
        if part.ended or part.next <= at:
            return
        at = part.next


def _known(point: ResumePoint) -> tuple[int | None, bool, str, int]:
    return point.offset, point.exact, point.detail, point.written


def record_of(message: Message, place: TopicPartition) -> TailRecord:
    """Return a message of the source as a record of a tail. ``place``: its partition in plans."""
    _, timestamp_ms = message.timestamp()
    return TailRecord(
        *place, message.offset() or 0, timestamp_ms, message.key(), message.value(), tuple(message.headers() or ())
    )


def _within(ranges: list[tuple[int, int]], offset: int) -> bool:
    """Return whether an offset is in the ranges. Removes ranges that end before it: offsets come in order."""
    while ranges and ranges[0][1] <= offset:
        ranges.pop(0)
    return bool(ranges) and ranges[0][0] <= offset
