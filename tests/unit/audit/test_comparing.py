"""Two logs are compared by number: every fault that was put in is named with both offsets, and none is invented."""

import random
from itertools import pairwise

import pytest

from strait.audit.comparing import Bounds, Sides, compare
from strait.audit.feed import END, Hole, Options
from strait.audit.findings import NOWHERE, Difference, verdict_of
from strait.audit.numbering import MappedSource, Piece, Pieces, SameOffsets, StampedCopy
from strait.wire.batch import make_header, parse, seal
from strait.wire.record_bytes import encode_fields
from strait.wire.records import read_records
from support.audited import PRODUCER, batch_at, flipped, log_of, passed, record

PLAIN = Options()
SHIFT = 300
"""The copy's offsets are the numbers and this."""


def pieces_of(offsets):
    """The map of records at these source offsets, numbered from 0."""
    found = []
    for number, offset in enumerate(offsets):
        if found and found[-1].source + found[-1].records == offset:
            found[-1] = found[-1]._replace(records=found[-1].records + 1)
        else:
            found.append(Piece(number, offset, 1))
    return found


def source_log(count, chance, *, gaps=True):
    """Records, their source offsets, the batches; between some batches there are offsets without a record."""
    records = [record(n, chance) for n in range(count)]
    batches, offsets, at, left = [], [], 40, records
    while left:
        size = chance.randrange(1, 40)
        piece, left = left[:size], left[size:]
        batches.append(batch_at(at, piece, chance.choice([0, 3, 4])))
        offsets += range(at, at + len(piece))
        at += len(piece) + (chance.randrange(1, 4) if gaps and chance.random() < 0.3 else 0)
    return records, offsets, batches


def copy_of(numbered, chance, *, most=40):
    """Records by number, in batches of the link; a number that does not follow its predecessor starts a batch."""
    groups = [[numbered[0]]] if numbered else []
    for one, other in pairwise(numbered):
        if other[0] != one[0] + 1 or len(groups[-1]) >= most or chance.random() < 0.05:
            groups.append([])
        groups[-1].append(other)
    at = numbered[0][0] + SHIFT if numbered else 0
    found = []
    for group in groups:
        records = [it for _, it in group]
        found.append(batch_at(at, records, chance.choice([0, 3]), producer=(PRODUCER, group[0][0])))
        at += len(group)
    return found


def run(source, copy, pieces, bounds=None, *, explain=lambda *_: "", shift=None, options=PLAIN, owner=None):
    end = pieces[-1].number + pieces[-1].records if pieces else 0
    bounds = bounds or Bounds(pieces[0].number, end)
    sides = Sides(iter(source), iter(copy), MappedSource(Pieces(pieces)), StampedCopy(PRODUCER, 0, shift))
    return compare(sides, bounds, options, explain, owner)


def named(result):
    """The differences one by one: kind, source offset, destination offset."""
    return {
        (one.kind, *(place if place == NOWHERE else place + step for place in (one.source, one.copy)))
        for one in result.tally.differences
        for step in range(1 if one.kind == "damaged" else one.records)
    }


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_passed_copy_is_equal_by_batch_wherever_the_bounds_cut_it(seed, strong):
    chance = random.Random(seed)
    _, offsets, source = source_log(2000, chance)
    copy, pieces = passed(source, first_offset=SHIFT), pieces_of(offsets)
    for _ in range(10):
        first, end = sorted(chance.sample(range(2001), 2))
        from_to = offsets[first], offsets[end] if end < 2000 else END
        result = run(source, copy, pieces, Bounds(first, end, *from_to), options=Options(strong=strong))
        assert named(result) == set()
        assert (result.records, result.by_batch, result.by_record) == (end - first, end - first, 0)
        assert result.digests[0] == result.digests[1]


@pytest.mark.parametrize("seed", range(3))
def test_a_copy_in_other_batches_is_equal_by_record(seed):
    chance = random.Random(seed)
    records, offsets, source = source_log(2000, chance)
    copy = copy_of(list(enumerate(records)), chance, most=100)
    for _ in range(10):
        first, end = sorted(chance.sample(range(2001), 2))
        bounds = Bounds(first, end, offsets[first], offsets[end] if end < 2000 else END)
        result = run(source, copy, pieces_of(offsets), bounds)
        assert named(result) == set()
        assert result.records == result.by_batch + result.by_record == end - first
        assert result.digests[0] == result.digests[1]


