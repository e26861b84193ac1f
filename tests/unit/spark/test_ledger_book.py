"""Which rows a driver writes, and what no slot is left to tell."""

from strait.spark.ledger_book import UNREPORTED, LedgerBook
from strait.state.ledger_records import LedgerEntry, LedgerMark, LedgerPart

PATIENCE_MS = 1_000


class Topic:
    """The ledger topic, as one driver reads it."""

    def __init__(self, application: str = "a", head_start: str = "") -> None:
        self.book = LedgerBook("default", application, PATIENCE_MS, head_start)
        self.end = 0

    def told(self, application: str, first: int, end: int, at_ms: int, group: str = "default") -> int:
        """Records [first, end) of the one partition; returns the offset."""
        entry = LedgerEntry(
            topic="t", partition=0, destination="t", source_from=first + 100, source_to=end + 100,
            destination_from=first + 7, destination_to=end + 7, sequence_from=first, sequence_to=end, records=end - first,
            batches=1, bytes=9, digest=5, state="caught_up", reason="",
        )  # fmt: skip
        part = LedgerPart(
            link="l", group=group, slot=0, application=application, started_at_ms=at_ms - 10, ended_at_ms=at_ms,
            entries=(entry,),
        )  # fmt: skip
        return self._next(part, at_ms)

    def marked(self, application: str, below: int, at_ms: int) -> None:
        self._next(LedgerMark(link="l", group="default", application=application, below=below, at_ms=at_ms), at_ms)

    def _next(self, record: LedgerPart | LedgerMark, at_ms: int) -> int:
        self.book.take(self.end, at_ms, record)
        self.end += 1
        return self.end - 1

    def rows(self, now_ms: int, *, last: bool = False) -> list[tuple[str, int, int, str]]:
        """(application, first record, end, state) of each row that is due."""
        return [
            (part.application, entry.sequence_from, entry.sequence_to, entry.state)
            for pending in self.book.due(now_ms, last=last).values()
            for one in pending
            for part in one.parts()
            for entry in part.entries
        ]


def test_a_driver_writes_its_own_rows_once() -> None:
    topic = Topic()
    topic.told("a", 0, 5, 0)
    last = topic.told("a", 5, 9, 10)
    assert topic.rows(10) == [("a", 0, 5, "caught_up"), ("a", 5, 9, "caught_up")]
    topic.marked("a", last + 1, 20)
    assert topic.rows(20) == []


def test_rows_of_another_task_group_are_not_its_own() -> None:
    topic = Topic()
    topic.told("a", 0, 5, 0, group="backfill")
    assert topic.rows(2 * PATIENCE_MS) == []


def test_rows_of_its_head_start_are_its_own_and_what_that_may_still_tell_is_waited_for() -> None:
    topic = Topic(head_start="first")
    topic.told("first", 0, 5, 0)
    assert topic.rows(10) == [("first", 0, 5, "caught_up")]
    topic.told("a", 8, 9, 20)  # the head start may have copied 5 to 8
    assert topic.rows(20) == [("first", 0, 5, "caught_up")]
    topic.told("first", 5, 8, 30)
    assert sorted(topic.rows(30)) == [
        ("a", 8, 9, "caught_up"), ("first", 0, 5, "caught_up"), ("first", 5, 8, "caught_up"),
    ]  # fmt: skip


def test_what_a_dead_driver_has_left_is_written_after_a_while() -> None:
    topic = Topic("new")
    topic.told("old", 0, 5, 0)
    topic.told("old", 5, 9, 10)
    topic.marked("old", 1, 20)
    assert topic.rows(PATIENCE_MS) == []
    assert topic.rows(PATIENCE_MS + 20) == [("old", 5, 9, "caught_up")]


def test_what_a_killed_slot_has_not_told_is_a_row_of_its_own() -> None:
    topic = Topic()
    topic.told("a", 0, 5, 0)
    topic.told("a", 8, 9, 10)
    assert topic.rows(10) == [("a", 0, 5, "caught_up"), ("a", 5, 8, UNREPORTED), ("a", 8, 9, "caught_up")]
    (gap,) = [part.entries[0] for one in topic.book.due(10)["a"] for part in one.parts()][1:2]
    assert (gap.source_from, gap.source_to, gap.destination_from, gap.destination_to) == (105, 108, 12, 15)
    assert (gap.records, gap.batches, gap.bytes, gap.digest) == (3, -1, -1, -1)


def test_where_another_application_copies_too_it_may_tell_later() -> None:
    topic = Topic()
    topic.told("b", 0, 2, 0)
    topic.told("a", 2, 5, 10)
    topic.told("a", 20, 25, 20)
    assert topic.rows(20) == [("a", 2, 5, "caught_up")]
    topic.told("b", 3, 12, 30)
    topic.told("b", 15, 20, 40)
    rows = topic.rows(PATIENCE_MS + 21)
    assert [row for row in rows if row[0] == "a"] == [
        ("a", 2, 5, "caught_up"),
        ("a", 12, 15, UNREPORTED),
        ("a", 20, 25, "caught_up"),
    ]


def test_an_application_that_ends_waits_for_nobody() -> None:
    topic = Topic()
    topic.told("b", 0, 2, 0)
    topic.told("a", 5, 9, 10)
    assert topic.rows(10) == []
    assert topic.rows(10, last=True) == [("a", 2, 5, UNREPORTED), ("a", 5, 9, "caught_up")]


def test_a_partition_that_begins_again_leaves_no_gap() -> None:
    """Its destination topic was made anew."""
    topic = Topic()
    topic.told("a", 0, 50, 0)
    topic.told("a", 0, 5, 10)
    topic.told("a", 5, 60, 20)
    assert [state for *_, state in topic.rows(20)] == ["caught_up"] * 3
