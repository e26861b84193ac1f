"""A lost map comes back from the contents of both logs: what is exact is right, and everything else is called unknown."""

import random
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from strait.planning.map_rebuild import entries as writing
from strait.planning.map_rebuild.entries import Logged, entries, last_ascending, numbers
from strait.planning.map_rebuild.matching import (
    AMBIGUOUS,
    COMPACTED,
    DIFFERENT,
    EXPIRED,
    Item,
    Open,
    Rules,
    Stretch,
    Unknown,
    match_batches,
    match_records,
)
from strait.state.offset_map import SEQUENCE_MODULUS
from strait.state.translation import Fit, Translator
from support.model.reports import plain_run

Pairs = dict[int, int]
"""Number of a record -> its source offset."""


class Logs:
    """Both logs of a partition. Offsets of the source have gaps; the copy has offset 7 more than the number."""

    def __init__(self, contents: Sequence[str], source: Sequence[int], copied: Sequence[int]) -> None:
        """``copied``: which of the source's records, by index, in the order of their numbers."""
        self.source = list(zip(source, contents, strict=True))
        self.copy = [(number, *self.source[at]) for number, at in enumerate(copied)]

    @property
    def truth(self) -> Pairs:
        return {number: offset for number, offset, _ in self.copy}

    def source_batches(self, cuts: set[int], first: int = 0) -> list[Item]:
        return [
            Item(part[0][0], len(part), _digest(part), whole=_dense(part), end=part[-1][0] + 1)
            for part in _cut(self.source[first:], cuts)
        ]

    def copy_batches(self, cuts: set[int], first: int = 0) -> list[Item]:
        return [
            Item(part[0][0] + 7, len(part), _digest(part), part[0][0], end=part[-1][0] + 8)
            for part in _cut(self.copy[first:], cuts)
        ]

    def source_records(self, at: Open, first: int = 0) -> list[Item]:
        kept = self.source[first:]
        return [Item(o, 1, c.encode(), end=o + 1) for o, c in kept if at.source_from <= o < at.source_to]

    def copy_records(self, at: Open, first: int = 0) -> list[Item]:
        kept = self.copy[first:]
        return [Item(n + 7, 1, c.encode(), n, end=n + 8) for n, _, c in kept if at.copy_from <= n + 7 < at.copy_to]

    def rebuilt(
        self, cuts: set[int], copy_cuts: set[int], rules: Rules, first: int = 0, first_copy: int = 0
    ) -> tuple[list[Stretch], list[Unknown]]:
        """From the source's record ``first`` on, and the copy's record ``first_copy``."""
        found, undecided = match_batches(
            self.source_batches(cuts, first), self.copy_batches(copy_cuts, first_copy), rules
        )
        unknown: list[Unknown] = []
        for at in undecided:
            more, left = match_records(self.source_records(at, first), self.copy_records(at, first_copy), at, rules)
            found, unknown = [*found, *more], [*unknown, *left]
        return sorted(found), unknown


def _digest(part) -> bytes | None:
    """Batches with holes are rebuilt, so their bytes are not compared."""
    return "|".join(content for *_, content in part).encode() if _dense(part) else None


def _dense(part) -> bool:
    return part[-1][0] - part[0][0] == len(part) - 1


def _cut(records, cuts: set[int]):
    bounds = sorted({0, len(records), *(cut for cut in cuts if cut < len(records))})
    return [records[one:other] for one, other in pairwise(bounds) if records[one:other]]


def pairs(stretches: Sequence[Stretch]) -> Pairs:
    found: Pairs = {}
    for one in stretches:
        for at in range(one.records):
            assert one.copy + at == one.number + at + 7
            assert one.number + at not in found
            found[one.number + at] = one.source + at
    return found


def unknown_numbers(unknown: Sequence[Unknown]) -> set[int]:
    return {number for one in unknown for number in range(one.number, one.number + one.records)}


@st.composite
def logs(draw: st.DrawFn) -> Logs:
    count = draw(st.integers(1, 40))
    kinds = draw(st.sampled_from(["ab", "abcdef", ""]))
    contents = [draw(st.sampled_from(kinds)) if kinds else str(number) for number in range(count)]
    offsets, at = [], draw(st.integers(0, 3))
    for _ in range(count):
        at += draw(st.sampled_from([1, 1, 1, 2, 4]))
        offsets.append(at)
    return Logs(contents, offsets, range(draw(st.integers(0, count - 1)), draw(st.integers(0, count))))


