"""Which actions of an operator a link needs, and that everything else needs none."""

from typing import Any

import pytest

from strait.config.links import Link
from strait.errors import ConfigError
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.history.lag_growth import AGES_SECONDS, LATE_SECONDS, Growth, growing, late
from strait.planning.history.overrun import WARN_SECONDS
from strait.planning.plan.planner import survey
from strait.planning.status.needs import ONLY_AN_OPERATOR, Circumstances, Dying, Need, needs_of
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status
from strait.planning.topics.emptied import check_not_emptied
from strait.reasons import Kind, Reason
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Plan, PlannedTopic
from support.model.reports import plain_report


def row(partition: int | None = 0, state: str = "copying", reason: str = "", **fields: Any) -> PartitionStatus:
    topic = fields.pop("topic", "orders")
    return PartitionStatus(topic, partition, topic, 0, state, reason, fields.pop("detail", ""), **fields)


def needs(*rows: PartitionStatus, stopped: bool = False, **known: Any) -> list[Need]:
    return list(needs_of([Status("l", "default", 3, stopped, (), rows)], Circumstances(**known)))


def test_a_link_that_copies_needs_nobody():
    assert needs(row(0), row(1, "caught_up"), row(2, "starting")) == []


@pytest.mark.parametrize(
    "reason", [one for one in Reason if one.kind is not Kind.NEEDS_DECISION and one not in ONLY_AN_OPERATOR]
)
def test_what_retries_or_is_meant_needs_nobody(reason):
    assert needs(row(0, "waiting", str(reason))) == []


@pytest.mark.parametrize(
    "reason", [one for one in Reason if one.kind is Kind.NEEDS_DECISION or one in ONLY_AN_OPERATOR]
)
def test_what_ends_only_after_an_operator_has_acted_needs_one(reason):
    assert [need.id for need in needs(row(0, "waiting", str(reason)))] == [f"halted orders {reason}"]


def test_partitions_that_wait_for_a_decision_are_one_line_for_each_topic_and_reason():
    halted = [row(n, "waiting", "foreign_writer", detail="another producer wrote") for n in (0, 1, 3)]
    found = needs(*halted, row(0, "waiting", "batch_too_large", topic="clicks", detail="too large"), row(2))
    assert [need.id for need in found] == ["halted clicks batch_too_large", "halted orders foreign_writer"]
    assert found[1].text == "topic orders 0-1, 3: foreign_writer: another producer wrote"
    assert found[1].remedy and found[1].line.startswith(found[1].text)


def test_one_more_partition_of_a_topic_is_the_same_incident():
    first = needs(row(0, "waiting", "foreign_writer"))
    assert [need.id for need in needs(row(0, "waiting", "foreign_writer"), row(1, "waiting", "foreign_writer"))] == [
        first[0].id
    ]


def test_a_loss_that_is_near_needs_one_unless_the_partition_catches_up_before():
    assert needs(row(seconds_to_loss=WARN_SECONDS)) == []
    (need,) = needs(row(0, seconds_to_loss=WARN_SECONDS - 1), row(1, seconds_to_loss=600.0))
    assert need.text == "topic orders 0-1: retention deletes unreplicated records in 10 min"
    assert needs(row(seconds_to_loss=600.0, seconds_to_catch_up=599.0)) == []
    assert needs(row(seconds_to_loss=600.0, seconds_to_catch_up=601.0))


def test_a_lag_that_only_grows_needs_one_unless_somebody_paused_it():
    grows = {TopicPartition("orders", 0): Growth(1_000, 9_000, 700.0)}
    (need,) = needs(row(0, reason="throttled", detail="the link may write 5 bytes/s"), growing=grows)
    assert need.id == "lag orders"
    assert "the lag only grows: 1,000 to 9,000 records in half an hour, throttled: the link may write" in need.text
    assert needs(row(0, "waiting", "paused"), growing=grows) == []
    assert [need.kind for need in needs(row(0, "waiting", "foreign_writer"), growing=grows)] == ["halted"]


def test_a_name_in_include_that_the_source_lacks_needs_one_and_a_topic_of_a_pattern_does_not():
    missing = row(None, "waiting", "source_missing", topic="odrers", detail="cluster a has no topic 'odrers'")
    assert [need.id for need in needs(missing, include=("odrers", "orders"))] == ["source_missing odrers"]
    assert needs(missing) == []


