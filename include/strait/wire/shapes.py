"""The results of `strait.wire.rebatch`, and the rules that it follows."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from strait.reasons import Reason
from strait.wire.batch import Batch
from strait.wire.records import Record


class Stretch(NamedTuple):
    """``records`` consecutive records at the source offsets from ``source`` on, none missing between them."""

    source: int
    records: int


class Built(StrEnum):
    """Why a batch that is sent is not one of the source's, but built from their records."""

    MERGED = "merged"  # of batches with few records each
    OLD_FORMAT = "old_format"  # of messages in format 0 or 1
    INCOMPLETE = "incomplete"  # compaction has removed records from it, or copying starts in its middle
    APPEND_TIME = "append_time"  # its timestamps are the source's broker's
    TOO_LARGE = "too_large"  # for the destination topic
    TRANSFORMED = "transformed"  # by the topic's rule
    SINGLED_OUT = (
        "singled_out"  # one of its records is quarantined, or is searched for because the destination rejects it
    )


class Rules(NamedTuple):
    """How a partition's batches are shaped.

    Attributes:
        max_batch_bytes: largest batch that is sent, if it has more than one record.
        max_record_bytes: largest batch that the destination topic accepts, and so the largest record.
        codec: of rebuilt batches; None keeps the source's.
        apart: source offsets [from, to) whose records are sent one by one, to determine which one the destination
            rejects.
        quarantined: source offset -> why that record is quarantined instead of copied.
        checked_to: before this source offset the checksum of every batch is verified here: the destination found an
            invalid one.
        left_out: producer ID -> whether its batches are skipped, because they hold replicated records; IDs that are not
            in it are not judged yet. None: all are copied.
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
        """Whether some records are treated individually."""
        return self.apart[1] > 0 or bool(self.quarantined)


class Piece(NamedTuple):
    """One batch to send. ``memory``: its bytes, if it was rebuilt; None if they are in the fetched frame, which must
    then be held until it is sent. ``position``: the source offset to continue at after it. ``crcs``: checksums of the
    source batches that end in this piece, four bytes each. ``epoch``: the source's leader epoch of its last record.
    ``built``: why it was rebuilt."""

    batch: Batch
    memory: bytearray | None
    stretches: Sequence[Stretch]
    position: int
    crcs: bytes
    epoch: int
    built: Built | None = None


class Quarantined(NamedTuple):
    """A record that goes to the quarantine topic; copying continues after it."""

    record: Record
    reason: Reason
    detail: str


class Skipped(NamedTuple):
    """The end of the fetched data: up to ``position`` there is nothing more to copy, only markers, aborted records,
    batches that compaction emptied, and ``left_out`` replicated records that are skipped. ``epoch``: the source's
    leader epoch of the last batch."""

    position: int
    epoch: int
    left_out: int = 0


class Unjudged(NamedTuple):
    """The following data holds batches of these producers; whether they write replicated records is not known yet."""

    producer_ids: frozenset[int]


class Paused(NamedTuple):
    """More of a batch that is taken apart follows when the partition has its next turn."""


class Stop(NamedTuple):
    """The record at source offset ``offset`` cannot be copied under the rules, and no record after it is."""

    offset: int
    reason: Reason
    detail: str


Shape = Piece | Quarantined | Skipped | Unjudged | Paused | Stop
