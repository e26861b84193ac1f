"""Repairs a topic by copying it again, into a new one: records that the source still has from there, earlier ones from the
old copy. The new topic is read and compared, consumer groups get their offsets, and the map gets the offsets at which the link
continues there once its settings name the new topic.

The new topic must not exist before. An interrupted repair leaves it; it is deleted and the repair run again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from strait.audit.plan import AuditedPartition, AuditPlan
from strait.config import naming
from strait.consumer_groups.offsets import Offsets
from strait.control.registration import register_moved_in, repair_writer
from strait.control.repair.groups import GroupOffsets
from strait.control.repair.numbers import Equivalents, Numbers
from strait.control.repair.plan import TopicRepair, places
from strait.control.repair.records import digest_of, records
from strait.control.resumption import ResumePoint
from strait.control.tail_copy import settled_end
from strait.errors import ClusterUnavailable, ConfigError, PlanConflict, StateError
from strait.kafka.admin import ConfigChange, NewTopic
from strait.kafka.transactions import TransactionalWriter, chunks
from strait.model import TopicPartition
from strait.planning.topics.new_partitions import NewPartition
from strait.state.link_handle import ConfiguredLink
from strait.state.moved_copies import MovedCopies
from strait.state.translation import Fit
from strait.text import plural
from strait.waiting import tries, unix_ms
from strait.wire.records import Record

_CHUNK_RECORDS = 5_000
_CONFIGS = (
    "cleanup.policy", "compression.type", "max.message.bytes", "message.timestamp.type", "min.insync.replicas",
    "segment.bytes", "segment.ms",
)  # fmt: skip
_RETENTION = ("retention.ms", "retention.bytes")
_KEEP = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
}  # until it was verified: records may be older than the retention
_DIGEST_BYTES = 16
_SHOWN_SECONDS = 15.0
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Written:
    """The result of copying one topic again."""

    records: int
    groups: Mapping[str, int]
    groups_left: Mapping[str, str]


class TopicCopy:
    """The repair of one topic. ``points``: the resume point of each source partition."""

    def __init__(
        self,
        link: ConfiguredLink,
        audit: AuditPlan,
        repair: TopicRepair,
        points: Mapping[TopicPartition, ResumePoint],
        show: Callable[[str], None],
    ) -> None:
        self._link = link
        self._audit = audit
        self._repair = repair
        self._points = points
        self._show = show
        self._source, self._destination = link.admin("source"), link.admin("destination")

    def carry_out(self) -> Written:
        """Copy, verify and publish. Raises as `repair`."""
        link, into = self._link, self._repair.into
        topic_id, retention = self._create()
        ends: dict[int, int] = {}
        groups, records_written = GroupOffsets(link, self._repair.copy), 0
        doing = f"repairing {self._repair.topic} into {into}"
        with repair_writer(
            self._destination,
            link.name,
            naming.repair_transactional_id(link.name),
            doing=doing,
            taken_over="another repair has started",
            hint=f"delete topic {into}, then repair again",
        ) as writer:
            for one, place, copy in places(self._repair):
                stream = self._stream(one, place, copy)
                target = TopicPartition(into, place.partition)
                for chunk in chunks(stream, _size, _CHUNK_RECORDS):
                    _write(writer, doing, target, chunk)
                end, new = self._verify(target, stream)
                ends[place.partition] = end
                groups.add(copy, stream.equivalents(new, end))
                records_written += stream.count
                self._show(f"{target}: {plural(stream.count, 'record')} copied and verified")
        self._destination.alter_each({into: ConfigChange(retention)}).or_raise()
        self._publish(topic_id, ends)
        return Written(records_written, *groups.commit(into))

    def _create(self) -> tuple[str, Mapping[str, str]]:
        """Create the new topic like the old copy; return its ID, and the retention that it gets at the end."""
        into, copy = self._repair.into, self._repair.copy
        names = {into, copy}
        facts = self._destination.observe(names.__contains__, (*_CONFIGS, *_RETENTION)).topics
        if into in facts:
            hint = "delete it if an interrupted repair left it"
            raise ConfigError(f"cluster {self._destination.cluster}", [f"topic {into} exists already"], hint=hint)
        old = facts[copy]
        configs = {name: value for name in _CONFIGS if (value := old.configs.get(name))}
        new = NewTopic(into, old.partitions, old.replicas or None, configs | _KEEP)
        self._destination.create([new])
        for _ in tries(_SHOWN_SECONDS, _PAUSE_SECONDS):
            made = self._destination.observe(into.__eq__).topics
            if into in made:
                return made[into].topic_id, {name: value for name in _RETENTION if (value := old.configs.get(name))}
        raise ClusterUnavailable(self._destination.cluster, f"creating topic {into}: it is not shown")

    def _stream(self, one: AuditedPartition, place: TopicPartition, copy: TopicPartition) -> "_Stream":
        """Return the records of one partition, as they should be."""
        point, link = self._points[place], self._link
        first = min(point.runs, key=lambda run: run.sequence_base)
        start = self._source.offsets([place], "earliest")[place]
        copy_start = self._destination.offsets([copy], "earliest")[copy]
        source_from, copy_to = max(start, first.source_base), first.destination_base
        if start > first.source_base:
            (found,) = Offsets(link).to_destination([(place, start)])
            if found.to_offset is None or found.fit != Fit.EXACT:
                raise StateError(
                    f"{place}: where the source's first record is in {copy.topic} is not known: {found.detail}"
                )
            copy_to = found.to_offset
        before = records(link.destination, copy, copy_start, copy_to, may_expire=True)
        after = records(link.source, place, source_from, point.offset or 0, skipped=one.skipped_producers)
        left_out = sorted((entry.first, entry.end) for entry in one.on_record if entry.left_out)
        return _Stream(before, _without(left_out, after), copy_to, source_from)

    def _verify(self, target: TopicPartition, stream: "_Stream") -> tuple[int, Numbers]:
        """Compare the written records with those read before; return the end of the partition, and their numbers."""
        end = settled_end(self._destination, target)
        known = _Stream(iter(()), records(self._link.destination, target, 0, end), 0, 0)
        for _ in known:
            pass
        if (known.count, known.digest) != (stream.count, stream.digest):
            raise StateError(
                f"{target}: {plural(known.count, 'record was', 'records were')} read again, {stream.count:,} were written, and they are not the same",
                hint=f"delete topic {target.topic}, then repair again",
            )
        return end, known.source

    def _publish(self, topic_id: str, ends: Mapping[int, int]) -> None:
        """Record the offsets at which the link continues in the new topic, once its settings name it."""
        link, into = self._link, self._repair.into
        now_ms, runs = unix_ms(), []
        for number, end in ends.items():
            place = TopicPartition(self._repair.topic, number)
            point = self._points[place]
            new = NewPartition(into, point.topic.source_id, topic_id, point.offset or 0, end)
            runs.append(new.first_run(place, now_ms))
        copies = MovedCopies(
            moved_in=into,
            topic_id=topic_id,
            link=link.name,
            source=self._source.cluster_id,
            ends=tuple(ends[number] for number in sorted(ends)),
        )
        if any(copies.ends):
            register_moved_in(self._destination, [copies], None)
        with link.state() as state, link.publisher().exclusive(state) as publication:
            if not all(plan.stopped for plan in state.plans.values()):
                raise PlanConflict(
                    f"link {link.name}: repairing {self._repair.topic}: it was started; {into} is not used"
                )
            publication.publish((), runs)


def _without(left_out: Sequence[tuple[int, int]], found: Iterable[Record]) -> Iterator[Record]:
    """Yield the records outside of these offsets. Both ascend."""
    at = 0
    for record in found:
        while at < len(left_out) and left_out[at][1] <= record.offset:
            at += 1
        if at == len(left_out) or record.offset < left_out[at][0]:
            yield record


class _Stream:
    """Records in order: those of the old copy before ``copy_to``, then those of the source from ``source_from`` on.

    Attributes:
        count, digest: of the records so far.
        old, source: the numbers of both parts' records so far.
    """

    def __init__(self, before: Iterator[Record], after: Iterator[Record], copy_to: int, source_from: int) -> None:
        self._before, self._after = before, after
        self._bounds = copy_to, source_from
        self._hash = blake2b(digest_size=_DIGEST_BYTES)
        self.count = 0
        self.old, self.source = Numbers(), Numbers()

    @property
    def digest(self) -> bytes:
        return self._hash.digest()

    def equivalents(self, new: Numbers, end: int) -> Equivalents:
        """Return the equivalents of the offsets of both parts. ``new``: the records that were written; ``end``: of their
        partition."""
        return Equivalents(*self._bounds, self.old, self.source, new, end)

    def __iter__(self) -> Iterator[Record]:
        yield from self._counted(self._before, self.old)
        self.source = Numbers(self.count)
        yield from self._counted(self._after, self.source)

    def _counted(self, found: Iterator[Record], numbers: Numbers) -> Iterator[Record]:
        for record in found:
            numbers.add(record.offset)
            self._hash.update(digest_of(record))
            self.count += 1
            yield record


def _write(writer: TransactionalWriter, doing: str, target: TopicPartition, chunk: Sequence[Record]) -> None:
    with writer.transaction(doing):
        for record in chunk:
            writer.produce(
                doing,
                topic=target.topic,
                partition=target.partition,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp=record.timestamp_ms,
            )


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")
