"""What `strait.wire.rebatch` makes of batches, and the rules that it makes it by."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from strait.reasons import Reason
from strait.wire.batch import Batch
from strait.wire.records import Record


class Stretch(NamedTuple):
    """``records`` records in a row at the source offsets from ``source`` on, none missing between them."""

    source: int
    records: int


class Built(StrEnum):
    """Why a batch that is sent is not one of the source's, but built of their records."""

    MERGED = "merged"  # of batches with few records each
    OLD_FORMAT = "old_format"  # of messages in format 0 or 1
    INCOMPLETE = "incomplete"  # compaction has taken records out of it, or copying begins in its middle
    APPEND_TIME = "append_time"  # its timestamps are the source's broker's
    TOO_LARGE = "too_large"  # for the destination topic
    SINGLED_OUT = (
        "singled_out"  # one of its records is quarantined, or is looked for because the destination refuses it
    )


class Rules(NamedTuple):
    """How a partition's batches are shaped.

    Attributes:
        max_batch_bytes: largest batch that is sent, if it has more than one record.
        max_record_bytes: largest batch that the destination topic takes, and so the largest record.
        codec: of rebuilt batches; None keeps the source's.
        apart: source offsets [from, to) whose records go one by one, to find out which one the destination refuses.
        quarantined: source offset -> why that record is quarantined instead of copied.
        checked_to: before this source offset the checksum of every batch is checked here: the destination found one
            wrong.
        left_out: producer id -> whether its batches are left out, because they are copies; those that are not in it are
            not judged yet. None: all are copied.
    """

    max_batch_bytes: int
    max_record_bytes: int
    codec: int | None = None
    apart: tuple[int, int] = (0, 0)
    quarantined: Mapping[int, tuple[Reason, str]] = {}
    checked_to: int = 0
    left_out: Mapping[int, bool] | None = None

    @property
    def picky(self) -> bool:
        """Some records are treated one by one."""
        return self.apart[1] > 0 or bool(self.quarantined)


class Piece(NamedTuple):
    """One batch to send. ``memory``: its bytes, where it was rebuilt; None where they are in the fetched frame, which
    must then be held until it is sent. ``position``: where the source is read on behind it. ``crcs``: of the source
    batches that end in this piece, four bytes each. ``epoch``: the source's leader epoch of its last record.
    ``built``: why it was rebuilt."""

    batch: Batch
    memory: bytearray | None
    stretches: Sequence[Stretch]
    position: int
    crcs: bytes
    epoch: int
    built: Built | None = None


class Quarantined(NamedTuple):
    """A record that goes to the quarantine topic; copying goes on behind it."""

    record: Record
    reason: Reason
    detail: str


class Skipped(NamedTuple):
    """The end of what came: up to ``position`` there is nothing more to copy, only markers, aborted records, batches
    that compaction emptied, and ``left_out`` records that are copies. ``epoch``: the source's leader epoch of the last
    batch."""

    position: int
    epoch: int
    left_out: int = 0


class Unjudged(NamedTuple):
    """What follows holds batches of these producers, of which nobody knows yet whether they write copies."""

    producer_ids: frozenset[int]


class Paused(NamedTuple):
    """More is to come of a batch that is taken apart, when the partition has its next turn."""


class Stop(NamedTuple):
    """The record at source offset ``offset`` cannot be copied under the rules, and nothing behind it is."""

    offset: int
    reason: Reason
    detail: str


Shape = Piece | Quarantined | Skipped | Unjudged | Paused | Stop
