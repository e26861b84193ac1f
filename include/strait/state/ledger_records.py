"""Schema of the records of the ledger topic; see `strait.state.schema`."""

from typing import Literal

from pydantic import Field

from strait.state.record import Offset, Record


class LedgerEntry(Record):
    """One slot's progress with one partition in one interval; ranges are half-open.

    [source_from, source_to) was copied to [destination_from, destination_to), which are the link's records
    [sequence_from, sequence_to) of that partition; -1: unknown yet. ``records``, ``batches``, ``bytes`` and ``digest``
    cover the batches that this process saw acknowledged: fewer than the range if an acknowledgement was lost or another
    process wrote a part of it, and -1 if no remaining process knows them. ``digest`` is the CRC-32 of the CRC-32C of
    every copied batch as the source holds it, in order: equal ranges of equal batches give equal digests.

    ``copy_digest`` is the same of every batch as it was sent, which is as the destination holds it: its brokers keep the
    checksum. It covers [copy_digest_from, sequence_to), so that the destination can be checked without the source; -1: no
    record. ``copy_digest_from`` is ``sequence_from`` unless an acknowledgement was lost or another process wrote.
    """

    topic: str
    partition: int
    destination: str
    source_id: str = ""
    destination_id: str = ""
    source_from: int
    source_to: int
    destination_from: int
    destination_to: int
    sequence_from: int
    sequence_to: int
    records: int
    batches: int
    bytes: int
    digest: int
    copy_digest: int = -1
    copy_digest_from: int = -1
    state: str
    reason: str


class LedgerPart(Record):
    """Rows of one slot for the ledger. A partition has no row if nothing was copied in the interval and its state is
    unchanged."""

    v: Literal[1] = 1
    link: str
    group: str
    slot: int
    application: str
    started_at_ms: int = Field(description="When the interval began.")
    ended_at_ms: int
    entries: tuple[LedgerEntry, ...]


class LedgerMark(Record):
    """A mark that the ledger's files have all parts of this application before offset ``below`` of the ledger topic."""

    v: Literal[1] = 1
    link: str
    group: str
    application: str
    below: Offset
    at_ms: int
