"""Moments on a source, and which partitions are behind one."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.up_to import UpTo, behind, by_topic, progress_text, topics_to_reach

ORDERS = TopicPartition("orders", 0)
TWO_PM_MS = 1_795_701_600_000


def row(position: int, partition: int | None = 0, **fields: Any) -> PartitionStatus:
    values = {"state": "copying", "reason": "", "detail": ""} | fields
    return PartitionStatus("orders", partition, "orders", 0, **values, position=position)


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-26T14:00Z",
        "2026-11-26 14:00:00+00:00",
        "2026-11-26T14:00",
        " 2026-11-26T15:00+01:00 ",
        datetime(2026, 11, 26, 14, tzinfo=UTC),
        datetime(2026, 11, 26, 16, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_a_time_is_in_utc_unless_it_says_otherwise(value):
    assert UpTo.parse(value) == UpTo(at_ms=TWO_PM_MS)


def test_offsets_are_by_topic_and_partition_as_json_too():
    found = UpTo(ends={ORDERS: 12, TopicPartition("orders", 10): 0})
    assert UpTo.parse({"orders": {0: 12, "10": 0}}) == UpTo.parse('{"orders": {"0": 12, "10": 0}}') == found


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("None", "'None' is no moment"),
        ("", "'' is no moment"),
        (None, "None is no moment"),
        (5, "5 is no moment"),
        ("{", "is not JSON"),
        ("{}", "names no partition"),
        ({"orders": 5}, "orders: : 5 is no partition with an offset"),
        ({"orders": {"0": -1}}, "orders: 0: -1 is no partition"),
        ({"orders": {"0": True}}, "orders: 0: True is no partition"),
        ({"orders": {"x": 1}}, "orders: x: 1 is no partition"),
        ({"orders": {-1: 1}}, "orders: -1: 1 is no partition"),
    ],
)
def test_what_is_no_moment_is_refused_with_what_is_expected(value, problem):
    with pytest.raises(ConfigError, match="expected `now`, a time such as") as refused:
        UpTo.parse(value)
    assert problem in str(refused.value)


places = st.builds(TopicPartition, st.from_regex(r"[a-z.]{1,9}", fullmatch=True), st.integers(0, 9999))


@given(
    st.one_of(
        st.builds(UpTo),
        st.builds(UpTo, at_ms=st.integers(0, 4_000_000_000_000)),
        st.builds(UpTo, ends=st.dictionaries(places, st.integers(0, 1 << 62), min_size=1, max_size=5)),
    )
)
def test_its_text_is_the_same_moment(moment):
    assert UpTo.parse(moment.as_text()) == moment


@pytest.mark.parametrize(
    ("end", "rows", "left"),
    [
        (5, [row(5)], {}),
        (5, [row(4)], {ORDERS: "copying"}),
        (5, [row(-1, state="starting")], {ORDERS: "starting"}),
        (5, [row(4, state="waiting", reason="paused")], {ORDERS: "paused"}),
        (5, [row(9, state="waiting", reason="paused")], {}),
        (5, [row(9, state="waiting", reason="foreign_writer")], {ORDERS: "foreign_writer"}),
        (5, [row(-1, None, state="waiting", reason="source_denied")], {ORDERS: "source_denied"}),
        (5, [], {ORDERS: "not in its plan"}),
        (0, [], {}),
        (0, [row(-1, state="starting")], {}),
    ],
)
def test_a_partition_is_behind_until_its_position_is_at_the_end_and_while_an_operator_is_needed(end, rows, left):
    assert behind({ORDERS: end}, rows) == left


def test_progress_counts_what_is_known_and_names_the_first():
    ends = {TopicPartition("orders", number): 10 for number in range(3)}
    rows = [row(10), row(4, 1), row(9, 2)]
    assert progress_text(ends, rows) == (
        "2 of 3 partitions are behind, 7 offsets behind (2 copying); the first is orders-1"
    )
    assert progress_text(ends, rows[:2]) == (
        "2 of 3 partitions are behind (1 copying, 1 not in its plan); the first is orders-1"
    )
    assert progress_text({ORDERS: 10}, rows) == ""


def test_topics_are_those_of_the_plan_unless_some_are_asked_for_which_the_source_must_have():
    source = ["orders", "payments", "others"]
    assert topics_to_reach("l", [], source, ["payments", "orders"]) == ["orders", "payments"]
    assert topics_to_reach("l", ["others"], source, ["orders"]) == ["others"]
    with pytest.raises(ConfigError, match=r"link l: its source has no topic 'ordrs'.*orders"):
        topics_to_reach("l", ["ordrs", "payments"], source, [])


def test_values_of_partitions_are_json_by_topic():
    assert by_topic({TopicPartition("b", 1): None, TopicPartition("a", 0): 2, TopicPartition("b", 0): 3}) == {
        "a": {"0": 2},
        "b": {"0": 3, "1": None},
    }
