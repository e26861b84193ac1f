"""Where a partition begins that another tool has copied: by the copy's last records, not by what was stored."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.planning.topics.move_in import (
    TAIL_RECORDS,
    Begin,
    Content,
    Logs,
    Match,
    NoMatch,
    TailSearch,
    closer,
    fingerprints,
    first_to_search,
    oldest,
    where_to_begin,
)


def content(number: int) -> Content:
    return Content(1_000 + number, f"key {number}".encode(), b"same")


def search(source: Iterable[tuple[int, int]], copy: Iterable[int], *, compacted: bool = False) -> Match | NoMatch:
    """``source``: offset and content of each record."""
    tail = fingerprints(content(number) for number in copy)[-TAIL_RECORDS:]
    found = TailSearch(tail, compacted=compacted)
    for offset, number in source:
        found.feed(offset, content(number).fingerprint())
    return found.result()


def plain(count: int) -> list[tuple[int, int]]:
    return [(number, number) for number in range(count)]


def test_it_begins_after_the_source_record_that_equals_the_last_one_of_the_copy() -> None:
    assert search(plain(500), range(300)) == Match(300, 100)


def test_gaps_in_the_source_do_not_matter() -> None:
    """Markers of transactions, aborted records, compaction."""
    assert search([(3 * number, number) for number in range(50)], range(20)) == Match(58, 20)


def test_nothing_equal_is_no_match() -> None:
    found = search(plain(10), [77])
    assert isinstance(found, NoMatch)
    assert "from offset 0 to 9" in found.detail


def test_records_before_the_last_one_decide_between_equal_ones() -> None:
    source = [(0, 1), (1, 2), (2, 9), (3, 5), (4, 9), (5, 6)]
    assert search(source, [2, 9]) == Match(3, 2)
    assert search(source, [5, 9]) == Match(5, 2)
    assert isinstance(search(source, [9]), NoMatch)


def test_what_the_other_tool_copied_twice_is_not_copied_a_third_time() -> None:
    """The copy's last record is 74, but it holds 75 to 79 from before."""
    assert search(plain(100), [*range(80), *range(70, 75)]) == Match(80, 5, 5)


def test_a_tool_that_was_started_again_more_than_once_has_still_copied_what_it_had() -> None:
    assert search(plain(100), [*range(80), *range(70, 75), *range(72, 74)]) == Match(80, 2, 6)
    assert search(plain(100), [*range(80), *range(70, 75), *range(60, 79)]) == Match(80, 19, 1)


def test_records_that_the_source_does_not_have_any_more_do_not_matter() -> None:
    """Compacted there since."""
    source = [(offset, number) for offset, number in plain(100) if number % 7]
    assert search(source, range(60)) == Match(60, 3)


def test_the_last_records_may_be_gone_from_a_compacted_source_alone() -> None:
    source = [(offset, number) for offset, number in plain(100) if number not in (57, 58, 59)]
    assert search(source, range(60), compacted=True) == Match(57, 57)
    assert isinstance(search(source, range(60)), NoMatch)
    assert isinstance(search(source, [777], compacted=True), NoMatch)


def test_a_hole_in_the_copy_is_no_match() -> None:
    found = search(plain(100), [*range(70), 72, *range(60, 65)])
    assert isinstance(found, NoMatch)
    assert "source offset 72" in found.detail


def test_content_differs_where_any_part_of_it_does() -> None:
    records = [
        Content(1, b"a", b"b"),
        Content(2, b"a", b"b"),
        Content(1, b"ab", b""),
        Content(1, None, b"b"),
        Content(1, b"", b"b"),
        Content(1, b"a", None),
        Content(1, b"a", b"b", (("h", b"x"),)),
        Content(1, b"a", b"b", (("h", None),)),
        Content(1, b"a", b"b", (("hx", b""),)),
    ]
    assert len({record.fingerprint() for record in records}) == len(records)


@given(
    records=st.lists(st.integers(0, 3), min_size=1, max_size=30),
    copied=st.integers(1, 30),
    start=st.integers(0, 10),
)
def test_however_records_repeat_a_match_is_the_end_of_the_copy(records: list[int], copied: int, start: int) -> None:
    """The copy holds the first records; where several ends are possible, there is no match."""
    copied = min(copied, len(records))
    found = search([(start + at, number) for at, number in enumerate(records)], records[:copied])
    if isinstance(found, Match):
        assert found.offset == start + copied


@given(data=st.data())
def test_however_often_the_tool_was_started_again_a_match_is_the_furthest_record(data: st.DataObject) -> None:
    copy: list[int] = []
    at = furthest = 0
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, at))
        end = data.draw(st.integers(at + 1, at + 30))
        copy += range(at, end)
        at, furthest = end, max(furthest, end)
    found = search(plain(200), copy)
    assert isinstance(found, Match)
    assert found.offset == furthest