CUTS = st.sets(st.integers(1, 39), max_size=12)


@settings(max_examples=400)
@given(logs(), CUTS, CUTS, st.integers(0, 39), st.integers(0, 39), st.booleans())
def test_nothing_is_assigned_wrongly_and_nothing_is_left_unsaid(
    both: Logs, cuts: set[int], copy_cuts: set[int], first: int, first_copy: int, keep: bool
) -> None:
    """Any history begins anywhere and is cut into other batches; both logs may have lost their beginnings."""
    first, first_copy = (0, 0) if keep else (min(first, len(both.source) - 1), first_copy)
    if len({content for _, content in both.source}) < len(both.source):
        first, cuts, copy_cuts = 0, set(), set()  # equal batches of few records: only the records tell them apart
    exact, unknown = both.rebuilt(cuts, copy_cuts, Rules(complete=first == 0), first, first_copy)
    found = pairs(exact)
    assert found.items() <= both.truth.items()
    kept = {number for number, *_ in both.copy[first_copy:]}
    assert found.keys() | unknown_numbers(unknown) == kept
    assert not found.keys() & unknown_numbers(unknown)
    if len({content for _, content in both.source}) == len(both.source):
        there = {offset for offset, _ in both.source[first:]}
        assert found.keys() == {number for number in kept if both.truth[number] in there}


@given(logs(), CUTS, CUTS, st.sets(st.integers(0, 39), max_size=5))
def test_records_that_were_not_copied_leave_no_wrong_answer(
    both: Logs, cuts: set[int], copy_cuts: set[int], quarantined: set[int]
) -> None:
    """Equal records are refused alike, so all of one content are left out."""
    refused = {both.source[at][1] for at in quarantined if at < len(both.source)}
    kept = [at for at, (_, content) in enumerate(both.source) if content not in refused]
    some = Logs([content for _, content in both.source], [offset for offset, _ in both.source], kept)
    exact, unknown = some.rebuilt(cuts, copy_cuts, Rules())
    assert pairs(exact) == some.truth
    assert unknown == []


def test_what_has_expired_is_unknown_and_what_follows_is_exact() -> None:
    both = Logs([str(n) for n in range(10)], range(10), range(10))
    exact, unknown = both.rebuilt({4}, {3, 6}, Rules(complete=False), first=4)
    assert exact == [Stretch(4, 4, 11, 6)]
    assert unknown == [Unknown(0, 4, 7, 11, EXPIRED)]


def test_a_batch_that_equals_another_one_by_chance_is_no_anchor() -> None:
    """The copied record was split off a larger batch, and an equal one was produced later."""
    both = Logs(list("xaya"), range(4), [1])
    exact, unknown = both.rebuilt({3}, set(), Rules())
    assert exact == []
    assert unknown_numbers(unknown) == {0}
    assert pairs(Logs(list("xaya"), range(4), [0, 1]).rebuilt({3}, {1}, Rules())[0]) == {0: 0, 1: 1}


def test_equal_records_are_told_apart_by_their_number_between_unique_ones() -> None:
    both = Logs(list("xaaay"), [0, 1, 3, 4, 6], range(5))
    assert pairs(both.rebuilt({1, 2}, {3}, Rules())[0]) == both.truth
    one_missing = Logs(list("xaaay"), [0, 1, 3, 4, 6], [0, 1, 3, 4])
    exact, unknown = one_missing.rebuilt({1, 2}, {3}, Rules())
    assert pairs(exact) == {0: 0, 3: 6}
    assert unknown_numbers(unknown) == {1, 2}


def test_records_that_were_copied_twice_are_not_assigned() -> None:
    both = Logs(list("abcde"), range(5), [0, 1, 2, 1, 2, 3, 4])
    exact, unknown = both.rebuilt({2}, {4}, Rules())
    assert pairs(exact) == {0: 0, 5: 3, 6: 4}
    assert {one.reason for one in unknown} == {DIFFERENT}


