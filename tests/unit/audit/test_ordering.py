"""Two logs are compared by order alone: what a mirror of other batches lacks, has twice, has changed or exchanged."""

import random

import pytest

from strait.audit.feed import Options
from strait.audit.findings import NOWHERE, verdict_of
from strait.audit.ordering import Edges, compare_in_order
from support.audited import log_of, record

ALL = Edges(0, 0)
PLAIN = Options()


def run(source, copy, chance, edges=ALL, *, explain=lambda *_: "", options=PLAIN):
    logs = log_of(source, chance, most=300), log_of(copy, chance, most=700)
    return compare_in_order(iter(logs[0]), iter(logs[1]), options, edges, explain)


def named(result):
    return {
        (one.kind, *(place if place == NOWHERE else place + step for place in (one.source, one.copy)))
        for one in result.tally.differences
        for step in range(one.records)
    }


@pytest.mark.parametrize("strong", [False, True])
def test_an_equal_mirror_is_equal_and_what_follows_is_its_tail(strong):
    chance = random.Random(1)
    records = [record(n, chance) for n in range(3000)]
    result, tail = run(records, records[:2700], chance, options=Options(strong=strong))
    assert (named(result), result.by_record, tail) == (set(), 2700, 300)


@pytest.mark.parametrize("seed", range(5))
def test_each_of_60_random_faults_is_named_with_its_offsets_and_none_is_invented(seed):
    chance = random.Random(seed)
    records = [record(n, chance) for n in range(4000)]
    at = sorted(chance.sample(range(20, 3950, 13), 60))
    kinds = {place: chance.choice(["missing", "duplicate", "different", "reordered", "extra"]) for place in at}
    copy, expected, number = [], set(), 0
    while number < len(records):
        one, there = records[number], len(copy)
        match kinds.get(number):
            case "missing":
                expected.add(("missing", number, NOWHERE))
            case "duplicate":
                copy += [one, one]
                expected.add(("duplicate", NOWHERE, {there, there + 1}.pop()))
            case "different":
                copy.append(one._replace(timestamp_ms=one.timestamp_ms + 1))
                expected.add(("different", number, there))
            case "extra":
                copy += [record(10_000 + number, chance), one]
                expected.add(("extra", NOWHERE, there))
            case "reordered":
                copy += [records[number + 1], one]
                expected |= {("reordered", number, there + 1), ("reordered", number + 1, there)}
                number += 1
            case _:
                copy.append(one)
        number += 1
    result, tail = run(records, copy, chance)
    found = named(result)
    loose = {(kind, here, there if kind != "duplicate" else there // 1) for kind, here, there in found}
    missed = {one for one in expected if one not in loose and (one[0], one[1], one[2] + 1) not in loose}
    assert not missed, "a duplicate is either of two equal records"
    assert len(found) == len(expected) and tail == 0


def test_a_record_that_arrives_much_later_is_reordered():
    chance = random.Random(2)
    records = [record(n, chance) for n in range(3000)]
    copy = records[:100] + records[101:2000] + [records[100]] + records[2000:]
    result, _ = run(records, copy, chance)
    assert named(result) == {("reordered", 100, 1999)}


@pytest.mark.parametrize("count", [10, 20_000])
def test_a_long_stretch_that_is_missing_is_one_difference(count):
    chance = random.Random(3)
    records = [record(n, chance) for n in range(30_000)]
    result, _ = run(records, records[:5000] + records[5000 + count :], chance)
    assert result.tally.counts == {("missing", ""): count}
    assert len(result.tally.differences) == 1


def test_a_mirror_that_keeps_more_than_its_source_is_not_wrong():
    chance = random.Random(4)
    records = [record(n, chance) for n in range(1000)]
    result, _ = run(records[300:], records, chance, Edges(300, 0))
    assert result.tally.counts == {("deleted", ""): 300}
    assert verdict_of(result.tally.counts) == "incomplete"


def test_two_logs_that_have_nothing_in_common_end():
    chance = random.Random(5)
    result, _ = run([record(n, chance) for n in range(500)], [record(5000 + n, chance) for n in range(400)], chance)
    assert verdict_of(result.tally.counts) == "different"


def test_equal_records_in_a_row_are_counted_exactly():
    chance = random.Random(6)
    one = record(1, chance)
    result, _ = run([one] * 500 + [record(2, chance)] * 3, [one] * 497 + [record(2, chance)] * 3, chance)
    assert sum(result.tally.counts.values()) >= 3


def test_only_records_within_the_ranges_are_compared_wherever_these_cut_batches():
    chance = random.Random(9)
    records = [record(n, chance) for n in range(3000)]
    copy = records[:]
    del copy[700:702]
    edges = Edges(0, 0, closed=True, source_range=(0, 1001), copy_range=(0, 999))
    result, tail = run(records, copy, chance, edges)
    assert (result.records, result.by_record, tail) == (1001, 999, 0)
    assert named(result) == {("missing", 700, NOWHERE), ("missing", 701, NOWHERE)}


def test_what_follows_in_closed_ranges_is_missing_and_no_tail():
    chance = random.Random(10)
    records = [record(n, chance) for n in range(1000)]
    result, tail = run(records, records[:998], chance, Edges(0, 0, closed=True))
    assert (named(result), tail) == ({("missing", 998, NOWHERE), ("missing", 999, NOWHERE)}, 0)
