"""How the memory of a pool's task is divided between its slots. Pure."""

from collections.abc import Sequence

FLOOR_BYTES = 1 << 20
"""Reserved for each slot, so that new records of a link always find room beside another link's backlog."""


def divided(total_bytes: int, short: Sequence[bool]) -> list[int]:
    """Return the bytes of each slot: a small part for everyone, and equal parts of the rest for those that are short
    of memory; for everyone if none is.

    Args:
        short: for each slot, whether more memory would help it now.
    """
    if not short:
        return []
    floor = min(FLOOR_BYTES, total_bytes // (2 * len(short)))
    takers = short if any(short) else [True] * len(short)
    part = (total_bytes - floor * len(short)) // sum(takers)
    return [floor + (part if takes else 0) for takes in takers]
