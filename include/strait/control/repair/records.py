"""Records of a log as a repair reads them: batch by batch, each with its checksum verified."""

from collections.abc import Collection, Iterator
from hashlib import blake2b
from struct import Struct

from strait.audit.feed import Hole
from strait.audit.reading import LogSide, Pace
from strait.config.cluster import Cluster
from strait.errors import CorruptBatch, StateError
from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs
from strait.wire.batch import check
from strait.wire.legacy import read_legacy
from strait.wire.record_bytes import encode_content
from strait.wire.records import Record, read_records

FIRST_MS = 1  # earliest timestamp that librdkafka writes unchanged
_TIME = Struct(">q")
_DIGEST_BYTES = 16


def records(
    cluster: Cluster,
    place: TopicPartition,
    first: int,
    end: int,
    *,
    skipped: Collection[int] = (),
    may_expire: bool = False,
) -> Iterator[Record]:
    """Yield the committed records at the offsets [``first``, ``end``), except those that compaction removed. A range that was
    not read to its end raises: a caller would take the unread records for absent ones, and omit or delete them.

    Args:
        skipped: producer IDs whose records are skipped.
        may_expire: the first records of the range may be deleted before they are read: no other cluster has them, and
            their retention is over.

    Raises:
        ClusterUnavailable, NotAuthorized
        StateError: a batch is damaged, records were deleted meanwhile, or the log ends before ``end``.
    """
    kept_from = first
    with PartitionLogs(*cluster) as logs:
        side = LogSide(logs, Pace(0.0), skipped_producers=skipped, compacted=True)
        for item in side.items(place, first, end):
            if isinstance(item, Hole):
                if item.why == "damaged":
                    raise _damaged(cluster, place, item.first)
                if not may_expire or item.first > kept_from:
                    raise _deleted(cluster, place, item)
                kept_from = item.end
                continue
            if not item.records and item.magic == 2:
                continue
            try:
                check(item)
                found = read_records(item) if item.magic == 2 else read_legacy(item.view)
            except CorruptBatch:
                raise _damaged(cluster, place, item.base_offset) from None
            yield from (record for record in found if first <= record.offset < end)
        if side.reached < end:
            raise _ended(cluster, place, side.reached, end)


def digest_of(record: Record) -> bytes:
    """Return a digest of all that a consumer sees of a record but its offset. Without a timestamp it has the one that a
    repair writes instead."""
    content = _TIME.pack(max(FIRST_MS, record.timestamp_ms)) + encode_content(record.key, record.value, record.headers)
    return blake2b(content, digest_size=_DIGEST_BYTES).digest()


def _damaged(cluster: Cluster, place: TopicPartition, offset: int) -> StateError:
    return StateError(
        f"cluster {cluster.name}: {place}: the batch at offset {offset} is damaged, so its records cannot be copied",
        hint="move the leadership to another replica, audit again, then repair",
    )


def _deleted(cluster: Cluster, place: TopicPartition, hole: Hole) -> StateError:
    return StateError(
        f"cluster {cluster.name}: {place}: copying records: those at the offsets {hole.first} to {hole.end - 1} were deleted "
        "before they were read",
        hint="set a longer retention.ms and retention.bytes for the topic until the repair is over, then repair again",
    )


def _ended(cluster: Cluster, place: TopicPartition, reached: int, end: int) -> StateError:
    return StateError(
        f"cluster {cluster.name}: {place}: copying records before offset {end}: the log can be read only to offset {reached}, "
        "so it lost records or a transaction is open",
        hint="start the link, resolve the issues in `strait status`, audit again, then repair",
    )
