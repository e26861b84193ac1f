"""The map, over generated histories: records at source offsets with gaps between them."""

import base64
import random
import zlib
from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.state.offset_map import (
    Gap,
    covering,
    destination_offset,
    gaps_of,
    locate,
    pack,
    places,
    source_offset,
    source_position,
)
from strait.state.packed_gaps import check, unpack
from strait.state.schema import OffsetMapping
from support.model.reports import plain_run


def run(gaps: Sequence[Gap], *, confirmed: int = 0, destination_base: int = 0) -> OffsetMapping:
    """A run that begins with the first of these gaps."""
    base = gaps[0]
    return OffsetMapping(
        topic="t",
        partition=0,
        destination="t",
        source_id="a",
        destination_id="b",
        source_base=base.source,
        destination_base=destination_base + base.sequence,
        sequence_base=base.sequence,
        gaps=pack(gaps[1:], sequence_base=base.sequence, source_base=base.source),
        sequence_end=confirmed,
        checkpoint_at_ms=0,
    )


steps = st.lists(st.sampled_from([1, 1, 1, 1, 2, 3, 1000, 10**6]), min_size=1, max_size=200)


def sources(step: Sequence[int]) -> list[int]:
    """Source offsets of records 0, 1, …"""
    return list(accumulate(step, initial=7))[:-1]


def true_gaps(at: Sequence[int]) -> list[Gap]:
    return [Gap(n, offset) for n, offset in enumerate(at) if n == 0 or at[n - 1] + 1 != offset]


@given(steps)
def test_every_record_is_where_it_was(step: list[int]) -> None:
    at = sources(step)
    whole = run(true_gaps(at), destination_base=50)
    for number, offset in enumerate(at):
        assert source_offset(whole, number) == offset
        assert destination_offset(whole, number) == 50 + number
        assert source_position(whole, number + 1) == offset + 1
    assert gaps_of(whole) == true_gaps(at)


@given(steps, st.data())
def test_runs_written_ahead_by_several_writers_say_one_thing(step: list[int], data: st.DataObject) -> None:
    """Each writer tells the gaps of what it has fetched, from where it stood; some of it twice, some chunks longer."""
    at = sources(step)
    gaps = true_gaps(at)
    cuts = data.draw(st.lists(st.integers(0, len(gaps) - 1), max_size=8))
    runs = [run(gaps[:1])]
    covered = max([0, *cuts])
    for start in cuts:
        end = data.draw(st.integers(start + 1, len(gaps)))
        runs.append(run(gaps[start:end]))
        covered = max(covered, end - 1)
    known = {gap.sequence for one in runs for gap in gaps_of(one)}
    for number in range(len(at) + 1):
        if all(gap.sequence in known for gap in gaps if gap.sequence < number):
            expected = at[number - 1] + 1 if number else at[0]
            assert locate(sorted(runs, key=lambda one: one.sequence_base), number) == expected


@given(steps, st.data())
def test_a_checkpoint_settles_what_stale_words_say_before_it(step: list[int], data: st.DataObject) -> None:
    at = sources(step)
    confirmed = data.draw(st.integers(0, len(at)))
    truth = run(true_gaps(at), confirmed=confirmed)
    stale_at = data.draw(st.integers(0, confirmed))
    stale = run([Gap(stale_at, 10**9)])
    for number in range(confirmed, len(at) + 1):
        runs = sorted([truth, stale], key=lambda one: one.sequence_base)
        if stale_at < confirmed:
            assert locate(runs, number) == source_position(truth, number)


def test_where_words_disagree_every_place_that_one_of_them_means_is_named() -> None:
    """The likeliest first: of a run's start and the record behind it, the record."""
    assert places([run([Gap(0, 0)]), run([Gap(10, 30)]), run([Gap(10, 20)])], 15) == [35, 25, 15]


