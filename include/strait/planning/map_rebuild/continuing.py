"""Start offset of a link whose map is lost, if a compacted source no longer holds its last replicated record. Pure.

The entries end at the newest record that is exact on both sides, like a checkpoint from before a crash. From there on the
link's own recovery replicates again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from strait.planning.map_rebuild.entries import entries, first_entry
from strait.planning.map_rebuild.matching import Item, Stretch, Unknown
from strait.state.schema import OffsetMapping


class Continuation(NamedTuple):
    """``position``: the next source offset. ``again``: destination offsets [from, to) of records that are replicated
    again, as far as the source still has them. ``left_out``: known records that the entries omit."""

    position: int
    entries: Sequence[OffsetMapping]
    again: tuple[int, int]
    left_out: Sequence[Unknown] = ()


def from_newest_exact(
    like: OffsetMapping,
    exact: Sequence[Stretch],
    copy: Sequence[Item],
    source_start: int,
    *,
    whole: bool,
    confirmed: int,
) -> Continuation | str:
    """Return the continuation, or why there is none.

    Args:
        like: as `entries` takes it.
        exact: the exact stretches, in order; may be empty.
        copy: the link's batches on the destination, in order; at least one.
        source_start: the first offset that the source holds.
        whole: whether the link replicates the topic from its first record on.
        confirmed: number of records that the map still confirms.
    """
    last = copy[-1]
    if confirmed > (exact[-1].number + exact[-1].records if exact else 0):
        return "the map confirms more records than both logs have in common; without `--all` the link continues by it"
    if exact:
        newest = exact[-1]
        # Without an epoch: a later leader would count as a truncation of the source.
        written, left_out = entries(like, exact, source_epoch=-1)
        after = newest.source + newest.records
        return Continuation(after, written, (newest.copy + newest.records, last.end), left_out)
    if not whole:
        return "the source no longer holds any of its records, and the start offset is unknown"
    shift = last.end - last.number - last.records
    return Continuation(source_start, [first_entry(like, source_start, shift)], (copy[0].first, last.end))
