"""Finds records of a link's source that the destination lacks and the destination of another link has: if the source is
lost, only that other cluster still holds them. Queries the two destinations alone."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import NamedTuple

from strait.config.validation import did_you_mean
from strait.control.last_copied import copied_record
from strait.control.quarantine import Quarantine
from strait.control.resumption import ResumePoint, Resumption, resumption
from strait.errors import ConfigError
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs
from strait.planning.held_elsewhere import Held, Reach, held
from strait.planning.two_way import Copies, Log, NotExact
from strait.state.link_handle import ConfiguredLink
from strait.state.offset_map import full_sequence, locate
from strait.state.schema import Loss
from strait.state.tail_records import TailRecord
from strait.state.translation import Translator
from strait.state.unchanged_parts import UnchangedParts
from strait.text import plural
from strait.wire.batch import CONTROL
from strait.wire.records import Record, read_records

_READ_BYTES = 4 << 20


class CopySide(NamedTuple):
    """A link, its destination, and its resume points."""

    link: ConfiguredLink
    admin: Admin
    resumption: Resumption
    points: Mapping[TopicPartition, ResumePoint]

    @property
    def producer_id(self) -> int:
        return next(plan.producer_id for plan in self.resumption.plans.values())


def links_beside(link: ConfiguredLink) -> list[str]:
    """Return the other links from the same source into other clusters."""
    own = link.settings
    return sorted(
        name
        for name, other in link.file.links.items()
        if name != link.name and other.source == own.source and other.destination != own.destination
    )


class HeldRecords:
    """The records that the destination of link ``other`` has, and that of ``link`` lacks.

    Raises (every method and property):
        ConfigError: the two links do not have the same source, or have no plan.
        ClusterUnavailable, NotAuthorized, StateError
    """

    def __init__(self, link: ConfiguredLink, other: str) -> None:
        beside = links_beside(link)
        if other not in beside:
            known = f"; others: {', '.join(beside)}" if beside else ""
            problem = f"{other!r} is no other link from {link.source.name} into another cluster"
            raise ConfigError(f"link {link.name}", [f"{problem}{did_you_mean(other, beside)}{known}"])
        self.link, self.other = link, other

    @cached_property
    def mine(self) -> CopySide:
        return self._side(self.link)

    @cached_property
    def theirs(self) -> CopySide:
        return self._side(self.link.other(self.other))

    @cached_property
    def held(self) -> list[Held]:
        """The records of each partition that both links replicate."""
        sources = [
            {plan.source_cluster for plan in side.resumption.plans.values()} - {""} for side in (self.mine, self.theirs)
        ]
        if all(sources) and sources[0] != sources[1]:
            raise ConfigError(f"link {self.link.name}", [f"link {self.other} has replicated another cluster"])
        with PartitionLogs(*self.link.destination) as here, self._their_logs() as there:
            losses = self._their_losses()
            found = [
                self._held(place, losses.get(place, []), here, there)
                for place in sorted(self.mine.points.keys() & self.theirs.points.keys())
            ]
        return [one for one in found if one is not None]

    def records(self, found: Iterable[Held]) -> Iterator[TailRecord]:
        """Yield the records, in order within each partition, with their offsets on the source."""
        with self._their_logs() as logs:
            for one in found:
                point = self.theirs.points[one.part.place]
                for number, record in self._numbered(logs, point, one):
                    offset = locate(point.runs, number + 1) - 1
                    place, contents = one.part.place, (record.key, record.value, record.headers)
                    yield TailRecord(place.topic, place.partition, offset, record.timestamp_ms, *contents)

    def next_offset(self, one: Held, number: int) -> int:
        """Return the next source offset after that many records of the other link."""
        end = one.part.to_offset
        return end if number >= one.end else min(end, locate(self.theirs.points[one.part.place].runs, number))

    def _side(self, link: ConfiguredLink) -> CopySide:
        admin = link.admin("destination")
        found = resumption(link, None, admin)
        return CopySide(link, admin, found, {point.place: point for point in found.points})

    def _their_logs(self) -> PartitionLogs:
        return PartitionLogs(*self.theirs.link.destination)

    def _their_losses(self) -> dict[TopicPartition, list[Loss]]:
        with self.theirs.link.state("losses") as state:
            state.catch_up()
            found: dict[TopicPartition, list[Loss]] = {}
            for loss in state.losses:
                found.setdefault(TopicPartition(loss.topic, loss.partition), []).append(loss)
            return found

    @cached_property
    def _quarantined(self) -> list[tuple[TopicPartition, int]]:
        entries = Quarantine(self.theirs.link).contents().entries()
        return [(TopicPartition(entry.topic, entry.partition), entry.offset) for entry in entries]

    def _held(
        self, place: TopicPartition, losses: list[Loss], here: PartitionLogs, there: PartitionLogs
    ) -> Held | None:
        mine, theirs = self.mine.points[place], self.theirs.points[place]
        if not theirs.runs:
            return None
        found = held(place, mine.topic.destination, _reach(mine), _reach(theirs), _translator(theirs), losses)
        if found is None or not found.part.exact:
            return found
        why = self._doubt(found, mine, theirs, here, there)
        return found.doubted(why) if why else found

    def _doubt(
        self, found: Held, mine: ResumePoint, theirs: ResumePoint, here: PartitionLogs, there: PartitionLogs
    ) -> str:
        """Return why the records cannot be copied; "" if they can."""
        if any(point.topic.policy.transform is not None for point in (mine, theirs)):
            return "one of the two links transforms the topic's records, so they are not those of the source"
        start, end = found.part.range
        aside = sum(place == found.part.place and start <= offset < end for place, offset in self._quarantined)
        if aside:
            return f"{plural(aside, 'record is', 'records are')} in the quarantine of the other link"
        try:
            if found.records:
                offset = self._offset_of(there, theirs, found.first)
                first = next((number for number, _ in self._numbered(there, theirs, found, offset)), -1)
                if first != found.first:
                    return f"{self.theirs.admin.cluster} has deleted records of them"
            return self._difference(mine, theirs, here, there)
        except NotExact as why:
            return str(why)

    def _difference(self, mine: ResumePoint, theirs: ResumePoint, here: PartitionLogs, there: PartitionLogs) -> str:
        """Return that the link's last record differs from the other link's one of the same source offset; "" if it is
        equal, one of them was deleted, or that offset is not exact on both sides.

        The link may have passed over later records: with those that an earlier, interrupted run has copied here.
        """
        last = _translator(mine).last_record() if mine.written else None
        if last is None:
            return ""
        before, after = map(_translator(theirs).records_before, (last[0], last[0] + 1))
        if not (before.exact and after.exact and after.number == before.number + 1):
            return ""
        ours = copied_record(here, mine.copy, last[1], (self.mine.producer_id, mine.written - 1))
        offset = self._offset_of(there, theirs, before.number)
        other = copied_record(there, theirs.copy, offset, (self.theirs.producer_id, before.number))
        stamped = any(point.topic.policy.destination_append_time for point in (mine, theirs))
        unchanged = UnchangedParts(time=not stamped)
        if ours is None or other is None or unchanged.content(ours) == unchanged.content(other):
            return ""
        return f"the record of source offset {last[0]:,}, the last one that both destinations should have, differs"

    def _offset_of(self, logs: PartitionLogs, point: ResumePoint, number: int) -> int:
        """Return the destination offset of a record of the other link. Raises NotExact."""
        end = self.theirs.admin.offsets([point.copy], "end")[point.copy]
        start = self.theirs.admin.offsets([point.copy], "earliest")[point.copy]
        log = Log(partial(logs.read, point.copy), start)
        points = [*_translator(point).checkpoints(), (end, point.written)]
        return Copies(log, self.theirs.producer_id, points).offset_of(number, end)

    def _numbered(
        self, logs: PartitionLogs, point: ResumePoint, one: Held, offset: int | None = None
    ) -> Iterator[tuple[int, Record]]:
        """Yield the other link's records from number ``one.first`` to ``one.end``, each with its number."""
        if not one.records:
            return
        at = self._offset_of(logs, point, one.first) if offset is None else offset
        while True:
            part = logs.read_whole(point.copy, at, _READ_BYTES, committed=False)
            for batch in part.batches:
                if batch.producer_id != self.theirs.producer_id or batch.attributes & CONTROL or not batch.records:
                    continue
                base = full_sequence(batch.base_sequence, near=one.first)
                for record in read_records(batch):
                    number = base + record.offset - batch.base_offset
                    if number >= one.end:
                        return
                    if number >= one.first and record.offset >= at:
                        yield number, record
            if part.ended or part.next <= at:
                return
            at = part.next


def _reach(point: ResumePoint) -> Reach:
    return Reach(point.offset, point.exact, point.detail, point.written, point.topic.source_id)


def _translator(point: ResumePoint) -> Translator:
    policy = point.topic.policy
    shared = policy.on_foreign != "halt" or any(run.shared for run in point.runs)
    return Translator(point.runs, point.written, shared=shared, compacted=policy.source_compacted)