def test_a_start_before_the_first_record_is_no_disagreement() -> None:
    assert places([run([Gap(0, 0)]), run([Gap(0, 5)])], 3) == [8]
    assert places([run([Gap(0, 5)]), run([Gap(0, 0)])], 3) == [8]


def test_going_back_in_the_source_is_told_from_what_was_written_ahead_before() -> None:
    """Records 10 and 12 were promised at 40 and 60; then the source was begun again."""
    assert places([run([Gap(0, 0)]), run([Gap(10, 0)]), run([Gap(10, 40), Gap(12, 60)])], 15) == [63, 45, 5, 15]


def test_many_gaps_take_few_bytes() -> None:
    """A transaction of 1 to 40 records and its marker, again and again: 4 bytes for each gap at most."""
    sequence = source = 0
    gaps = []
    for number in range(100_000):
        records = 1 + number * 7919 % 40
        sequence, source = sequence + records, source + records + 1
        gaps.append(Gap(sequence, source))
    packed = pack(gaps, sequence_base=0, source_base=0)
    assert len(packed) / len(gaps) <= 4


@given(st.lists(st.integers(1, 300), min_size=2, max_size=200).map(lambda some: some[: len(some) // 2 * 2]))
def test_both_forms_of_gaps_say_the_same(numbers: list[int]) -> None:
    sums = list(accumulate(numbers))
    records = list(accumulate(numbers[::2]))
    gaps = [Gap(7 + before, 9 + end) for before, end in zip(records, sums[1::2], strict=True)]
    texts = [pack(gaps, sequence_base=7, source_base=9, bits=bits) for bits in (False, True)]
    assert len(texts[1]) <= len(texts[0])
    for text in texts:
        one = run([Gap(7, 9)]).model_copy(update={"gaps": text})
        assert gaps_of(one) == [Gap(7, 9), *gaps]


def test_records_left_out_at_random_take_a_bit_each() -> None:
    """As the state topics are compressed, a character takes six bits there."""
    rng = random.Random(1)
    kept = [offset for offset in range(100_000) if rng.random() < 0.5]
    gaps = true_gaps(kept)
    assert len(pack(gaps[1:], sequence_base=0, source_base=kept[0], bits=True)) <= 100_000 / 6 + 100


@pytest.mark.parametrize("text", ["x", "AAAA", "eJwDAAAAAAE", "!", "!AAAA", "!eJwDAAAAAAE=", "!eJxjAAAAAQAB"])
def test_gaps_that_were_not_packed_here_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="gaps are"):
        gaps_of(run([Gap(0, 0)]).model_copy(update={"gaps": text}))


@given(st.binary(max_size=6) | st.integers(0, 9).map(lambda count: b"\xff" * count))
def test_bits_are_the_gaps_between_records_or_refused(data: bytes) -> None:
    text = "!" + base64.b64encode(zlib.compress(data)).decode()
    bits = "".join(f"{byte:08b}" for byte in data)
    if not (bits.startswith("1") and bits.endswith("1") and "0" in bits):
        for read in (check, unpack):
            with pytest.raises(ValueError, match="not between records"):
                read(text)
        return
    check(text)
    ends = [at for at in range(1, len(bits)) if bits[at - 1 : at + 1] == "01"]  # of gaps
    wanted = [(bits[:end].count("1"), bits[:end].count("0")) for end in ends]
    assert list(zip(*unpack(text), strict=True)) == wanted


@pytest.mark.parametrize("gap", [Gap(5, 5), Gap(0, 9), Gap(5, 4)])
def test_what_is_no_gap_is_not_packed(gap: Gap) -> None:
    with pytest.raises(ValueError, match="does not lie behind"):
        pack([gap], sequence_base=0, source_base=0)


def test_of_the_places_where_nothing_of_ours_was_the_last_counts() -> None:
    """A link among others' records notes how far it has read the destination in vain, again and again."""
    first = plain_run()
    noted = [first.model_copy(update={"destination_base": offset}) for offset in (400, 900, 5000)]
    assert covering([first, *noted], 0).destination_base == 5000