def test_a_link_that_selects_nothing_needs_one_unless_that_is_meant_or_it_is_stopped():
    assert [need.kind for need in needs(may_be_empty=False)] == ["selection"]
    assert needs(may_be_empty=True) == needs(may_be_empty=False, stopped=True) == []
    assert needs(row(0), may_be_empty=False) == []


def test_an_application_that_exits_again_and_again_comes_first():
    dying = {"strait-l-default": Dying("exited 3 times within an hour", "exit code 1 (pid 77)")}
    found = needs(row(0, "waiting", "foreign_writer"), dying=dying)
    assert [need.kind for need in found] == ["application", "halted"]
    assert found[0].text == "application strait-l-default exited 3 times within an hour"
    later = needs(dying={"strait-l-default": Dying("exited 4 times within an hour", "exit code 1 (pid 99)")})
    assert [need.id for need in later] == [found[0].id], "the same incident"
    other = needs(dying={"strait-l-default": Dying("exited 5 times within an hour", "out of memory")})
    assert other[0].id != found[0].id


def at(age: float, lag: int, seconds: float = LATE_SECONDS, position: int = 0) -> dict[tuple[str, int], Any]:
    partition = PartitionReport(
        **{"topic": "orders", "partition": 0, "state": "copying", "position": position, "end": position + lag}
        | {"lag_records": lag, "lag_seconds": seconds, "records": 0, "bytes": 0}
    )
    report: Report = plain_report(at_ms=10_000_000 - int(age * 1000), partitions=(partition,))
    return {("default", 0): (report,)}


def grows(lags: tuple[int, ...], *, advances: bool = True, seconds: float = LATE_SECONDS) -> bool:
    earlier = [
        at(age, lag, position=n * advances) for n, (age, lag) in enumerate(zip(AGES_SECONDS, lags, strict=False))
    ]
    now = at(0, lags[-1], seconds, position=9 * advances)
    assert late("default", now) or not growing("default", earlier, now), "only then earlier reports are read"
    return bool(growing("default", earlier, now))


def test_a_lag_grows_if_each_report_of_half_an_hour_shows_more():
    assert grows((1, 2, 3, 4))
    assert not grows((1, 3, 2, 4))
    assert not grows((1, 2, 2, 4))
    assert not grows((4, 3, 2, 1))


def test_a_few_records_in_flight_are_no_growing_lag():
    assert not grows((1, 2, 3, 4), seconds=LATE_SECONDS - 1)
    assert not grows((1, 2, 3, 4), seconds=0.0), "how late it is, is unknown, and it advances"
    assert grows((1, 2, 3, 4), seconds=0.0, advances=False), "nothing was copied since the slot's start"


def test_a_link_that_is_younger_than_half_an_hour_has_no_growing_lag():
    first = at(60, 1)
    assert growing("default", [first, first, first], at(0, 5)) == {}
    assert growing("default", [{}, {}, {}], at(0, 5)) == {}
    assert growing("default", [], at(0, 5)) == {}


def surveyed(topics: dict[str, Any], planned: tuple[str, ...], source: tuple[str, ...] = ("orders", "others")) -> None:
    facts = {topic: TopicFacts(topic, f"id-{topic}", 1) for topic in source}
    clusters = ClusterFacts("a", "1", facts), ClusterFacts("b", "2", {})
    link = Link.model_validate({"source": "a", "destination": "b", "topics": topics}, strict=False)
    of_plan = tuple(
        PlannedTopic(source=t, destination=t, source_id="s", destination_id="d", slots=(0,)) for t in planned
    )
    plan = Plan(link="l", group="default", version=3, producer_id=1, slots=1, topics=of_plan, published_at_ms=1)
    found = survey("l", link, *clusters, {}, {}, [plan])
    check_not_emptied("l", link, found.selection, [plan])


@pytest.mark.parametrize(
    "topics", [{}, {"include": ["odrers"]}, {"regex": ["odr.*"]}, {"regex": [".*"], "exclude": [".*"]}]
)
def test_settings_that_would_empty_a_link_are_an_error_unless_they_are_meant(topics):
    with pytest.raises(
        ConfigError, match=r"links.l.topics: selects no topic, so topic orders, its only one, would no long"
    ):
        surveyed(topics, ("orders",))
    surveyed(topics | {"allow_empty": True}, ("orders",))
    surveyed(topics, ())


def test_other_topics_or_a_source_that_lost_its_topics_are_no_empty_selection():
    surveyed({"include": ["others"]}, ("orders",))
    surveyed({"include": ["orders"]}, ("orders",), source=())
