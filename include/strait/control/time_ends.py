"""The ends of the records before a time in partitions of a source. Queries it."""

from collections.abc import Collection

from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.planning.status.up_to import Ends


def ends_before(admin: Admin, places: Collection[TopicPartition], at_ms: int, now_ms: int) -> Ends:
    """Return, for each partition, the offset of its first record whose timestamp is ``at_ms`` (ms since 1970) or later.

    Of a partition without such a record, and of one whose record has a timestamp in the future, its log's present end:
    records that follow that one may have any time.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    ends = dict(admin.offsets(places, "end"))
    found = admin.first_since_each(dict.fromkeys(places, at_ms)).or_raise()
    return ends | {
        place: first.offset for place, first in found.items() if first.offset >= 0 and first.timestamp_ms <= now_ms
    }
