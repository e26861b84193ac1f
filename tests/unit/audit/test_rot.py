"""Bits of a batch's header change on a disk: the batch is named, and no other."""

import random
from itertools import pairwise

import pytest

from strait.audit.comparing import Bounds, Sides, compare
from strait.audit.feed import Options
from strait.audit.numbering import MappedSource, Piece, Pieces, StampedCopy
from strait.audit.reading import LogSide, Pace
from strait.model import TopicPartition
from support.audited import PRODUCER, log_of, passed, record
from support.kafka.rot import UNCHECKED
from support.segment_file import SegmentFile

PLACE = TopicPartition("t", 0)
COUNT = 600


def audited(source, copy, first=0, end=COUNT):
    """As a task of an audit compares a link's chunk."""
    pace = Pace(0, sleep=lambda _: None)
    read, copied = (LogSide(one, pace).items(PLACE, first, end) for one in (source, copy))
    sides = Sides(read, copied, MappedSource(Pieces([Piece(0, 0, COUNT)])), StampedCopy(PRODUCER, first, 0))
    return compare(sides, Bounds(first, end, first, end), Options(), lambda *_: "").tally


def problems(differences, batch, *, named):
    """What an audit tells besides this damaged batch, or that it does not name it."""
    first, end = batch.base_offset, batch.next_offset
    if named and not any(one.kind == "damaged" for one in differences):
        yield "not named", differences
    for one in differences:
        offset = max(one.source, one.copy) if min(one.source, one.copy) < 0 else one.source
        if not first <= offset <= offset + one.records <= end:
            yield "sound", one


@pytest.mark.parametrize("side", ["source", "copy"])
@pytest.mark.parametrize("place", [*UNCHECKED, 17, 22, *range(23, 27), 35, 50, *range(57, 61)])
def test_each_bit_is_named_with_its_batch_wherever_chunks_are_cut(side, place):
    chance = random.Random(place)
    batches = log_of([record(n, chance) for n in range(COUNT)], chance)
    copies = passed(batches)
    wrong = []
    for bit in range(8):
        files = {"source": SegmentFile(batches, index_every=700), "copy": SegmentFile(copies, index_every=700)}
        number = chance.randrange(1, len(batches) - 1)
        damaged = batches[number]
        at = sum(len(one.view) for one in (batches if side == "source" else copies)[:number])
        files[side].data[at + place] ^= 1 << bit
        found = audited(files["source"], files["copy"]).differences
        wrong += [(bit, number, damaged.base_offset, it) for it in problems(found, damaged, named=True)]
        limits = [0, *sorted(chance.sample(range(1, COUNT), 6)), COUNT]
        for first, end in pairwise(limits):
            named = first < damaged.next_offset and damaged.base_offset < end
            found = audited(files["source"], files["copy"], first, end).differences
            wrong += [(bit, number, first, end, it) for it in problems(found, damaged, named=named)]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("bit", range(6))
def test_a_base_offset_that_moves_into_the_batch_misleads_no_chunk_that_starts_there(bit):
    chance = random.Random(bit)
    batches = log_of([record(n, chance) for n in range(COUNT)], chance)
    copies, wrong = passed(batches), []
    for number, damaged in list(enumerate(batches))[1:-1]:
        file = SegmentFile(copies, index_every=700)
        file.data[sum(len(one.view) for one in copies[:number]) + 7] ^= 1 << bit
        for first in range(damaged.base_offset, damaged.next_offset):
            found = audited(SegmentFile(batches), file, first, COUNT).differences
            wrong += [(number, damaged.base_offset, first, it) for it in problems(found, damaged, named=False)]
    assert not wrong, "\n".join(map(str, wrong))
