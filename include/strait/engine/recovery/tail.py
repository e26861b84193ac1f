"""What reading a part of a destination log shows of the link's records. Pure."""

from typing import NamedTuple

from strait.state.offset_map import SEQUENCE_MODULUS


class Tail(NamedTuple):
    """What reading the log from ``start`` to its end has shown.

    Attributes:
        start: first offset that was read; what lies below it was not looked at.
        last_sequence: of the link's last record there, as on the wire; None if there is none.
        last_offset: destination offset of that record; -1 if there is none.
        foreign: offset of the last batch of another producer there; -1 if there is none.
        first_sequence: of the link's first record there, as on the wire; None if there is none.
        hole: offset of the link's newest batch there that does not follow the link's batch before it; -1 if there is
            none after the newest intact place.
        intact: it holds a record that the map confirms where the map has it, so nothing before that was ever lost.
    """

    start: int
    last_sequence: int | None = None
    last_offset: int = -1
    foreign: int = -1
    first_sequence: int | None = None
    hole: int = -1
    intact: bool = False

    def joined(self, following: "Tail") -> "Tail":
        """This part of the log and the one after it. The two may overlap by a batch."""
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
    """Whether records between the one with sequence ``last`` and the one with ``first`` are missing."""
    if last is None or first is None:
        return False
    return 0 < (first - last - 1) % SEQUENCE_MODULUS < SEQUENCE_MODULUS // 2
