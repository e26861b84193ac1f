"""Batch headers of a partition as they are in the brokers' files: what no consumer shows."""

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

_HEADER_BYTES = 61


class BatchHeader(NamedTuple):
    """One batch of message format 2."""

    base_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int
    at: int
    """Its position in the file, in bytes."""
    size: int


def segments(folder: Path, topic: str, partition: int) -> list[Path]:
    """The files of each copy of the partition below a folder of brokers."""
    return sorted(folder.glob(f"**/{topic}-{partition}/*.log"))


def batch_headers(segment: Path) -> Iterator[BatchHeader]:
    """In the order of the file; a torn end is left out."""
    data, at = segment.read_bytes(), 0
    while at + _HEADER_BYTES <= len(data):
        base, length, epoch = struct.unpack_from(">qii", data, at)
        if length <= 0:
            return
        producer_id, producer_epoch, sequence, records = struct.unpack_from(">qhii", data, at + 43)
        yield BatchHeader(base, epoch, producer_id, producer_epoch, sequence, records, at, 12 + length)
        at += 12 + length


def out_of_order(folder: Path, topic: str, partition: int) -> list[str]:
    """Where sequences do not follow each other, in each copy of the partition below a folder of brokers: a line each."""
    found = []
    for segment in segments(folder, topic, partition):
        for before, after in pairwise(batch_headers(segment)):
            if after.base_sequence != before.base_sequence + before.records:
                found.append(f"{segment.parent.parent.parent.name}: {before} then {after}")
    return found
