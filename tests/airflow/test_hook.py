"""Which records the hook reads, and what it commits. `test_own_dags.py` does the same between two real clusters."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from strait.errors import ClusterUnavailable
from strait.model import TopicPartition
from strait_airflow.hook import StraitHook

pytestmark = [pytest.mark.airflow, pytest.mark.core]

Ranges = dict[tuple[str, int], tuple[int, int]]


class Destination:
    """Its consumer groups, and the ranges that were read."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[TopicPartition, int]] = {}
        self.read: Ranges = {}

    def committed(self, group: str) -> dict[TopicPartition, int]:
        return dict(self.groups.get(group, {}))

    def read_ranges(self, _: Any, __: str, ranges: Ranges) -> list[Any]:
        self.read = {tuple(place): pair for place, pair in ranges.items() if pair[0] < pair[1]}
        return [None] * sum(end - first for first, end in self.read.values())

    def commit(self, _: Any, __: str, group: str, ends: Mapping[TopicPartition, int]) -> None:
        self.groups.setdefault(group, {}).update(ends)


@pytest.fixture
def destination(monkeypatch: pytest.MonkeyPatch) -> Destination:
    found = Destination()
    link = SimpleNamespace(destination=({}, "b"), admin=lambda _: found)
    monkeypatch.setattr(StraitHook, "get_conn", lambda _: link)
    monkeypatch.setattr("strait.kafka.reading.read_ranges", found.read_ranges)
    monkeypatch.setattr("strait_airflow.hook._commit", found.commit)
    return found


def reached(**ends: int | None) -> dict[str, Any]:
    return {"destination_ends": {"t": {name[1:]: end for name, end in ends.items()}}}


def test_a_moment_is_committed_only_when_the_work_is_done(destination):
    hook = StraitHook("shop")
    for _ in range(2):  # the first run has failed after it had read everything
        assert len(list(hook.records("batch", reached(p0=7, p1=None)))) == 7
    hook.commit("batch", reached(p0=7, p1=None))
    assert destination.groups == {"batch": {("t", 0): 7}}, "partition 1 is left to a later run"
    assert len(list(hook.records("batch", reached(p0=9, p1=2)))) == 4
    assert destination.read == {("t", 0): (7, 9), ("t", 1): (0, 2)}


def test_an_earlier_moment_takes_no_offset_back(destination):
    hook = StraitHook("shop")
    for ends in (reached(p0=9, p1=0), reached(p0=7, p1=1)):
        hook.commit("batch", ends)
    assert destination.groups == {"batch": {("t", 0): 9, ("t", 1): 1}}


def hour(source: Any, there: Any, *, created_again: bool = False) -> dict[str, Any]:
    return {
        "link": "shop",
        "hour": "2026-01-01T14:00:00",
        "topic": "orders",
        "destination_topic": "dr.orders",
        "created_again": created_again,
        "source": {"3": source},
        "destination": {"3": there},
    }


@pytest.mark.parametrize(
    ("facts", "records"),
    [
        (hour([5, 9], [15, 19]), 4),
        (hour([5, 5], [15, 15]), 0),
        (hour([5, 5], [15, 16]), 1),  # an earlier end may have been inexact, and too early
        (hour([5, 5], [None, None]), 0),
        (hour([5, 5], [None, 15]), 0),
        (hour([0, 9], [None, 12], created_again=True), 12),
    ],
)
def test_an_hour_is_read_from_its_first_record_to_its_last(destination, facts, records):
    assert len(list(StraitHook("shop").hour_records(facts))) == records


@pytest.mark.parametrize(
    "facts",
    [
        hour([5, 9], [15, None]),
        hour([5, 9], [None, 19]),
        hour([5, 9], [None, None]),
        hour([0, 9], [None, None], created_again=True),
    ],
)
def test_an_hour_with_records_at_unknown_offsets_fails_rather_than_skip_them_or_read_others(destination, facts):
    first, last = facts["source"]["3"]
    with pytest.raises(AirflowFailException) as raised:
        list(StraitHook("shop").hour_records(facts))
    assert str(raised.value) == (
        "link shop: hour 2026-01-01T14:00:00 of topic orders: the destination offsets of partition 3 are unknown (process "
        f"offsets {first} to {last - 1} of partition 3 of the source topic instead, then mark this task as success)"
    )
    assert destination.read == {}


def test_a_group_whose_offsets_cannot_be_read_is_no_reason_to_commit(destination, monkeypatch):
    def away(_: str) -> Any:
        raise ClusterUnavailable("b", "away")

    monkeypatch.setattr(destination, "committed", away)
    with pytest.raises(Exception, match="cluster b: away"):
        StraitHook("shop").commit("batch", reached(p0=7))
    assert destination.groups == {}
