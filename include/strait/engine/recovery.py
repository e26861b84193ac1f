"""The one recovery path's decision: where a partition goes on, from what its destination says. Pure.

The destination is the truth. Its leader knows our producer id's last sequence; where it has forgotten (after
``producer.id.expiration.ms`` without a write) or cannot be asked, the last batch of ours in the log's tail says the same;
an emptied log says it by its end offset; and a log that ends at the map's newest checkpoint holds nothing newer.
"""

from collections.abc import Sequence
from typing import NamedTuple

from strait.offset_map import (
    SEQUENCE_MODULUS,
    covering,
    destination_offset,
    full_sequence,
    sequence_at_destination,
)
from strait.reasons import Reason
from strait.state.schema import Run


class Found(NamedTuple):
    """Record number ``sequence`` is the next to write. ``lost``: destination offsets [from, to) that were acknowledged
    once and are no more; they will be written again. ``strangers``: records of others before the log's end."""

    sequence: int
    lost: tuple[int, int] | None = None
    strangers: int = 0


class Scan(NamedTuple):
    """Look for the last batch of ours in [``down_to``, the log's end)."""

    down_to: int


class Refused(NamedTuple):
    """Going on would copy wrongly."""

    reason: Reason
    detail: str


def checkpoint_of(runs: Sequence[Run]) -> int:
    """Number of records known to be written, by the newest checkpoint."""
    return max(run.sequence_end for run in runs)


def from_leader(
    runs: Sequence[Run], end: int, last_wire_sequence: int | None, *, strangers_allowed: bool = False
) -> Found | Scan | Refused:
    """Decide from the leader's own knowledge.

    Args:
        runs: the partition's runs for these topic ids, by sequence_base; at least one.
        end: the destination's end offset, read *before* the producer's state: all of ours before it is in that state.
        last_wire_sequence: our producer id's last sequence there; None where the leader does not know the id.
        strangers_allowed: others may write there too (``on_foreign`` is not ``halt``).
    """
    if last_wire_sequence is not None:
        return _after_last(runs, end, last_wire_sequence, strangers_allowed)
    checkpoint = checkpoint_of(runs)
    offset = destination_offset(covering(runs, checkpoint), checkpoint)
    if end == offset:
        return Found(checkpoint)
    return Scan(max(runs[0].destination_base, min(offset, end)))


def from_tail(
    runs: Sequence[Run], end: int, log_start: int, last_wire_sequence: int | None, *, strangers_allowed: bool = False
) -> Found | Refused:
    """Decide from a look at the log's tail, where the leader knows nothing.

    ``last_wire_sequence``: that of the last record of ours found there; None if there is none.
    """
    if last_wire_sequence is not None:
        return _after_last(runs, end, last_wire_sequence, strangers_allowed)
    checkpoint = checkpoint_of(runs)
    run = covering(runs, checkpoint)
    offset = destination_offset(run, checkpoint)
    if end < offset:
        return Refused(
            Reason.DESTINATION_TRUNCATED,
            f"its log ends at {end}, though all up to {offset} had been acknowledged",
        )
    if log_start == end:
        return Found(sequence_at_destination(run, end))
    if strangers_allowed:
        return Found(checkpoint, strangers=end - offset)
    return Refused(Reason.FOREIGN_WRITER, f"offsets {max(log_start, offset)} to {end - 1} are not of this link")


def _after_last(runs: Sequence[Run], end: int, last_wire_sequence: int, strangers_allowed: bool) -> Found | Refused:
    checkpoint = checkpoint_of(runs)
    sequence = full_sequence((last_wire_sequence + 1) % SEQUENCE_MODULUS, near=checkpoint)
    if sequence < runs[0].sequence_base:
        return Refused(
            Reason.MAP_RUN_MISSING,
            f"its last record is number {sequence - 1}, before the map's first run at {runs[0].sequence_base}",
        )
    expected = destination_offset(covering(runs, sequence), sequence)
    if end > expected and not strangers_allowed:
        return Refused(
            Reason.FOREIGN_WRITER, f"its log ends at {end}, where this link's records would make it {expected}"
        )
    lost = None
    if sequence < checkpoint:
        lost = expected, destination_offset(covering(runs, checkpoint), checkpoint)
    return Found(sequence, lost, max(0, end - expected))