def logs(*, first: int = 0, end: int = 1000, copy: tuple[int, int] = (0, 300), readable: int | None = None) -> Logs:
    return Logs(first, end, *copy, copy[1] if readable is None else readable)


@pytest.mark.parametrize("stored", [None, 250, 300, 320])
def test_a_match_counts_whatever_is_stored(stored: int | None) -> None:
    begin = where_to_begin(stored, logs(), Match(300, 100))
    assert (begin.verdict, begin.offset) == ("ready", 300)


@pytest.mark.parametrize(
    ("stored", "of", "expected"),
    [
        (None, logs(copy=(0, 0)), ("nothing", None, None)),
        (0, logs(copy=(0, 0)), ("ready", 0, None)),
        (7, logs(first=7, copy=(0, 0)), ("ready", 7, None)),
        (8, logs(first=7, copy=(0, 0)), ("refused", None, 8)),
        (40, logs(copy=(300, 300)), ("refused", None, 40)),
        (None, logs(copy=(300, 300)), ("refused", None, None)),
    ],
)
def test_a_copy_without_records_tells_nothing(
    stored: int | None, of: Logs, expected: tuple[str, int | None, int | None]
) -> None:
    begin = where_to_begin(stored, of, None)
    assert (begin.verdict, begin.offset, begin.forced) == expected


def test_force_goes_by_what_is_stored_where_the_source_has_it() -> None:
    missing = NoMatch("none")
    assert where_to_begin(60, logs(), missing) == Begin("refused", None, "none", 60)
    assert where_to_begin(1001, logs(), missing).forced is None
    assert where_to_begin(None, logs(), missing).forced is None


def test_an_open_transaction_in_the_copy_cannot_be_forced() -> None:
    begin = where_to_begin(300, logs(readable=290), Match(290, 100))
    assert (begin.verdict, begin.forced) == ("refused", None)
    assert "offset 290" in begin.detail


def test_where_retention_was_faster_force_begins_with_what_is_left() -> None:
    assert where_to_begin(60, logs(first=80), NoMatch("none")).forced == 80


def test_the_search_begins_at_the_time_of_the_oldest_of_the_last_records() -> None:
    assert oldest([content(7), content(3), content(9)]) == 1_003
    assert oldest([content(7), Content(-1, None, None)]) is None


def test_the_search_begins_before_what_is_stored() -> None:
    assert first_to_search(None, 5) == 5
    assert first_to_search(100, 5) == 5
    assert first_to_search(1_000_000, 5) == 999_000


@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=12),
    st.booleans(),
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=2),
    st.floats(0, 1),
)
def test_whatever_a_tool_reads_and_however_often_it_is_restarted_each_committed_record_is_copied(
    transactions: list[tuple[int, bool]], committed_only: bool, restarts: list[tuple[float, float]], progress: float
) -> None:
    """``transactions``: their records, and whether each was committed; markers take offsets. The tool begins again
    somewhere before where it was, after each restart, and each time it comes this far."""
    source: list[tuple[int, bool]] = []
    at = 0
    for records, is_committed in transactions:
        source += [(offset, is_committed) for offset in range(at, at + records)]
        at += records + 1
    read = [offset for offset, is_committed in source if is_committed or not committed_only]
    copy: list[int] = []
    begins, ends = 0, 0
    for again, reached in ((0.0, progress), *restarts):
        begins = int(again * ends)
        ends = begins + int(reached * (len(read) - begins))
        copy += read[begins:ends]
    if not copy:
        return
    of_committed, of_all = (
        search([(offset, offset) for offset, is_committed in source if is_committed or every], copy)
        for every in (False, True)
    )
    found = closer(of_committed, of_all)
    assert isinstance(found, Match)
    missing = {offset for offset, is_committed in source if is_committed} - set(copy)
    assert all(offset >= found.offset for offset in missing)
    assert not [offset for offset in copy if offset >= found.offset]


def test_what_a_tool_replicated_of_aborted_transactions_is_said() -> None:
    begin = where_to_begin(None, logs(), Match(50, 100, uncommitted=True))
    assert (begin.verdict, begin.offset) == ("ready", 50)
    assert "records of aborted or open transactions, too" in begin.detail


def test_a_refusal_that_force_cannot_help_says_how_to_name_an_offset() -> None:
    assert "name one in a file" in where_to_begin(None, logs(), NoMatch("none")).detail
    assert "name one" not in where_to_begin(60, logs(), NoMatch("none")).detail
