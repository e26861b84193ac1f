"""Runs of constant difference: source position <-> sequence <-> destination offset, exact and pure.

A normal partition has one run for its whole life. Sequences are 31 bits on the wire and unbounded here; the two meet
only in ``full_sequence``.
"""

from strait.state.schema import Run

SEQUENCE_MODULUS = 1 << 31


def wire_sequence(sequence: int) -> int:
    """The sequence as a batch header carries it."""
    return sequence % SEQUENCE_MODULUS


def full_sequence(wire: int, *, near: int) -> int:
    """The sequence nearest to ``near`` whose wire form is ``wire``.

    ``near`` is a checkpoint: a number of records known to be written. The truth may lie behind it, where the destination
    lost records. Exact as long as it is within 2^30 records of the checkpoint, which is refreshed every minute. May be
    negative, which no link ever wrote: then the wire form is not of this link's making.
    """
    ahead = (wire - near) % SEQUENCE_MODULUS
    return near + ahead if ahead < SEQUENCE_MODULUS // 2 else near + ahead - SEQUENCE_MODULUS


def source_offset(run: Run, sequence: int) -> int:
    """Source offset of record number ``sequence``."""
    return run.source_base + sequence - run.sequence_base


def destination_offset(run: Run, sequence: int) -> int:
    """Destination offset of record number ``sequence``."""
    return run.destination_base + sequence - run.sequence_base


def sequence_at_destination(run: Run, offset: int) -> int:
    """Number of the record at destination offset ``offset``, by this run."""
    return run.sequence_base + offset - run.destination_base
