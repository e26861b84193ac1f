"""The last reports about each partition, found in a day of them: the same as if all were decoded, and few are."""

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from strait.config.route_names import route_name
from strait.control import report_history
from strait.control.failover.last_words import read_last_words
from strait.model import TopicPartition
from strait.planning.recovery_point import LastWords, LastWordsRead
from strait.state.codec import decode_report, encode
from strait.state.group_sync_records import GroupSyncReport
from strait.state.report_changes import ReportChanges
from strait.state.report_records import PartitionReport
from strait.state.schema import Plan, PlannedTopic
from strait.waiting import unix_ms

DAY_SECONDS = 86_400


def plans(source: str, destination: str) -> dict[str, Plan]:
    ids = {"source_id": "i", "destination_id": "j"}
    topic = PlannedTopic(source=source, destination=destination, slots=(0,) * 12, **ids)
    made = Plan(link="l", group="default", version=1, producer_id=1, slots=1, topics=(topic,), published_at_ms=0)
    return {"default": made}


PLANS = plans("t.1", "t.1")

Written = tuple[int, bytes, bytes]


def row(partition: int, at_ms: int, state: str, position: int, end: int, topic: str = "t.1") -> PartitionReport:
    figures: dict[str, Any] = dict.fromkeys(("lag_records", "lag_seconds", "records", "bytes"), 0)
    reason = "paused" if state == "waiting" else None
    return PartitionReport(
        topic=topic, partition=partition, state=state, reason=reason, position=position, end=end, at_ms=at_ms, **figures
    )  # fmt: skip


def written(at_ms: int, *rows: PartitionReport) -> Written:
    changes = ReportChanges(group="default", slot=0, application="x", at_ms=at_ms, started_at_ms=0, partitions=rows)
    return (at_ms, *encode(changes))


def groups(at_ms: int) -> Written:
    figures: dict[str, Any] = dict.fromkeys(("interval_seconds", "groups", "in_sync", "committed", "rereads"), 0)
    report = GroupSyncReport(link="l", application="x", at_ms=at_ms, seconds=0.0, offsets={}, **figures)
    return (at_ms, *encode(report))


def last_words(
    topic: Sequence[Written], *, sync: bool = False, planned: Mapping[str, Plan] = PLANS
) -> tuple[LastWords, GroupSyncReport | None, int]:
    """As a failover reads them; and how many records were decoded."""
    decoded = []

    def read_topic(*_: Any, since_ms: int) -> Iterator[Any]:
        for at_ms, key, value in topic:
            if at_ms >= since_ms:
                at = 0, at_ms
                yield SimpleNamespace(key=lambda k=key: k, value=lambda v=value: v, timestamp=lambda at=at: at)

    def decode(key: bytes, value: bytes) -> Any:
        decoded.append(value)
        return decode_report(key, value)

    settings = SimpleNamespace(consumer_groups=SimpleNamespace(sync=sync))
    link: Any = SimpleNamespace(destination=({}, "b"), name="l", settings=settings)
    with (
        patch.object(report_history, "read_topic", read_topic),
        patch.object(report_history, "decode_report", decode),
    ):
        return *read_last_words(link, planned), len(decoded)


OFFSETS = st.integers(-1, 99)
ROWS = st.tuples(st.integers(0, 11), st.sampled_from(["copying", "caught_up", "waiting", "starting"]), OFFSETS, OFFSETS)


@given(st.lists(st.tuples(st.integers(0, DAY_SECONDS - 60), st.lists(ROWS, max_size=5)), max_size=40))
def test_they_are_those_of_the_whole_day(history: list[tuple[int, list[tuple[int, str, int, int]]]]) -> None:
    now_ms = unix_ms()
    topic = [
        written(now_ms - ago * 1000, *(row(one[0], now_ms - ago * 1000, *one[1:]) for one in rows))
        for ago, rows in sorted(history, reverse=True)
    ]
    every = LastWordsRead(PLANS)
    for _, key, value in topic:
        every.take(decode_report(key, value))
    found, _, _ = last_words(topic)
    for place, word in every.words.items():
        assert found[place]._replace(seen_ms=0, behind_seconds=0) == word._replace(seen_ms=0, behind_seconds=0)
        assert found[place].seen_ms == word.seen_ms or word.waiting


def test_a_partition_that_nobody_reported_has_few_records_decoded() -> None:
    now_ms = unix_ms()
    topic = [
        written(at_ms, *(row(number, at_ms, "caught_up", at_ms, at_ms) for number in range(11)))
        for at_ms in range(now_ms - (DAY_SECONDS - 60) * 1000, now_ms, 10_000)
    ]
    heard, unheard = TopicPartition("t.1", 10), TopicPartition("t.1", 11)
    with patch("strait.control.failover.last_words._FEW", 12):
        found, _, decoded = last_words(topic)
    assert (found[heard].known, found[unheard].known) == (True, False)
    assert decoded <= 20, "partition 1 or 10 was taken for 11"


def test_those_of_a_route_are_found_under_its_name() -> None:
    now_ms, route = unix_ms(), route_name("customers", "customers_" + "x" * 239)
    rows = [row(number, now_ms, "caught_up", 7, 7, topic=route) for number in range(12)]
    found, _, _ = last_words([written(now_ms - 1000, *rows)], planned=plans(route, "customers_big"))
    assert all(found[TopicPartition(route, number)].known for number in range(12))


def test_the_newest_report_about_groups_is_found_however_old() -> None:
    now_ms = unix_ms()
    of_partitions = written(now_ms - 1000, *(row(number, now_ms, "copying", 1, 1) for number in range(12)))
    topic = [groups(now_ms - 9_000_000), groups(now_ms - 8_000_000), of_partitions]
    _, found, decoded = last_words(topic, sync=True)
    assert found is not None
    assert found.at_ms == now_ms - 8_000_000
    assert decoded == 3, "the newest of partitions, and both of groups in the older range"
    assert last_words(topic)[1:] == (None, 1)
