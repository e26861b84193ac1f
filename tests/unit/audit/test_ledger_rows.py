"""Which rows of the ledger describe the destination, and what none describes."""

import random

from strait.audit.ledger_rows import NUMBERS, LedgerRow, ledger_chunks, provable, row_of, with_rows
from strait.audit.plan import AuditedPartition, OnRecord
from strait.config.audit import AuditRequest

WHOLE = AuditRequest(relation="ledger")


def row(first, end, *, at=0, ended=None, digest=1, size=10):
    return LedgerRow(first, end, first + at, end + at, digest, size, end if ended is None else ended)


def partition(start=0, end=100, **changed):
    return AuditedPartition(topic="t", partition=0, copy_topic="c", copy_start=start, copy_end=end, **changed)


def test_a_row_covers_the_records_since_its_acknowledgements_were_lost():
    def of(*numbers):
        return row_of(dict(zip(NUMBERS, numbers, strict=True)))

    assert of(10, 30, 110, 130, 5, 10, 9, 1) == LedgerRow(10, 30, 110, 130, 5, 9, 1)
    assert of(10, 30, 110, 130, 5, 20, 9, 1) == LedgerRow(20, 30, 110, 130, 5, 9, 1)
    assert of(10, 30, 110, 130, 5, 4, 9, 1) == LedgerRow(4, 30, 104, 130, 5, 9, 1)
    assert of(10, 30, 110, 130, -1, -1, 9, 1) is None
    assert of(-1, 30, -1, 130, 5, 0, 9, 1) is None


def test_rows_come_in_the_order_of_their_records_each_once():
    rows = [row(0, 10), row(10, 20), row(20, 30)]
    for seed in range(10):
        assert provable(random.Random(seed).sample([*rows, *rows], 6)) == rows


def test_a_later_row_supersedes_those_with_records_that_were_written_again():
    rows = [row(0, 10), row(10, 20), row(20, 30), row(15, 25, ended=99)]
    assert provable(rows) == [row(0, 10), row(15, 25, ended=99)]


def test_rows_of_offsets_that_the_destination_lost_prove_nothing():
    assert provable([row(0, 10), row(10, 20), row(20, 30)], [(12, 13)]) == [row(0, 10), row(20, 30)]


def test_what_no_row_covers_is_unknown_but_not_what_retention_has_cut_or_what_came_after_the_last():
    found = with_rows(partition(start=5), [row(0, 10), row(10, 20), row(30, 40)], 0, WHOLE)
    assert (found.first, found.end, found.deleted, found.unknown, found.tail) == (10, 40, 5, 10, 60)
    found = with_rows(partition(), [row(20, 30)], 0, WHOLE)
    assert (found.first, found.end, found.deleted, found.unknown) == (20, 30, 0, 20)


def test_what_an_audit_has_compared_needs_no_row():
    rows = [row(20, 30), row(40, 50)]
    assert with_rows(partition(), rows, 25, WHOLE).unknown == 10
    assert with_rows(partition(), rows, 35, WHOLE).unknown == 5
    assert with_rows(partition(), rows, 50, WHOLE).unknown == 0


def test_a_partition_without_rows_is_a_problem_unless_it_is_empty():
    assert "no digest" in with_rows(partition(), [], 0, WHOLE).problem
    assert "no digest" in with_rows(partition(start=50), [row(0, 40)], 0, WHOLE).problem
    assert with_rows(partition(start=7, end=7), [], 0, WHOLE).problem == ""


def test_losses_of_the_destination_are_left_out():
    lost = OnRecord(side="destination", first=15, end=16, cause="losses: x")
    found = with_rows(partition(on_record=(lost,)), [row(0, 10), row(10, 20), row(20, 30)], 0, WHOLE)
    assert (found.first, found.end, found.unknown) == (0, 30, 10)


def test_chunks_hold_rows_that_follow_one_another_up_to_a_size():
    rows = [row(0, 10), row(10, 20), row(20, 30), row(40, 50), row(50, 60, ended=1000)]
    one = with_rows(partition(), rows, 0, WHOLE)
    request = AuditRequest(relation="ledger", chunk_bytes=20)
    chunks = ledger_chunks(one, rows, request)
    assert [[(mark.first, mark.end) for mark in chunk.marks] for chunk in chunks] == [
        [(0, 10), (10, 20)],
        [(20, 30)],
        [(40, 50), (50, 60)],
    ]
    assert [(chunk.copy_from, chunk.copy_to) for chunk in chunks] == [(0, 20), (20, 30), (40, 60)]
    later = ledger_chunks(one, [*rows, row(60, 70)], request)
    assert later == chunks, "rows that came after the plan are not of this audit"


def test_a_time_chooses_rows_by_the_end_of_their_interval():
    request = AuditRequest(relation="ledger", since_ms=15, until_ms=45)
    one = with_rows(partition(), [row(0, 10), row(10, 20), row(20, 30), row(30, 40), row(40, 50)], 0, request)
    assert (one.first, one.end, one.unknown, one.tail) == (10, 40, 0, 0)
