"""A record in the quarantine topic: key, value and headers unchanged, and added headers with its origin.

Its own timestamp is one of the added headers, since the destination may have rejected the record for its timestamp.
"""

from typing import NamedTuple

from strait.reasons import Reason
from strait.waiting import unix_ms
from strait.wire.records import Record

PREFIX = "strait."
"""Prefix of added headers: topic, partition, offset, timestamp_ms, destination, reason, detail, quarantined_at_ms."""


class QuarantinedRecord(NamedTuple):
    """One quarantined record, with its source coordinates (``record.offset`` is the source's)."""

    topic: str
    partition: int
    destination: str
    record: Record
    reason: Reason
    detail: str


def headers_of(quarantined: QuarantinedRecord) -> list[tuple[str, bytes | None]]:
    """Return the record's own headers, then the added ones."""
    added = {
        "topic": quarantined.topic,
        "partition": quarantined.partition,
        "offset": quarantined.record.offset,
        "timestamp_ms": quarantined.record.timestamp_ms,
        "destination": quarantined.destination,
        "reason": quarantined.reason.value,
        "detail": quarantined.detail,
        "quarantined_at_ms": unix_ms(),
    }
    own = [
        (key.encode(errors="surrogateescape").decode(errors="replace"), value)
        for key, value in quarantined.record.headers
    ]
    return own + [(PREFIX + key, str(value).encode()) for key, value in added.items()]
