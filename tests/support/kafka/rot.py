"""Bits that change on the disks of brokers, and whether an audit names them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Self

from support.kafka.segments import BatchHeader, batch_headers, segments

CHECKSUMMED = range(17, 61)
"""The checksum in a batch's header, and what it covers there."""
UNCHECKED = (*range(12), 16)
"""Base offset, length and format. The leader's epoch is left out: no consumer reads it."""


class Rot(NamedTuple):
    """A bit of one batch in all copies of a partition. As a context, it is changed meanwhile."""

    files: Sequence[Path]
    batch: BatchHeader
    place: int
    bit: int

    def flip(self) -> None:
        for path in self.files:
            with path.open("r+b") as file:
                file.seek(self.batch.at + self.place)
                (byte,) = file.read(1)
                file.seek(self.batch.at + self.place)
                file.write(bytes([byte ^ 1 << self.bit]))

    def __enter__(self) -> Self:
        self.flip()
        return self

    def __exit__(self, *_: object) -> None:
        self.flip()

    def problem(self, differences: Sequence[Mapping[str, Any]]) -> str:
        """Why these do not name exactly this batch; "" if they do."""
        first, end = self.batch.base_offset, self.batch.base_offset + self.batch.records
        if not any(one["kind"] == "damaged" for one in differences):
            return f"not named: {self}"
        for one in differences:
            offset = one["source"] if one["source"] >= 0 else one["copy"]
            if not first <= offset <= offset + one["records"] <= end:
                return f"named, but sound: {one}, beside {self}"
        return ""


def rot_in(
    folder: Path, topic: str, partition: int, chance: Random, place: Callable[[BatchHeader], int] | None = None
) -> Rot:
    """One of these that is not in the first or last batch, by default anywhere in it."""
    files = segments(folder, topic, partition)
    batch = chance.choice(list(batch_headers(files[0]))[1:-1])
    places = [*UNCHECKED, *range(CHECKSUMMED.start, batch.size)]
    return Rot(files, batch, place(batch) if place else chance.choice(places), chance.randrange(8))
