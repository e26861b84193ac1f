"""The one recovery path's decision: where a partition goes on, from what its destination says. Pure.

The destination is the truth. Its leader knows our producer id's last sequence; where it has forgotten (after
``producer.id.expiration.ms`` without a write) or cannot be asked, the last batch of ours in the log's tail says the same;
an emptied log says it by its end offset; and a log that ends at the map's newest checkpoint holds nothing newer.
"""

from typing import NamedTuple

from strait.offset_map import SEQUENCE_MODULUS, destination_offset, full_sequence, sequence_at_destination
from strait.reasons import Reason
from strait.state.schema import Run


class Found(NamedTuple):
    """Record number ``sequence`` is the next to write."""

    sequence: int


class Scan(NamedTuple):
    """Look for the last batch of ours in [``down_to``, the log's end)."""

    down_to: int


class Refused(NamedTuple):
    """Going on would copy wrongly."""

    reason: Reason
    detail: str


def from_leader(run: Run, end: int, last_wire_sequence: int | None) -> Found | Scan | Refused:
    """Decide from the leader's own knowledge.

    Args:
        run: the partition's newest run, with its checkpoint.
        end: the destination's end offset, read *before* the producer's state: all of ours before it is in that state.
        last_wire_sequence: our producer id's last sequence there; None where the leader does not know the id.
    """
    if last_wire_sequence is not None:
        return _after_last(run, end, last_wire_sequence)
    checkpoint_offset = destination_offset(run, run.sequence_end)
    if end == checkpoint_offset:
        return Found(run.sequence_end)
    return Scan(max(run.destination_base, min(checkpoint_offset, end)))


def from_tail(run: Run, end: int, log_start: int, last_wire_sequence: int | None) -> Found | Refused:
    """Decide from a look at the log's tail, where the leader knows nothing.

    ``last_wire_sequence``: that of the last record of ours found there; None if there is none.
    """
    if last_wire_sequence is not None:
        return _after_last(run, end, last_wire_sequence)
    checkpoint_offset = destination_offset(run, run.sequence_end)
    if end < checkpoint_offset:
        return Refused(
            Reason.DESTINATION_TRUNCATED,
            f"its log ends at {end}, though all up to {checkpoint_offset} had been acknowledged",
        )
    if log_start == end:
        return Found(sequence_at_destination(run, end))
    return Refused(
        Reason.FOREIGN_WRITER, f"offsets {max(log_start, checkpoint_offset)} to {end - 1} are not of this link"
    )


def _after_last(run: Run, end: int, last_wire_sequence: int) -> Found | Refused:
    sequence = full_sequence((last_wire_sequence + 1) % SEQUENCE_MODULUS, near=run.sequence_end)
    if sequence < run.sequence_base:
        return Refused(
            Reason.MAP_RUN_MISSING,
            f"its last record is number {sequence - 1}, before the map's run at {run.sequence_base}",
        )
    expected = destination_offset(run, sequence)
    if end > expected:
        return Refused(
            Reason.FOREIGN_WRITER, f"its log ends at {end}, where this link's records would make it {expected}"
        )
    return Found(sequence)
