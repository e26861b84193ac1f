"""A row of the ledger: what one slot copied of one partition in one epoch."""

from typing import NamedTuple


class LedgerRow(NamedTuple):
    """Ranges are half-open: [source_from, source_to) was copied to [destination_from, destination_to).

    ``digest`` is the CRC-32 of the CRC-32C of every copied batch as the source holds it, in order: equal ranges of
    equal batches give equal digests. An empty range (from == to) says that the slot looked after the partition and
    nothing came.
    """

    link: str
    group: str
    epoch: int
    slot: int
    application: str
    topic: str
    partition: int
    destination: str
    source_from: int
    source_to: int
    destination_from: int
    destination_to: int
    records: int
    batches: int
    bytes: int
    digest: int
    state: str
    reason: str
    started_at_ms: int
    ended_at_ms: int
