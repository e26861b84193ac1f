"""Exported records say where they come from, and hold all that they were."""

import json

from strait.state.tail_records import Origin, TailRecord, as_line, origin_headers, origin_of, summary

RECORD = TailRecord(
    "orders", 3, 17, 1_700_000_000_000, "key é".encode(), b"\xff\x00", (("own", b"\xfe"), ("null", None))
)


def test_a_line_has_every_byte_of_a_record() -> None:
    assert json.loads(as_line(RECORD)) == {
        "topic": "orders",
        "partition": 3,
        "offset": 17,
        "timestamp_ms": 1_700_000_000_000,
        "key": "key é",
        "value_base64": "/wA=",
        "headers": [{"name": "own", "value_base64": "/g=="}, {"name": "null", "value": None}],
    }
    assert as_line(RECORD).count("\n") == as_line(RECORD._replace(value=b"two\nlines")).count("\n") == 1


def test_a_summary_has_no_value() -> None:
    assert set(summary(RECORD)) == {"topic", "partition", "offset", "timestamp_ms", "key"}
    assert RECORD.bytes == len("key é".encode()) + 2 + len("own") + 1 + len("null")


def test_added_headers_tell_where_a_record_comes_from() -> None:
    headers = origin_headers(RECORD, "a-to-b")
    assert headers[:2] == list(RECORD.headers)
    assert origin_of(headers) == Origin("a-to-b", "orders", 3, 17, 1_700_000_000_000)


def test_a_record_that_was_exported_before_has_its_newest_origin() -> None:
    """It may have been copied back from the topic of another export."""
    again = RECORD._replace(topic="orders.tail", offset=1, headers=tuple(origin_headers(RECORD, "a-to-b")))
    assert origin_of(origin_headers(again, "b-to-c")) == Origin("b-to-c", "orders.tail", 3, 1, RECORD.timestamp_ms)


def test_others_records_have_no_origin() -> None:
    headers = origin_headers(RECORD, "a-to-b")
    assert origin_of(()) is None
    assert origin_of(RECORD.headers) is None
    assert origin_of([*headers, ("more", b"")]) is None
    assert origin_of([*headers[:-1], ("strait.timestamp_ms", b"soon")]) is None
    assert origin_of([*headers[:-1], ("strait.timestamp_ms", b"\xff")]) is None
