"""A record in the quarantine topic: key, value and headers as they were, and more headers that say where it comes from.

Its own timestamp is one of those, since that may be what the destination refuses.
"""

import time
from typing import NamedTuple

from strait.reasons import Reason
from strait.wire.records import Record

PREFIX = "strait."
"""Of the added headers: topic, partition, offset, timestamp_ms, destination, reason, detail, quarantined_at_ms."""


class QuarantinedRecord(NamedTuple):
    """One record that is kept aside, with its source coordinates (``record.offset`` is the source's)."""

    topic: str
    partition: int
    destination: str
    record: Record
    reason: Reason
    detail: str


def headers_of(aside: QuarantinedRecord) -> list[tuple[str, bytes | None]]:
    """The record's own headers, then ours."""
    added = {
        "topic": aside.topic,
        "partition": aside.partition,
        "offset": aside.record.offset,
        "timestamp_ms": aside.record.timestamp_ms,
        "destination": aside.destination,
        "reason": aside.reason.value,
        "detail": aside.detail,
        "quarantined_at_ms": int(time.time() * 1000),
    }
    own = [
        (key.encode(errors="surrogateescape").decode(errors="replace"), value) for key, value in aside.record.headers
    ]
    return own + [(PREFIX + key, str(value).encode()) for key, value in added.items()]