def with_faults(records, offsets, chance, faults):
    """Put faults into a copy that is made record by record. Returns its records by number, and what is to be found."""
    numbered, expected = [], []
    at = sorted(chance.sample(range(2, len(records) - 3, 4), faults))
    kinds = {place: chance.choice(["missing", "duplicate", "different", "reordered"]) for place in at}
    number = 0
    while number < len(records):
        kind = kinds.get(number)
        if kind == "reordered":
            numbered += [(number, records[number + 1]), (number + 1, records[number])]
            expected += [(kind, number, number + 1), (kind, number + 1, number)]
            number += 2
            continue
        if kind == "different":
            changed = records[number]
            changed = changed._replace(timestamp_ms=changed.timestamp_ms + 1) if chance.random() < 0.5 else changed
            numbered.append(
                (number, changed._replace(headers=(("x", b""),)) if changed is records[number] else changed)
            )
            expected.append((kind, number, number))
        elif kind == "missing":
            expected.append((kind, number, None))
        else:
            numbered.append((number, records[number]))
        if kind == "duplicate":
            numbered.append((number, records[number]))
            expected.append((kind, None, ("again", number)))
        number += 1
    places = {}
    for place, (number, _) in enumerate(numbered):
        places.setdefault(number, []).append(place + SHIFT)
    found = set()
    for kind, here, there in expected:
        again = isinstance(there, tuple)
        to = NOWHERE if there is None else places[there[1]][1] if again else places[there][0]
        found.add((kind, NOWHERE if here is None else offsets[here], to))
    return numbered, found


@pytest.mark.parametrize("seed", range(8))
def test_each_of_250_random_faults_is_named_with_both_offsets_and_none_is_invented(seed):
    """2,000 in all, in chunks whose limits fall anywhere. The scenario `rot` of `make endurance` puts 10,000 on disks."""
    chance = random.Random(seed)
    records, offsets, source = source_log(3000, chance)
    numbered, expected = with_faults(records, offsets, chance, 250)
    copy = copy_of(numbered, chance)
    found, compared = set(), 0
    bounds = [0, *sorted(chance.sample(range(1, 3000), 3)), 3000]
    safe = [number for number in bounds if ("reordered", offsets[min(number, 2999)]) not in {e[:2] for e in expected}]
    for first, end in pairwise(safe):
        source_to = offsets[end] if end < 3000 else END
        result = run(source, copy, pieces_of(offsets), Bounds(first, end, offsets[first], source_to))
        assert not found & named(result)
        found |= named(result)
        compared += result.records
        assert verdict_of(result.tally.counts) == ("different" if result.tally.counts else "equal")
    assert found == expected
    assert compared == 3000


@pytest.mark.parametrize("seed", range(8))
def test_each_flipped_bit_is_named_with_its_batch_and_its_records(seed):
    """A record that differs is named too, unless the bit is of no record's contents."""
    chance = random.Random(seed)
    _, offsets, source = source_log(1500, chance)
    clean, pieces = passed(source, first_offset=SHIFT), pieces_of(offsets)
    for _ in range(25):
        copy, here = list(clean), chance.random() < 0.3
        log = source = list(source)
        log = source if here else copy
        at = chance.randrange(len(log))
        before = log[at]
        log[at] = flipped(before, chance.randrange(21 * 8, len(before.view) * 8))
        result = run(source, copy, pieces, shift=-SHIFT)
        log[at] = before
        damaged = {one for one in named(result) if one[0] == "damaged"}
        assert damaged == {
            ("damaged", before.base_offset, NOWHERE) if here else ("damaged", NOWHERE, before.base_offset)
        }
        first = sum(batch.records for batch in source[:at])
        inside = {(offsets[n], n + SHIFT) for n in range(first, first + before.records)}
        others = {one[1:] for one in named(result) - damaged}
        ours = {place for pair in inside for place in pair}
        assert all({place for place in one if place != NOWHERE} <= ours for one in others), "only records of this batch"


def test_batches_that_change_places_are_reordered_not_missing():
    chance = random.Random(1)
    _, offsets, source = source_log(200, chance, gaps=False)
    copy = passed(source, first_offset=SHIFT)
    copy[3], copy[4] = copy[4], copy[3]
    result = run(source, copy, pieces_of(offsets))
    assert {kind for kind, _, _ in named(result)} == {"reordered"}
    assert sum(result.tally.counts.values()) == copy[4].records


def test_records_of_the_source_that_the_map_does_not_have_are_missing_unless_something_explains_it():
    chance = random.Random(2)
    _, offsets, source = source_log(600, chance, gaps=False)
    lost = source[5]
    kept = [offset for offset in offsets if not lost.base_offset <= offset < lost.next_offset]
    copy = passed([batch for batch in source if batch is not lost], first_offset=SHIFT)
    result = run(source, copy, pieces_of(kept))
    assert named(result) == {("missing", offset, NOWHERE) for offset in range(lost.base_offset, lost.next_offset)}
    assert verdict_of(result.tally.counts) == "different"

    explained = run(source, copy, pieces_of(kept), explain=lambda *_: "tail_dropped")
    assert explained.tally.counts == {("missing", "tail_dropped"): lost.records}
    assert verdict_of(explained.tally.counts) == "explained"


def test_a_segment_that_is_cut_short_leaves_its_rest_missing():
    chance = random.Random(3)
    _, offsets, source = source_log(600, chance)
    copy = passed(source, first_offset=SHIFT)[:-4]
    result = run(source, copy, pieces_of(offsets))
    there = sum(batch.records for batch in copy)
    assert named(result) == {("missing", offset, NOWHERE) for offset in offsets[there:]}
    assert len(result.tally.differences) < 10, "one for each stretch"


