"""What the records of the ledger topic look like; see `strait.state.schema`."""

from typing import Literal

from pydantic import Field

from strait.state.schema import Offset, Record


class LedgerEntry(Record):
    """What a slot copied of one partition in one interval; ranges are half-open.

    [source_from, source_to) was copied to [destination_from, destination_to), which are the link's records
    [sequence_from, sequence_to) of that partition; -1: not known yet. ``records``, ``batches``, ``bytes`` and ``digest``
    are what this process saw acknowledged: fewer than the range where an acknowledgement was lost or another process
    wrote a part of it, and -1 where nobody is left to say. ``digest`` is the CRC-32 of the CRC-32C of every copied
    batch as the source holds it, in order: equal ranges of equal batches give equal digests.
    """

    topic: str
    partition: int
    destination: str
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
    state: str
    reason: str


class LedgerPart(Record):
    """Rows of one slot for the ledger. A partition of which nothing was copied in the interval, and whose state is the same
    as before, has no row."""

    v: Literal[1] = 1
    link: str
    group: str
    slot: int
    application: str
    started_at_ms: int = Field(description="When the interval began.")
    ended_at_ms: int
    entries: tuple[LedgerEntry, ...]


class LedgerMark(Record):
    """All parts of this application that lie before an offset of the ledger topic are in the ledger's files."""

    v: Literal[1] = 1
    link: str
    group: str
    application: str
    below: Offset
    at_ms: int
