"""How much there is to copy, and how long that takes: as exact as what is known allows, and saying so."""

from typing import Any

import pytest

from strait.model import TopicPartition
from strait.planning.review.backfill import Backfill, Reports, TopicBackfill, backfill_of, starts_at
from strait.planning.topics.start_offsets import AtOffset, AtTime, Range, StartAt
from strait.state.report_records import PartitionReport
from support.model.reports import plain_report
from unit.planning.test_plan import cluster, link, propose

ORDERS = TopicPartition("orders", 0)


def heard(*rows: tuple[int, int, int], bytes_per_second: float = 0.0) -> Reports:
    """Rows of records, bytes and lag."""
    partitions = tuple(
        PartitionReport(
            topic="other",
            partition=number,
            state="copying",
            position=0,
            end=lag,
            lag_records=lag,
            lag_seconds=0.0,
            records=records,
            bytes=size,
        )
        for number, (records, size, lag) in enumerate(rows)
    )
    return {("default", 0): (plain_report(partitions=partitions, bytes_per_second=bytes_per_second),)}


def only(begin: StartAt, held: Range, sizes: Any = (), reports: Reports | None = None) -> TopicBackfill:
    (topic,) = backfill_of(link(), {ORDERS: begin}, {ORDERS: held}, dict(sizes), reports or {}).topics
    return topic


@pytest.mark.parametrize(
    ("begin", "records", "size"),
    [
        ("earliest", 400, 40_000),
        ("latest", 0, 0),
        (AtOffset(400), 100, 10_000),
        (AtTime(5), 200, 20_000),
    ],
)
def test_the_brokers_tell_how_large_it_is_and_the_start_how_much_of_it(begin: StartAt, records: int, size: int) -> None:
    found = only(begin, Range(100, 500, 300), {ORDERS: 40_000})
    assert (found.records, found.bytes, found.bytes_from) == (records, size, "log")


def test_where_they_do_not_the_link_s_average_is_taken_and_else_a_guess() -> None:
    assert only("earliest", Range(0, 10), reports=heard((100, 5_000, 0))).bytes == 500
    guessed = only("earliest", Range(0, 10))
    assert (guessed.bytes, guessed.bytes_from) == (10_000, "guess")


def test_the_least_certain_part_says_how_certain_the_topic_is() -> None:
    begins: dict[TopicPartition, StartAt] = {ORDERS: "earliest", TopicPartition("orders", 1): "earliest"}
    ranges = dict.fromkeys(begins, Range(0, 10))
    (topic,) = backfill_of(link(), begins, ranges, {ORDERS: 1_000}, {}).topics
    assert (topic.partitions, topic.records, topic.bytes_from) == (2, 20, "guess")


def test_a_partition_of_which_nothing_is_known_is_left_out() -> None:
    assert backfill_of(link(), {ORDERS: "earliest"}, {}, {}, {}).topics == ()
    assert backfill_of(link(), {ORDERS: AtOffset(50)}, {ORDERS: Range(0, 10)}, {}, {}).topics == ()


def test_topics_that_are_yet_to_be_created_count_as_well() -> None:
    settings = link(start="latest")
    proposal = propose(settings, cluster("a", {"orders": 2, "clicks": 1}), cluster("b", {"clicks": 1}))
    assert starts_at(settings, proposal) == {
        ORDERS: "latest",
        TopicPartition("orders", 1): "latest",
        TopicPartition("clicks", 0): "latest",
    }


def lines(rate: float, lag: int, limit: int | None = None) -> list[str]:
    settings = link(topics={"regex": [".*"], "budget": {"bytes_per_second": limit}})
    held, size = Range(0, 3_600_000), {ORDERS: 3_600_000_000}
    return list(
        backfill_of(
            settings, {ORDERS: "earliest"}, {ORDERS: held}, size, heard((0, 0, lag), bytes_per_second=rate)
        ).lines()
    )


@pytest.mark.parametrize(
    ("rate", "lag", "limit", "said"),
    [
        (500_000.0, 10, None, "about 2 h at 500 kB/s, what it copies now"),
        (500_000.0, 10, 250_000, "about 4 h at 250 kB/s, its budget"),
        (500_000.0, 0, 1_000_000, "about 1 h at 1.0 MB/s, its budget"),
        (500_000.0, 0, None, "duration unknown: no backlog has been measured on this link yet"),
    ],
)
def test_how_long_it_takes_is_told_by_what_holds_it_back(rate: float, lag: int, limit: int | None, said: str) -> None:
    topic, total = lines(rate, lag, limit)
    assert topic == "backfill  orders: 3,600,000 records, 3.6 GB"
    assert total == f"backfill  in all 3,600,000 records, 3.6 GB, {said}"


def test_nothing_to_copy_is_not_worth_a_line() -> None:
    assert list(Backfill((TopicBackfill("orders", 1, 0, 0, "log"),)).lines()) == []


def test_how_long_it_takes_is_told_by_the_lanes_own_budget_and_hours() -> None:
    own = {"bytes_per_second": 500_000, "hours": ["22:00-23:00"], "timezone": "UTC"}
    for records, hours in ((1, "1 d 3 h"), (10**9, "2 h")):  # only what the lane copies waits for its hours
        settings = link(
            topics={"regex": [".*"], "budget": {"bytes_per_second": 500_000, "backfill": own}},
            groups={"default": {}, "backfill": {}},
            backfill={"behind_records": records},
        )
        held, size = {ORDERS: Range(0, 3_600_000)}, {ORDERS: 3_600_000_000}
        found = backfill_of(settings, {ORDERS: "earliest"}, held, size, {}, now_ms=20 * 3_600_000)
        only = ", copied only 22:00-23:00 UTC" if records == 1 else ""
        assert list(found.lines())[1].endswith(f"about {hours} at 500 kB/s, its budget{only}")


@pytest.mark.parametrize(("end", "records"), [(60, 50), (500, 90), (10, 0), (5, 0)])
def test_records_after_the_end_of_the_copy_are_no_backlog(end: int, records: int) -> None:
    begins, held = {ORDERS: AtOffset(10)}, {ORDERS: Range(0, 100)}
    (topic,) = backfill_of(link(), begins, held, {ORDERS: 1_000}, {}, ends={ORDERS: end}).topics
    assert (topic.records, topic.bytes) == (records, 10 * records)
