"""The link's records found by reading a part of a destination log. Pure."""

from typing import NamedTuple

from strait.state.offset_map import SEQUENCE_MODULUS


class Tail(NamedTuple):
    """Result of reading the log from ``start`` to its end.

    Attributes:
        start: first offset that was read; nothing below it was read.
        last_sequence: wire sequence of the link's last record there; None if there is none.
        last_offset: destination offset of that record; -1 if there is none.
        foreign: base offset of the last batch of another producer there; -1 if there is none.
        first_sequence: wire sequence of the link's first record there; None if there is none.
        hole: destination offset of a record of the link before which records of the link are missing, by the newest
            such gap; -1 if there is none after the newest intact place.
        intact: it holds a record at the destination offset that the map confirms, so nothing before that record was
            ever lost.
    """

    start: int
    last_sequence: int | None = None
    last_offset: int = -1
    foreign: int = -1
    first_sequence: int | None = None
    hole: int = -1
    intact: bool = False

    def joined(self, following: "Tail") -> "Tail":
        """Return this part of the log joined with the part that follows it. The two may overlap by one batch."""
        hole = following.hole
        if not following.intact and hole < 0:
            hole = following.last_offset if skips(self.last_sequence, following.first_sequence) else self.hole
        newer = self if following.last_sequence is None else following
        return Tail(
            self.start,
            newer.last_sequence,
            newer.last_offset,
            max(self.foreign, following.foreign),
            following.first_sequence if self.first_sequence is None else self.first_sequence,
            hole,
            self.intact or following.intact,
        )


def skips(last: int | None, first: int | None) -> bool:
    """Return whether records are missing between those with wire sequences ``last`` and ``first``."""
    if last is None or first is None:
        return False
    return 0 < (first - last - 1) % SEQUENCE_MODULUS < SEQUENCE_MODULUS // 2