@pytest.mark.parametrize("side", ["source", "copy"])
def test_what_retention_removes_meanwhile_is_deleted_not_missing(side):
    chance = random.Random(4)
    _, offsets, source = source_log(600, chance, gaps=False)
    copy = passed(source, first_offset=SHIFT)
    logs = {"source": list(source), "copy": list(copy)}
    gone = logs[side][10:14]
    logs[side][10:14] = [Hole(gone[0].base_offset, gone[-1].next_offset, "deleted")]
    result = run(logs["source"], logs["copy"], pieces_of(offsets))
    assert result.tally.counts == {("deleted", ""): sum(batch.records for batch in gone)}
    assert verdict_of(result.tally.counts) == "incomplete"


def test_what_cannot_be_recognized_as_batches_is_damaged_and_its_records_missing_or_unknown():
    chance = random.Random(5)
    _, offsets, source = source_log(600, chance, gaps=False)
    copy = list(passed(source, first_offset=SHIFT))
    gone = copy[7:9]
    copy[7:9] = [Hole(gone[0].base_offset, gone[-1].next_offset, "damaged")]
    result = run(source, copy, pieces_of(offsets))
    lost = sum(batch.records for batch in gone)
    assert result.tally.counts == {("damaged", ""): 1, ("missing", ""): lost}
    copy, lost = passed(source, first_offset=SHIFT), sum(batch.records for batch in source[7:9])
    source[7:9] = [Hole(source[7].base_offset, source[8].next_offset, "damaged")]
    result = run(source, copy, pieces_of(offsets))
    assert result.tally.counts == {("damaged", ""): 1, ("unknown", ""): lost}, "not extra: the source may have them"


def test_records_of_other_producers_are_foreign_and_shift_nothing():
    chance = random.Random(6)
    _, offsets, source = source_log(400, chance)
    copy = passed(source, first_offset=SHIFT)
    foreign = [batch_at(1000 + n, [record(9000 + n, chance)], producer=(99 + n % 2, n)) for n in range(10)]
    for batch in foreign:
        copy.insert(chance.randrange(len(copy)), batch)
    result = run(source, copy, pieces_of(offsets), owner=lambda producer: "link b-to-a" if producer == 99 else "")
    assert result.tally.counts == {("foreign", "link b-to-a"): 5, ("foreign", ""): 5}
    assert result.by_batch == 400


def test_aborted_records_and_markers_are_no_records():
    chance = random.Random(7)
    records, offsets, source = source_log(400, chance)
    aborted = [batch_at(source[5].next_offset, [record(1, chance)])._replace(records=0)]
    result = run([*source[:6], *aborted, *source[6:]], passed(source), pieces_of(offsets))
    assert named(result) == set() and result.records == len(records)


def test_holes_of_compaction_are_compared_record_by_record():
    """The source was compacted after the copy was made: the copy has more, which compaction explains."""
    chance = random.Random(8)
    records, offsets, source = source_log(400, chance, gaps=False)
    copy = passed(source, first_offset=SHIFT)
    first = source[3]
    number = first.base_offset - 40
    kept = records[number : number + first.records : 2]
    source[3] = parse(_spread(batch_at(first.base_offset, kept), first.last_offset_delta))
    result = run(source, copy, pieces_of(offsets), explain=lambda kind, *_: "compaction" if kind == "extra" else "")
    assert result.tally.counts[("extra", "compaction")] == first.records - len(kept)
    assert ("different", "") not in result.tally.counts


def _spread(batch, last_offset_delta):
    """The same records at every second offset."""
    found = read_records(batch)
    base = found[0].timestamp_ms
    data = encode_fields(
        [(2 * n, one.timestamp_ms - base, one.key, one.value, one.headers) for n, one in enumerate(found)]
    )
    built = bytearray(make_header(len(data), 0, base, base, last_offset_delta + 1, base_offset=batch.base_offset))
    built += data
    built[57:61] = len(found).to_bytes(4, "big")
    seal(built)
    return memoryview(built)


def test_sequences_that_have_wrapped_are_paired_by_their_full_number():
    chance = random.Random(9)
    base = (1 << 31) - 150
    _, offsets, source = source_log(400, chance)
    copy = passed(source, first_offset=0, first_sequence=base)
    pieces = [piece._replace(number=piece.number + base) for piece in pieces_of(offsets)]
    sides = Sides(iter(source), iter(copy), MappedSource(Pieces(pieces)), StampedCopy(PRODUCER, base, None))
    result = compare(sides, Bounds(base, base + 400), Options(), lambda *_: "")
    assert result.by_batch == 400 and not result.tally.counts


def test_equal_offsets_are_compared_by_offset():
    chance = random.Random(10)
    source = log_of([record(n, chance) for n in range(500)], chance, first_offset=70)
    copy = list(source)
    del copy[4]
    sides = Sides(iter(source), iter(copy), SameOffsets(), SameOffsets())
    result = compare(sides, Bounds(70, 570), Options(), lambda *_: "")
    gone = source[4]
    assert result.tally.differences == [Difference("missing", gone.base_offset, NOWHERE, gone.records)]
    assert result.by_batch == 500 - gone.records
