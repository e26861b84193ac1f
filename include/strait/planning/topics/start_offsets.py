"""Where a partition begins that has no run yet: what has to be looked up for it, and what the answers mean. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from strait.config.start_offset import Start
from strait.model import TopicPartition


class AtTime(NamedTuple):
    """With the first record whose timestamp is this or later; with the next one to come where none is."""

    timestamp_ms: int


class AtOffset(NamedTuple):
    """With this very offset, which must be there."""

    offset: int


class Resume(NamedTuple):
    """Where an earlier copy ended. Where the source has lost it since, the slot finds that out and acts on it."""

    offset: int


StartAt = Literal["earliest", "latest"] | AtTime | AtOffset | Resume


class Range(NamedTuple):
    """What a source partition holds. ``first_since``: the offset asked for by time; -1: no record is that young."""

    first: int = -1
    end: int = -1
    first_since: int = -1


class OutOfRange(NamedTuple):
    """The offset that was asked for is not there."""

    detail: str


@dataclass(frozen=True, slots=True)
class StartOffsets:
    """Where new partitions begin, as looked up.

    Attributes:
        source: source partition -> the first source offset to copy.
        destination: destination partition -> the offset that the next record there gets.
        histories: source partition -> how many offsets the source holds from there on, where that was asked for.
        source_failures, destination_failures: partition -> why its offset could not be looked up.
        out_of_range: source partition -> what it was to begin with, and what there is.
    """

    source: Mapping[TopicPartition, int] = field(default_factory=dict)
    destination: Mapping[TopicPartition, int] = field(default_factory=dict)
    histories: Mapping[TopicPartition, int] = field(default_factory=dict)
    source_failures: Mapping[TopicPartition, str] = field(default_factory=dict)
    destination_failures: Mapping[TopicPartition, str] = field(default_factory=dict)
    out_of_range: Mapping[TopicPartition, str] = field(default_factory=dict)


def start_at(start: Start, partition: int, *, joins: bool = False) -> StartAt:
    """What a start means for one partition. One that is not named among offsets begins with its first record.

    Args:
        joins: others of its topic are copied already. It was added to the topic, and what it got before it was seen
            belongs to the copy.
    """
    if start == "latest" and joins:
        return "earliest"
    if start == "earliest" or start == "latest":
        return start
    if isinstance(start, int):
        return AtTime(start)
    return AtOffset(start[partition]) if partition in start else "earliest"


def first_offset(begin: StartAt, found: Range) -> int | OutOfRange:
    """The first offset to copy. ``found`` holds what `begin` needs: see `needs_first` and `needs_end`."""
    match begin:
        case "earliest":
            return found.first
        case "latest":
            return found.end
        case AtTime():
            return found.end if found.first_since < 0 else found.first_since
        case Resume(offset):
            return offset
        case AtOffset(offset):
            if found.first <= offset <= found.end:
                return offset
            return OutOfRange(f"`start` names offset {offset}, and the source holds {found.first} to {found.end - 1}")


def needs_first(begin: StartAt) -> bool:
    """Whether the partition's first offset has to be looked up."""
    return begin == "earliest" or isinstance(begin, AtOffset)


def needs_end(begin: StartAt) -> bool:
    """Whether the partition's end has to be looked up."""
    return begin == "latest" or isinstance(begin, AtOffset | AtTime)
