"""Repairs a compacted topic: appends the source's newest value of each key whose newest value differs.

Readers that continue get the newest value of each key last. The records and the map entry by which the link takes them into
account are in one transaction, so an interrupted repair is run again: keys that are equal by then are not written again.
"""

from collections.abc import Callable, Iterator, Mapping

from strait.config import naming
from strait.config.cluster import Cluster
from strait.control.registration import register_repair
from strait.control.repair.plan import TopicRepair, places
from strait.control.repair.records import digest_of, records
from strait.control.resumption import ResumePoint
from strait.control.tail_copy import settled_end
from strait.control.tail_drop import passed_over
from strait.errors import PlanConflict
from strait.kafka.transactions import chunks
from strait.model import TopicPartition
from strait.state.link_handle import ConfiguredLink
from strait.state.publisher import CopiedRecord, Publication
from strait.text import plural
from strait.waiting import unix_ms
from strait.wire.records import Record

_CHUNK_RECORDS = 5_000
_SHOW_EVERY = 100_000


def append_newest(
    link: ConfiguredLink, repair: TopicRepair, points: Mapping[TopicPartition, ResumePoint], show: Callable[[str], None]
) -> int:
    """Append the records; return their number. Raises as `repair`."""
    admin = link.admin("destination")
    register_repair(admin, link.name, naming.control_transactional_id(link.name))
    count = 0
    with link.state() as state, link.publisher().exclusive(state) as publication:
        if not all(plan.stopped for plan in state.plans.values()):
            raise PlanConflict(f"link {link.name}: repairing {repair.topic}: it was started; nothing was written")
        for one, place, copy in places(repair):
            point = points[place]
            end = settled_end(admin, copy)
            starts = {"earliest": link.admin("source").offsets([place], "earliest")[place]}
            skipped = one.skipped_producers
            here = _newest(records(link.source, place, starts["earliest"], point.offset or 0, skipped=skipped))
            there = _newest(records(link.destination, copy, 0, end, may_expire=True))
            differing = [key for key in here.keys() | there.keys() if _value(here.get(key)) != _value(there.get(key))]
            wanted = {here[key][1]: key for key in differing if key in here}
            gone = [key for key in differing if key not in here and not there[key][2]]
            show(
                f"{place}: {len(wanted) + len(gone):,} of {plural(len(here.keys() | there.keys()), 'key has', 'keys have')} another value"
            )
            found = _chosen(link.source, place, wanted, skipped)
            count += _Appending(publication, point, copy, end).write(found, gone)
    return count


_Newest = Mapping[bytes | None, tuple[bytes, int, bool]]
"""Key -> digest, offset, and whether it is a deletion, of its newest record."""


def _newest(found: Iterator[Record]) -> _Newest:
    return {record.key: (digest_of(record), record.offset, record.value is None) for record in found}


def _value(one: tuple[bytes, int, bool] | None) -> bytes | None:
    """Return the digest of a key's newest value; a deleted key is as one that never was."""
    return None if one is None or one[2] else one[0]


def _chosen(
    cluster: Cluster, place: TopicPartition, wanted: Mapping[int, bytes | None], skipped: tuple[int, ...]
) -> Iterator[Record]:
    if wanted:
        for record in records(cluster, place, min(wanted), max(wanted) + 1, skipped=skipped):
            if record.offset in wanted:
                yield record


class _Appending:
    """The writing of one partition."""

    def __init__(self, publication: Publication, point: ResumePoint, copy: TopicPartition, end: int) -> None:
        self._publication = publication
        self._point = point
        self._copy = copy
        self._end = end
        self._runs = sorted(point.runs, key=lambda run: run.sequence_base)

    def write(self, found: Iterator[Record], gone: list[bytes | None]) -> int:
        deletions = (Record(0, unix_ms(), key, None, ()) for key in gone)
        count = 0
        for source in (found, deletions):
            for chunk in chunks(
                source, lambda record: len(record.key or b"") + len(record.value or b""), _CHUNK_RECORDS
            ):
                self._write(chunk)
                count += len(chunk)
        return count

    def _write(self, chunk: list[Record]) -> None:
        written = [
            CopiedRecord(*self._copy, record.key, record.value, record.headers, record.timestamp_ms) for record in chunk
        ]
        self._end += len(chunk) + 1  # and the transaction's marker
        offset = self._point.offset or 0
        change = passed_over(self._runs, self._point.written, offset, unix_ms(), self._end)
        self._publication.publish((), change.written, (), change.forgotten, written)
        self._runs = sorted(change.runs, key=lambda run: run.sequence_base)
