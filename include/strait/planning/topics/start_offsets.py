"""Start offset of a partition that has no offset segment yet: the offsets to query, and their meaning. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from strait.config.start_offset import Start
from strait.model import TopicPartition


class AtTime(NamedTuple):
    """Start at the first record with this timestamp or a later one; if there is none, at the next record to be
    written."""

    timestamp_ms: int


class AtOffset(NamedTuple):
    """Start at exactly this offset, which must exist."""

    offset: int


class Resume(NamedTuple):
    """Start at the end of an earlier replication. If the source has lost that offset since, the slot detects and
    handles it."""

    offset: int


class AfterCopies(NamedTuple):
    """Start as ``begin`` does, but not before ``offset``: the records before it are another tool's copies."""

    offset: int
    begin: Literal["earliest", "latest"] | AtTime


StartAt = Literal["earliest", "latest"] | AtTime | AtOffset | Resume | AfterCopies


class Range(NamedTuple):
    """The offsets of a source partition. ``first_since``: the offset found by timestamp; -1: no record is that
    recent."""

    first: int = -1
    end: int = -1
    first_since: int = -1


class OutOfRange(NamedTuple):
    """The requested offset does not exist."""

    detail: str


@dataclass(frozen=True, slots=True)
class StartOffsets:
    """Start offsets of new partitions, as looked up.

    Attributes:
        source: source partition -> the first source offset to replicate.
        destination: destination partition -> the offset that the next record there gets.
        histories: source partition -> number of offsets that the source holds from there on, if requested.
        source_failures, destination_failures: partition -> why its offset could not be looked up.
        out_of_range: source partition -> the configured offset, and the offsets that exist.
    """

    source: Mapping[TopicPartition, int] = field(default_factory=dict)
    destination: Mapping[TopicPartition, int] = field(default_factory=dict)
    histories: Mapping[TopicPartition, int] = field(default_factory=dict)
    source_failures: Mapping[TopicPartition, str] = field(default_factory=dict)
    destination_failures: Mapping[TopicPartition, str] = field(default_factory=dict)
    out_of_range: Mapping[TopicPartition, str] = field(default_factory=dict)


def start_at(start: Start, partition: int, *, joins: bool = False) -> StartAt:
    """Return the start of one partition. A partition that is not among the configured offsets starts at its first
    record.

    Args:
        joins: whether it was added to a topic that was replicated already. Then the records written to it before it was
            detected are replicated, too.
    """
    if start == "latest" and joins:
        return "earliest"
    if start == "earliest" or start == "latest":
        return start
    if isinstance(start, int):
        return AtTime(start)
    return AtOffset(start[partition]) if partition in start else "earliest"


def after_copies(begin: StartAt, end: int) -> StartAt:
    """Return the start without a partition's moved-in copies, which end at ``end``. Explicit offsets stay, and so does
    the end of an earlier replication."""
    if not end or isinstance(begin, AtOffset | Resume | AfterCopies):
        return begin
    return AfterCopies(end, begin)


def first_offset(begin: StartAt, found: Range) -> int | OutOfRange:
    """Return the first offset to replicate. ``found`` holds the offsets that `needs_first` and `needs_end` request for
    ``begin``."""
    match begin:
        case "earliest":
            return found.first
        case "latest":
            return found.end
        case AtTime():
            return found.end if found.first_since < 0 else found.first_since
        case Resume(offset):
            return offset
        case AfterCopies(offset, wanted):
            first = first_offset(wanted, found)
            return max(offset, first) if isinstance(first, int) else first
        case AtOffset(offset):
            if found.first <= offset <= found.end:
                return offset
            return OutOfRange(f"`start` names offset {offset}, and the source holds {found.first} to {found.end - 1}")


def needs_first(begin: StartAt) -> bool:
    """Return whether the partition's first offset has to be looked up."""
    return _plain(begin) == "earliest" or isinstance(begin, AtOffset)


def needs_end(begin: StartAt) -> bool:
    """Return whether the partition's end has to be looked up."""
    return _plain(begin) == "latest" or isinstance(_plain(begin), AtOffset | AtTime)


def asked_time(begin: StartAt) -> int | None:
    """Return the timestamp to query the partition's offset for; None if the start is not a time."""
    plain = _plain(begin)
    return plain.timestamp_ms if isinstance(plain, AtTime) else None


def _plain(begin: StartAt) -> StartAt:
    return begin.begin if isinstance(begin, AfterCopies) else begin