def test_a_record_that_was_not_copied_shifts_all_that_follow() -> None:
    """Batches were passed on before and after it."""
    both = Logs([str(n) for n in range(11)], range(11), [n for n in range(11) if n != 5])
    exact, unknown = both.rebuilt({2, 4, 7, 9}, {2, 4, 6, 8}, Rules())
    assert (pairs(exact), unknown) == (both.truth, [])


def test_a_beginning_that_was_copied_twice_is_not_taken_for_an_expired_one() -> None:
    both = Logs(list("abc"), range(3), [0, 1, 0, 1, 2])
    assert both.rebuilt(set(), set(), Rules())[1] == [Unknown(0, 4, 7, 11, DIFFERENT)]
    assert pairs(both.rebuilt(set(), set(), Rules())[0]) == {4: 2}


def test_equal_records_at_an_expired_beginning_are_not_guessed() -> None:
    """Those that were copied may be the ones that are left, or have expired."""
    both = Logs(list("aaqz"), range(4), [0, 1, 3])
    assert pairs(both.rebuilt(set(), set(), Rules())[0]) == both.truth
    exact, unknown = both.rebuilt(set(), set(), Rules(complete=False))
    assert pairs(exact) == {2: 3}
    assert unknown_numbers(unknown) == {0, 1}


def test_a_missing_number_next_to_an_anchor_is_not_counted_over() -> None:
    """The broker took a later batch for a new beginning: the second record is in no batch."""
    both = Logs(list("abxxx"), range(5), range(4))
    del both.copy[2]
    for cuts in (set(), {1, 2}):
        exact, unknown = both.rebuilt(cuts, cuts, Rules())
        assert pairs(exact) == {0: 0, 1: 1}
        assert unknown_numbers(unknown) == {3}


def test_records_that_were_passed_over_are_not_counted_at_the_open_end() -> None:
    """The tail after the second record was dropped; the last one is equal to those in it."""
    both = Logs(list("axxx"), range(4), [0, 1, 3])
    exact, unknown = both.rebuilt(set(), set(), Rules(lossless=False))
    assert pairs(exact) == {0: 0}
    assert unknown_numbers(unknown) == {1, 2}
    closed = Logs(list("axxxz"), range(5), range(5))
    assert pairs(closed.rebuilt(set(), set(), Rules(lossless=False))[0]) == closed.truth


def test_without_timestamps_one_equal_record_proves_nothing_where_the_source_has_expired() -> None:
    """The record that was copied is gone; an equal one came later, after one that was not copied."""
    both = Logs(list("bxcx"), range(4), [0, 1])
    untimed = Rules(complete=False, timed=False)
    assert both.rebuilt(set(), set(), untimed, first=2) == ([], [Unknown(0, 2, 7, 9, AMBIGUOUS)])
    again = Logs(list("pqrcpqz"), range(7), range(3))
    assert pairs(again.rebuilt(set(), set(), untimed, first=3)[0]) == {}
    overlapping = Logs(list("bxcxyzw"), range(7), range(6))
    assert pairs(overlapping.rebuilt(set(), set(), untimed, first=2)[0]) == {n: n for n in range(2, 6)}


def test_without_timestamps_nothing_of_a_compacted_topic_is_assigned() -> None:
    """A key got its value again, and the record that was copied is gone."""
    both = Logs(list("abcdc"), [0, 1, 2, 3, 4], range(3))
    del both.source[2]
    assert both.rebuilt(set(), set(), Rules(dense=False, timed=False)) == ([], [Unknown(0, 3, 7, 10, COMPACTED)])


def test_of_compacted_topics_only_unique_records_count() -> None:
    both = Logs(list("xaaby"), [0, 1, 2, 3, 9], range(5))
    exact, unknown = both.rebuilt({1}, {2}, Rules(dense=False))
    assert pairs(exact) == {0: 0, 3: 3, 4: 9}
    assert unknown == [Unknown(1, 2, 8, 10, COMPACTED)]


def test_anchors_in_another_order_do_not_count() -> None:
    both = Logs(list("abcd"), range(4), [3, 0, 1, 2])
    assert pairs(both.rebuilt(set(), {1}, Rules())[0]) == {}


