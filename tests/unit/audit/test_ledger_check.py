"""The destination is checked by the digests that were written when its batches were sent."""

import random
import zlib

import pytest

from strait.audit.chunks import Mark
from strait.audit.feed import Hole
from strait.audit.ledger_check import check
from support.audited import PRODUCER, batch_at, flipped, log_of, passed, record

COUNT = 400


def sent(seed=1, *, first=0, each=3):
    """Batches as a link sends them, and marks after every few of them."""
    chance = random.Random(seed)
    copies = passed(log_of([record(n, chance) for n in range(COUNT)], chance), first_sequence=first)
    marks = []
    for at in range(0, len(copies), each):
        some = copies[at : at + each]
        digest = 0
        for batch in some:
            digest = zlib.crc32(batch.crc_bytes, digest)
        marks.append(Mark(first + some[0].base_offset, first + some[-1].next_offset, some[0].base_offset, digest))
    return copies, marks, chance


def checked(items, marks):
    return check(iter(items), marks, PRODUCER)


def kinds(found):
    return {kind: count for (kind, _), count in found.tally.counts.items()}


@pytest.mark.parametrize("first", [0, 7, (1 << 31) - 100])
def test_batches_as_they_were_sent_are_proved(first):
    copies, marks, _ = sent(first=first)
    found = checked(copies, marks)
    assert kinds(found) == {}
    assert found.records == found.by_batch == COUNT
    assert found.digests[0] == found.digests[1]
    assert found.newest_ms == max(batch.max_timestamp for batch in copies)


def test_records_before_the_first_mark_and_after_the_last_are_not_its_business():
    copies, marks, _ = sent()
    found = checked(copies, marks[2:-1])
    assert kinds(found) == {} and found.records == sum(mark.end - mark.first for mark in marks[2:-1])


def test_batches_of_other_producers_are_passed_over():
    copies, marks, chance = sent()
    others = [batch_at(COUNT + n, [record(n, chance)], producer=(99, n)) for n in range(3)]
    assert kinds(checked([copies[0], others[0], *copies[1:], *others[1:]], marks)) == {}


@pytest.mark.parametrize("seed", range(200))
def test_each_bit_that_flips_on_the_disk_is_named_with_its_batch_and_nothing_else(seed):
    copies, marks, chance = sent(seed % 5)
    at = chance.randrange(len(copies))
    bit = chance.randrange(17 * 8, 8 * len(copies[at].view))
    found = checked([*copies[:at], flipped(copies[at], bit), *copies[at + 1 :]], marks)
    damaged = [one for one in found.tally.differences if one.kind == "damaged"]
    assert [one.copy for one in damaged] == [copies[at].base_offset], found.tally.differences
    assert found.records >= COUNT - sum(m.end - m.first for m in marks if m.first <= copies[at].base_offset < m.end)
    for one in found.tally.differences:
        mark = next(m for m in marks if m.first <= copies[at].base_offset < m.end)
        assert mark.first <= one.copy < mark.end, one


def test_a_batch_whose_number_is_damaged_is_named_whatever_number_it_is_then():
    copies, marks, _ = sent(2)
    for batch in copies:
        for bit in range(8 * 53, 8 * 57):  # of the sequence
            items = [flipped(one, bit) if one is batch else one for one in copies]
            found = checked(items, marks).tally.differences
            assert [one.copy for one in found if one.kind == "damaged"] == [batch.base_offset], (bit, found)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("fault", ["missing", "duplicate", "exchanged", "other", "cut short"])
def test_each_fault_is_found_in_its_row_and_no_other_row(fault, seed):
    copies, marks, chance = sent(seed)
    at = chance.randrange(len(copies) - 1)
    items = list(copies)
    match fault:
        case "missing":
            del items[at]
        case "duplicate":
            items.insert(at, items[at])
        case "exchanged":
            items[at : at + 2] = [items[at + 1], items[at]]
        case "other":
            old = items[at]
            rows = [record(9000 + n, chance) for n in range(old.records)]
            items[at] = batch_at(old.base_offset, rows, producer=(PRODUCER, old.base_sequence))
        case "cut short":
            del items[at:]
    found = checked(items, marks)
    assert found.tally.unexplained(), fault
    touched = {copies[at].base_offset, copies[at + 1].base_offset}
    sound = [m for m in marks if not any(m.first <= base < m.end for base in touched)]
    if fault == "cut short":
        sound = [m for m in sound if m.end <= copies[at].base_offset]
    assert found.records >= sum(m.end - m.first for m in sound)
    assert found.records < COUNT or fault == "duplicate"


def test_what_retention_removes_meanwhile_is_deleted_not_missing():
    copies, marks, _ = sent()
    low = copies[7].base_offset
    found = checked([Hole(0, low, "deleted"), *copies[7:]], marks)
    assert kinds(found) == {"deleted": low}
    assert found.records == sum(mark.end - mark.first for mark in marks if mark.first >= low)
