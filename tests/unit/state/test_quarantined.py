"""Reading the quarantine topic: each record once, whoever kept it aside, until somebody settles it."""

from strait.reasons import Reason
from strait.state.quarantine_log import Chosen, Contents, Entry, original_headers, settlement
from strait.state.quarantine_records import QuarantinedRecord, headers_of
from strait.wire.records import Record

OWN = [("strait.topic", b"of its own"), ("h", None)]


def aside(
    offset: int = 5, topic: str = "orders", value: bytes | None = b"v", detail: str = "too old"
) -> QuarantinedRecord:
    record = Record(offset=offset, timestamp_ms=77, key=b"k", value=value, headers=tuple(OWN))
    return QuarantinedRecord(topic, 2, "dr.orders", record, Reason.BATCH_REFUSED, detail)


def contents(*records: QuarantinedRecord | list[tuple[str, bytes | None]], keeps_settled: bool = True) -> Contents:
    found = Contents(keeps_settled=keeps_settled)
    for at, record in enumerate(records):
        if isinstance(record, QuarantinedRecord):
            found.apply(at, record.record.key, record.record.value, headers_of(record))
        else:
            found.apply(at, None, None, record)
    return found


def test_what_is_written_is_read_and_its_own_headers_are_told_from_ours() -> None:
    (entry,) = contents(aside()).entries()
    assert entry._replace(quarantined_at_ms=0) == Entry(
        0, "orders", 2, 5, 77, "dr.orders", "batch_refused", "too old", 0, 2
    )
    assert original_headers(headers_of(aside())) == OWN


def test_a_record_that_two_slots_kept_aside_is_one() -> None:
    found = contents(aside(5), aside(6), aside(5, detail="said otherwise"), aside(5, value=b"another"))
    assert [(entry.at, entry.offset) for entry in found.entries()] == [(0, 5), (1, 6), (3, 5)]


def test_a_settlement_settles_every_copy_even_one_that_comes_later() -> None:
    found = contents(aside(5), aside(6), aside(5), settlement(2, "replayed", 1), settlement(1, "dropped", 1), aside(5))
    assert [(entry.offset, entry.settled) for entry in found.entries()] == [(5, "replayed"), (6, "dropped")]


def test_who_needs_only_what_is_not_settled_keeps_nothing_of_the_rest() -> None:
    found = contents(
        *(aside(5), aside(6), aside(5), settlement(2, "replayed", 1), settlement(1, "dropped", 1), aside(5), aside(7)),
        keeps_settled=False,
    )
    assert [(entry.at, entry.offset, entry.settled) for entry in found.entries()] == [(6, 7, "")]


def test_readers_of_the_newest_part_know_from_a_settlement_before_which_all_are_resolved() -> None:
    """Its copy of an entry that was written before that part is resolved with it."""
    settled = settlement(0, "dropped", 1, open_from=3)
    found = Contents(keeps_settled=False)
    for at, record in ((2, aside(5)), (3, aside(6))):
        found.apply(at, record.record.key, record.record.value, headers_of(record))
    assert [entry.at for entry in found.entries()] == [2, 3]
    found.apply(4, None, None, settled)
    assert ([entry.at for entry in found.entries()], found.open_from) == ([3], 3)
    found.apply(5, None, None, settlement(3, "replayed", 1)[1:])
    assert (found.entries(), found.unknown) == ([], {}), "of an earlier version"


def test_a_null_and_an_empty_value_are_two_records() -> None:
    assert len(contents(aside(value=None), aside(value=b"")).entries()) == 2


def test_what_is_not_of_our_making_is_said_and_hides_nothing() -> None:
    broken = [(name, b"x" if name == "strait.offset" else value) for name, value in headers_of(aside())]
    unknown = [(name, b"lost" if name == "strait.outcome" else value) for name, value in settlement(0, "dropped", 1)]
    found = contents(aside(), [], broken, unknown, settlement(99, "dropped", 1), settlement(0, "dropped", 1)[:2])
    assert [entry.settled for entry in found.entries()] == [""]
    assert sorted(found.unknown) == [1, 2, 3, 5]


def test_entries_are_chosen_by_topic_partition_and_reason() -> None:
    (entry,) = contents(aside()).entries()
    assert Chosen().includes(entry)
    assert Chosen("orders", 2, "batch_refused").includes(entry)
    assert not Chosen(topic="clicks").includes(entry)
    assert not Chosen(partition=0).includes(entry)
    assert not Chosen(reason="batch_too_large").includes(entry)