def test_numbers_follow_from_the_offset_also_where_they_have_wrapped() -> None:
    wrapped = SEQUENCE_MODULUS + 3
    batches = [Logged(wrapped + 100, wrapped + 105, 3), Logged(wrapped + 105, wrapped + 106, 8)]
    assert numbers(batches) == [wrapped, wrapped + 5]
    near = SEQUENCE_MODULUS - 2
    assert numbers([Logged(near, near + 2, near), Logged(near + 9, near + 10, 0)]) == [near, near + 2]
    assert numbers([Logged(500, 510, 0)]) == [0]


def test_only_the_last_life_of_the_link_counts() -> None:
    copy = [Item(0, 5, None, 0, end=5), Item(5, 5, None, 0, end=10), Item(10, 5, None, 5, end=15)]
    assert last_ascending(copy) == 1
    assert last_ascending(copy[1:]) == 0


def run_like():
    return plain_run(source_base=0, destination_base=0, sequence_base=0, sequence_end=0)


@given(logs(), st.integers(0, 39))
def test_entries_translate_as_the_records_lie(both: Logs, first: int) -> None:
    """Every offset, both ways: exact, or unknown where the source offset of the record before is."""
    if first >= len(both.copy):
        return
    stretches = [Stretch(n, offset, n + 7, 1) for n, offset, _ in both.copy[first:]]
    runs, left_out = entries(run_like(), stretches, source_epoch=4)
    assert left_out == []
    assert runs[-1].source_epoch == 4
    random.Random(0).shuffle(runs)
    translator = Translator(runs, written=len(both.copy))
    sources = [offset for _, offset, _ in both.copy]
    for offset in range(sources[0], sources[-1] + 2):
        before = sum(one < offset for one in sources)
        found = translator.to_destination(offset)
        if first and offset < sources[first]:
            assert found.fit is Fit.UNKNOWN
        else:
            assert found == (before + 7, Fit.EXACT)
    for number in range(1, len(sources) + 1):
        found = translator.to_source(number + 7)
        if number <= first:
            assert found.fit is Fit.UNKNOWN
        else:
            assert found == (sources[number - 1] + 1, Fit.EXACT)


def test_an_unknown_stretch_in_the_middle_has_exact_ends() -> None:
    known = [Stretch(0, 10, 7, 5), Stretch(8, 30, 15, 2)]
    translator = Translator(entries(run_like(), known, source_epoch=-1)[0], written=10)
    to = [translator.to_destination(offset) for offset in (14, 15, 16, 29, 30, 31)]
    assert [found.fit for found in to] == ["exact", "exact", "unknown", "unknown", "exact", "exact"]
    assert [to[1].offset, to[4].offset, to[5].offset] == [12, 15, 16]
    back = [translator.to_source(offset) for offset in (12, 13, 15, 16)]
    assert [found.fit for found in back] == ["exact", "unknown", "unknown", "exact"]
    assert (back[0].offset, back[3].offset) == (15, 31)
    assert translator.records_before(20) == (5, False)
    assert translator.next_at_source(6).exact is False
    assert translator.replicated_from(12) == 15
    assert translator.replicated_from(17) == 17


def test_many_gaps_and_many_unknown_stretches_stay_small(monkeypatch) -> None:
    monkeypatch.setattr(writing, "GAPS_PER_ENTRY", 10)
    monkeypatch.setattr(writing, "MOST_SPANS", 3)
    dotted = [Stretch(n, 2 * n, n, 1) for n in range(95)]
    runs, left_out = entries(run_like(), dotted, source_epoch=-1)
    assert (len(runs), left_out) == (10, [])
    assert [translated.offset for n in range(95) if (translated := Translator(runs).to_source(n + 1))] == [
        2 * n + 1 for n in range(95)
    ]
    apart = [Stretch(10 * n, 30 * n, 10 * n, 4) for n in range(5)]
    runs, left_out = entries(run_like(), apart, source_epoch=-1)
    assert [run.sequence_base for run in runs] == [20, 30, 40]
    assert all(run.after_unknown for run in runs)
    assert unknown_numbers(left_out) == {*range(4), *range(10, 14)}


def test_records_of_other_producers_between_make_the_map_a_shared_one() -> None:
    runs, _ = entries(run_like(), [Stretch(0, 0, 0, 5), Stretch(5, 5, 8, 5)], source_epoch=-1)
    (run,) = runs
    assert run.shared
    assert run.destination_base + run.sequence_end - run.sequence_base == 13
