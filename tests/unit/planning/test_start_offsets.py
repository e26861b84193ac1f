"""Where a partition begins: what its start asks for, held against what the source has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.planning.topics.start_offsets import (
    AfterCopies,
    AtOffset,
    AtTime,
    OutOfRange,
    Range,
    Resume,
    first_offset,
    needs_end,
    needs_first,
    start_at,
)

HELD = Range(first=10, end=20, first_since=15)


@pytest.mark.parametrize(
    ("start", "partition", "begin"),
    [
        ("earliest", 0, "earliest"),
        ("latest", 3, "latest"),
        (1_700_000_000_000, 0, AtTime(1_700_000_000_000)),
        ({0: 5, 2: 7}, 2, AtOffset(7)),
        ({0: 5, 2: 7}, 1, "earliest"),
    ],
)
def test_a_start_is_read_for_each_partition(start: object, partition: int, begin: object) -> None:
    assert start_at(start, partition) == begin  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("begin", "offset"),
    [
        ("earliest", 10),
        ("latest", 20),
        (AtTime(1), 15),
        (AtOffset(10), 10),
        (AtOffset(20), 20),
        (Resume(3), 3),
        (AfterCopies(12, "earliest"), 12),
        (AfterCopies(5, "earliest"), 10),
        (AfterCopies(12, "latest"), 20),
        (AfterCopies(12, AtTime(1)), 15),
        (AfterCopies(17, AtTime(1)), 17),
    ],
)
def test_it_begins_where_it_is_told(begin: object, offset: int) -> None:
    assert first_offset(begin, HELD) == offset  # type: ignore[arg-type]


def test_a_time_after_the_last_record_is_the_end_as_consumers_have_it() -> None:
    assert first_offset(AtTime(1), HELD._replace(first_since=-1)) == 20


@pytest.mark.parametrize("offset", [9, 21])
def test_an_offset_that_is_not_there_is_refused_with_what_is(offset: int) -> None:
    found = first_offset(AtOffset(offset), HELD)
    assert found == OutOfRange(f"`start` names offset {offset}, and the source holds 10 to 19")


@given(
    st.sampled_from(
        [
            "earliest",
            "latest",
            AtTime(5),
            AtOffset(12),
            Resume(12),
            AfterCopies(12, "earliest"),
            AfterCopies(12, "latest"),
            AfterCopies(12, AtTime(5)),
        ]
    ),
    st.integers(0, 10),
    st.integers(11, 99),
)
def test_what_is_not_needed_is_not_asked_for(begin: object, first: int, end: int) -> None:
    everything = Range(first, end, -1)
    asked = Range(
        first if needs_first(begin) else -1,  # type: ignore[arg-type]
        end if needs_end(begin) else -1,  # type: ignore[arg-type]
    )
    assert first_offset(begin, asked) == first_offset(begin, everything)  # type: ignore[arg-type]
