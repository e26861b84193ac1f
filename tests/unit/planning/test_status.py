"""What each partition does and why, from the plan and what its slots say."""

from typing import Any

import pytest

from strait.cli.wait import not_caught_up
from strait.control.link_status import LinkStatus
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.planning.history.lag_growth import Growth
from strait.planning.history.pace import Pace
from strait.planning.status.needs import Circumstances, needs_of
from strait.planning.status.notes import with_deleted, with_quarantined
from strait.planning.status.rows import SILENT_MS, PartitionStatus, Rows
from strait.planning.status.status import Opening, Status, status_of
from strait.planning.status.summary import summary_of
from strait.planning.status.topics import by_topic
from strait.planning.status.up_to import behind
from strait.planning.status.words import FINISHED, STATES, of_partition, of_slot
from strait.planning.topics.kept_less import RECORDED_EVERY_MS
from strait.state.report_changes import FailureReport
from strait.state.report_records import HeartbeatReport, PartitionReport, Report
from strait.state.schema import Loss, Plan, PlannedBackfill, PlannedTopic, TopicPolicy, Waiting
from support.model.reports import plain_report

NOW_MS = 1_000_000


def plan(*slots: int | None, waiting: tuple[Waiting, ...] = ()) -> Plan:
    topic = PlannedTopic(source="orders", destination="dr.orders", source_id="s", destination_id="d", slots=slots)
    return Plan(
        link="l",
        group="default",
        version=3,
        producer_id=1,
        slots=2,
        topics=(topic,),
        waiting=waiting,
        published_at_ms=1,
    )


def partition(number: int, position: int = 5, **fields: Any) -> PartitionReport:
    return PartitionReport(
        **{"topic": "orders", "partition": number, "state": "copying", "position": position, "end": 9}
        | {"lag_records": 9 - position, "lag_seconds": 0.5, "records": 5, "bytes": 50}
        | fields
    )


def report(slot: int, *partitions: PartitionReport, age_ms: int = 500, application: str = "app") -> Report:
    return plain_report(
        slot=slot,
        application=application,
        at_ms=NOW_MS - age_ms,
        plan_version=3,
        records_per_second=10.0,
        partitions=partitions,
    )


def status(in_force: Plan | None, *reports: Report, topic: str | None = None) -> Status:
    by_slot: dict[tuple[str, int], tuple[Report, ...]] = {}
    for item in reports:
        by_slot[item.group, item.slot] = (*by_slot.get((item.group, item.slot), ()), item)
    return status_of("l", "default", in_force, by_slot, NOW_MS, topic)


def states(found: Status) -> list[tuple[int | None, str, str]]:
    return [(row.partition, row.state, row.reason) for row in found.partitions]


def test_a_partition_is_what_its_slot_says() -> None:
    stuck = partition(1, state="waiting", reason="corrupt_batch", detail="at 7")
    found = status(plan(0, 1), report(0, partition(0)), report(1, stuck))
    assert states(found) == [(0, "copying", ""), (1, "waiting", "corrupt_batch")]
    assert found.lag_records == 8
    assert found.records_per_second == 20.0


def test_a_slot_that_failed_is_silent_for_a_reason() -> None:
    poisoned = FailureReport(
        group="default", slot=0, application="b", at_ms=NOW_MS, failure="ValueError: poisoned", restart_seconds=5.0
    )
    reports = {("default", 0): (report(0, partition(0)),)}
    found = status_of("l", "default", plan(0), reports, NOW_MS, failures={("default", 0): poisoned})
    assert states(found) == [(0, "waiting", "slot_silent")]
    assert found.partitions[0].detail == "slot 0 failed and is started again: ValueError: poisoned"
    assert (found.slots[0].silent, found.slots[0].failure) == (True, "ValueError: poisoned")
    never = status_of("l", "default", plan(0), {}, NOW_MS, failures={("default", 0): poisoned})
    assert "poisoned" in never.partitions[0].detail and never.slots[0].age_ms is None


def test_records_behind_an_open_transaction_are_no_lag_but_nothing_has_caught_up() -> None:
    held = partition(
        0,
        position=9,
        state="waiting",
        reason="open_transaction",
        detail="from offset 9 by producer ID 4",
        held_back_records=5_001,
        held_since_ms=NOW_MS - 180_000,
    )
    found = status(plan(0, 0), report(0, held, partition(1, position=9, state="caught_up")))
    first, other = found.partitions
    assert (first.lag_records, first.held_back_records, first.held_back_seconds) == (0, 5_001, 180.0)
    assert (first.end, first.high_watermark) == (9, 5_010)
    assert first.detail == "5,001 records held back for 3 min: from offset 9 by producer ID 4"
    assert (other.held_back_records, other.held_back_seconds, other.high_watermark) == (0, 0.0, 9)
    assert found.held_back_records == found.as_data()["held_back_records"] == 5_001
    link = LinkStatus("l", "a", "b", (found,), ())
    assert not_caught_up(link) == (
        "1 of 2 partitions have not caught up, 0 records behind, 5,001 held back by open transactions, "
        "waiting: open_transaction"
    )


def test_looking_again_makes_only_those_rows_anew_of_which_something_was_said() -> None:
    """And they say what rows say that were made from nothing."""

    def look(*items: PartitionReport, age_ms: int = 500, stopped: bool = False) -> list[PartitionStatus]:
        arguments = "l", "default", plan(0, 0, 0).model_copy(update={"stopped": stopped})
        reports = {("default", 0): (report(0, *items, age_ms=age_ms),)}
        again = status_of(*arguments, reports, NOW_MS, rows=rows).partitions
        assert again == status_of(*arguments, reports, NOW_MS).partitions
        return list(again)

    rows = Rows()
    done, other, behind = partition(0, 9, state="caught_up"), partition(1, 9, state="caught_up"), partition(2, 5)
    first = look(done, other, behind)
    second = look(done, partition(1, position=8), behind, age_ms=200)
    assert [one is before for one, before in zip(second, first, strict=True)] == [True, False, False]
    assert [row.state for row in look(done, other, behind, age_ms=SILENT_MS + 1)] == ["waiting"] * 3
    assert {row.reason for row in look(done, other, behind, age_ms=SILENT_MS + 1, stopped=True)} == {"link_stopped"}
    assert look(done, other, behind) == first


def test_a_silent_slot_is_a_reason_and_the_last_position_stays_to_be_seen() -> None:
    found = status(plan(0, 1), report(0, partition(0)), report(1, partition(1), age_ms=SILENT_MS + 1))
    assert states(found) == [(0, "copying", ""), (1, "waiting", "slot_silent")]
    silent = found.partitions[1]
    assert silent.position == 5
    assert [slot.silent for slot in found.slots] == [False, True]
    assert (silent.end, silent.lag_records, silent.lag_seconds, silent.records_per_second) == (-1, -1, -1.0, None)
    assert silent.detail == "slot 1 has not reported for 5 s"
    assert (found.lag_records, found.lag_unknown, found.records_per_second) == (4, 1, 10.0)


def test_of_slots_that_do_not_report_nothing_is_known_and_how_long_is_said() -> None:
    found = status(plan(0, 1), report(0, partition(0), age_ms=600_000), report(1, partition(1), age_ms=180_000))
    assert [row.detail for row in found.partitions] == [
        "slot 0 has not reported for 10 min",
        "slot 1 has not reported for 3 min",
    ]
    assert (found.lag_records, found.lag_unknown, found.held_back_records) == (None, 2, None)
    assert (found.records_per_second, found.bytes_per_second) == (None, None)
    summary = summary_of("l", "a", "b", [found], ())
    assert (summary.lag_records, summary.records_per_second, summary.lag_seconds) == (None, None, None)
    assert summary.badge == STATES["silent"]
    link = LinkStatus("l", "a", "b", (found,), ())
    assert not_caught_up(link).startswith("2 of 2 partitions have not caught up, how many records behind is unknown")


def test_the_time_to_a_loss_runs_on_while_a_slot_does_not_report() -> None:
    def foreseen(age_ms: int) -> float | None:
        then = report(0, partition(0, log_start=0), age_ms=age_ms + 100_000)
        now = report(0, partition(0, log_start=1), age_ms=age_ms)
        by_slot, earlier = {("default", 0): (now,)}, {("default", 0): (then,)}
        return status_of("l", "default", plan(0), by_slot, NOW_MS, earlier=earlier).partitions[0].seconds_to_loss

    assert (foreseen(0), foreseen(60_000)) == (400.0, 340.0)


def test_an_application_that_may_still_be_starting_is_no_fault() -> None:
    new = plan(0).model_copy(update={"published_at_ms": NOW_MS - 20_000})
    found = status(new)
    assert found.slots[0].starting
    assert of_slot(found.slots[0]) == STATES["starting"]
    assert found.partitions[0].detail == "slot 0 has not reported yet; its plan is less than 90 s old"
    assert not status(new, report(0, partition(0), age_ms=SILENT_MS + 1)).slots[0].starting
    assert of_slot(status(plan(0)).slots[0]) == STATES["silent"]


def test_partitions_of_a_stopped_link_are_no_trouble() -> None:
    found = status(plan(0).model_copy(update={"stopped": True}))
    assert states(found) == [(0, "waiting", "link_stopped")]
    assert (found.healthy, found.stuck) == (True, {})
    assert summary_of("l", "a", "b", [found], ()).trouble == ""


def test_a_slot_that_was_never_heard_is_silent() -> None:
    found = status(plan(0))
    assert states(found) == [(0, "waiting", "slot_silent")]
    assert found.slots[0].age_ms is None


def test_a_partition_that_no_slot_has_taken_up_yet_is_starting() -> None:
    assert states(status(plan(0, 0), report(0, partition(0)), report(1))) == [(0, "copying", ""), (1, "starting", "")]


def test_a_partition_that_has_just_moved_is_told_by_whoever_saw_it_last() -> None:
    found = status(plan(1), report(0, partition(0, position=7), age_ms=900), report(1, age_ms=100))
    assert found.partitions[0].position == 7


def test_what_is_not_planned_has_the_reason_of_the_plan() -> None:
    waiting = (
        Waiting(topic="orders", partitions=(1,), reason="destination_has_fewer_partitions", detail="1 and 2"),
        Waiting(topic="nothing", reason="source_missing", detail="not there"),
    )
    found = status(plan(0, None, waiting=waiting), report(0, partition(0)), report(1))
    assert states(found) == [
        (None, "waiting", "source_missing"),
        (0, "copying", ""),
        (1, "waiting", "destination_has_fewer_partitions"),
    ]


def test_one_topic_can_be_asked_for() -> None:
    waiting = (Waiting(topic="nothing", reason="source_missing", detail=""),)
    found = status(plan(0, waiting=waiting), topic="nothing")
    assert states(found) == [(None, "waiting", "source_missing")]


def test_a_topic_that_the_plan_does_not_know_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="its plan has no topic 'order'; did you mean 'orders'"):
        status(plan(0), topic="order")


def test_a_loss_is_foreseen_from_reports_of_some_hours_ago() -> None:
    then = report(0, partition(0, log_start=0), age_ms=3_600_000)
    now = report(0, partition(0, position=5, log_start=1))
    found = status_of("l", "default", plan(0), {("default", 0): (now,)}, NOW_MS, earlier={("default", 0): (then,)})
    assert found.partitions[0].log_start == 1
    assert found.partitions[0].seconds_to_loss == pytest.approx(4 * 3_600, rel=0.001)
    assert status(plan(0), now).partitions[0].seconds_to_loss is None


def test_without_a_plan_there_is_nothing_to_say() -> None:
    assert status(None).plan_version == 0


def beating(slot: int, arrived_ago_ms: int | None, trouble: str = "", age_ms: int = 500) -> Report:
    arrived_ms = -1 if arrived_ago_ms is None else NOW_MS - arrived_ago_ms
    latency_ms = None if arrived_ago_ms is None else 12.5
    beat = HeartbeatReport(written_at_ms=NOW_MS, arrived_ms=arrived_ms, latency_ms=latency_ms, trouble=trouble)
    return report(slot, age_ms=age_ms).model_copy(update={"heartbeat": beat})


def test_the_newest_heartbeat_counts_even_of_a_silent_slot() -> None:
    found = status(plan(0, 1), beating(0, 90_000), beating(1, 8_000, age_ms=SILENT_MS + 1)).heartbeat
    assert found is not None
    assert (found.slot, found.heartbeat_age_ms, found.heartbeat_latency_ms) == (1, 8_000, 12.5)


def test_heartbeats_that_cannot_be_written_say_why() -> None:
    found = status(plan(0, 1), beating(0, None, "no right"), beating(1, None, "no right")).heartbeat
    assert found is not None
    assert (found.heartbeat_age_ms, found.heartbeat_trouble) == (None, "no right")
    assert status(plan(0, 1), report(0, partition(0))).heartbeat is None


def test_the_latency_of_a_link_is_that_of_its_slowest_slot_that_is_heard() -> None:
    slow, slower = (
        report(slot, age_ms=age_ms).model_copy(update={"latency_ms_p50": p50, "latency_ms_p99": p50 * 10})
        for slot, age_ms, p50 in ((0, 0, 2.0), (1, SILENT_MS + 1, 9.0))
    )
    found = status(plan(0, 1), slow, slower)
    assert (found.latency_ms_p50, found.latency_ms_p99) == (2.0, 20.0)
    assert status(plan(0, 1)).as_data()["latency_ms_p99"] is None


def test_each_partition_of_a_topic_without_a_destination_has_a_row() -> None:
    waiting = (
        Waiting(topic="new", partitions=(0, 1), reason="destination_missing", detail="no topic"),
        Waiting(topic="gone", reason="source_missing", detail="no topic"),
    )
    found = status(plan(waiting=waiting))
    assert [(row.topic, row.partition, row.reason) for row in found.waiting] == [
        ("gone", None, "source_missing"),
        ("new", 0, "destination_missing"),
        ("new", 1, "destination_missing"),
    ]


def test_a_partition_whose_records_are_kept_aside_says_so_unless_something_is_wrong() -> None:
    stuck = partition(1, state="waiting", reason="corrupt_batch", detail="at 7")
    found = status(plan(0, 0, 1), report(0, partition(0), stuck), report(1, partition(2)))
    kept = {TopicPartition("orders", 0): 1200, TopicPartition("orders", 1): 1}
    assert (
        with_quarantined(found, kept, all_read=False)
        .partitions[0]
        .detail.endswith("at least 1,200 records in quarantine")
    )
    found = with_quarantined(found, kept, all_read=True)
    assert [(row.reason, row.quarantined) for row in found.partitions] == [
        ("quarantined", 1200),
        ("corrupt_batch", 1),
        ("", 0),
    ]
    assert [row.detail for row in found.partitions] == [
        "1,200 records in quarantine",
        "at 7; 1 record in quarantine",
        "",
    ]


def test_a_partition_whose_records_the_destination_deletes_says_so_for_a_week_unless_something_is_wrong() -> None:
    stuck = partition(1, state="waiting", reason="corrupt_batch", detail="at 7")
    before = status(plan(0, 0, 1), report(0, partition(0), stuck), report(1, partition(2)))
    losses = [loss(0, 100, NOW_MS - 5000), loss(0, 200, NOW_MS - 1000), loss(1, 100, NOW_MS)]
    losses.append(losses[0].model_copy(update={"partition": 2, "cause": "source_data_lost"}))
    found = with_deleted(before, losses, NOW_MS)
    assert [row.reason for row in found.partitions] == ["destination_keeps_less", "corrupt_batch", ""]
    detail = found.partitions[0].detail
    assert detail == "source offsets 0 to 199, seen 1970-01-01 00:16:39: retention.ms"
    assert with_deleted(before, losses, NOW_MS + RECORDED_EVERY_MS) == before


def loss(partition: int, end: int, at_ms: int) -> Loss:
    place = {"link": "l", "topic": "orders", "partition": partition, "side": "source", "action": "continued"}
    what = {"cause": "destination_keeps_less", "from_offset": 0, "to_offset": end, "detail": "retention.ms"}
    return Loss.model_validate({**place, **what, "at_ms": at_ms})


def test_outside_its_hours_what_lags_says_when_it_continues_and_what_does_not_has_caught_up() -> None:
    night = PlannedBackfill(hours=("22:00-06:00",), timezone="Europe/Berlin")
    closed = plan(0, 0, 1).model_copy(update={"group": "backfill", "backfill": night})
    caught_up = partition(1, 9, state="caught_up")
    begun = partition(2, -1, state="starting", end=-1, lag_records=0)
    reports = {
        ("backfill", slot): (report(slot, *rows).model_copy(update={"group": "backfill"}),)
        for slot, rows in enumerate(((partition(0), caught_up), (begun,)))
    }
    rows = Rows()
    for now_ms, states in ((NOW_MS, ["copying", "caught_up", "starting"]), (NOW_MS + 8 * 3_600_000, [])):
        heard = {
            slot: tuple(part.model_copy(update={"at_ms": now_ms - 500}) for part in parts)
            for slot, parts in reports.items()
        }
        found = status_of("l", "backfill", closed, heard, now_ms, rows=rows)
        assert [row.state for row in found.partitions] == (states or ["waiting", "caught_up", "waiting"])
        assert found.limits == "only 22:00-06:00 Europe/Berlin" and found.opening is not None
        assert found.opening == Opening(open=bool(states), changes_at_ms=(5 if states else 21) * 3_600_000)
    lagging = found.partitions[0]
    assert (lagging.reason, lagging.detail, lagging.needs_decision) == (
        "outside_hours",
        "continues at 1970-01-01 22:00 Europe/Berlin (21:00 UTC); task group backfill copies only 22:00-06:00 Europe/Berlin",
        False,
    )
    assert found.stuck == {} and found.healthy
    assert summary_of("l", "a", "b", [found], ()).state == "copying"


def test_how_long_it_takes_is_told_with_the_hours_in_which_nothing_is_copied() -> None:
    night = PlannedBackfill(hours=("00:00-01:00",), timezone="UTC")
    pace = Pace(seconds_left={TopicPartition("orders", 0): 2 * 3600.0})
    limited = plan(0).model_copy(update={"backfill": night})
    (row,) = status_of(
        "l", "default", limited, {("default", 0): (report(0, partition(0)),)}, NOW_MS, pace=pace
    ).partitions
    assert row.seconds_to_catch_up == 2 * 24 * 3600  # of which it begins 1,000 s after the first hour has begun
    assert row.detail == "about 2 d until caught up"


def test_a_topic_that_waits_for_approval_is_nothing_to_catch_up_with() -> None:
    waiting = (Waiting(topic="new", reason="awaiting_approval", detail="since then: copying it from earliest"),)
    found = status(plan(0, waiting=waiting), report(0, partition(0, 9, state="caught_up")), report(1))
    assert [row.reason for row in found.partitions] == ["awaiting_approval", ""]
    assert found.healthy and found.stuck == {}
    assert not_caught_up(LinkStatus("l", "a", "b", (found,), ())) == ""


def bounded(*slots: int | None) -> Plan:
    """Its partitions end at source offset 7, and those without a slot are finished."""
    found = plan(*slots)
    policy = TopicPolicy(until="latest", ends=(7,) * len(slots))
    over = tuple(number for number, slot in enumerate(slots) if slot is None)
    waits = (Waiting(topic="orders", partitions=over, reason="finished", detail="up to 7"),) if over else ()
    topic = found.topics[0].model_copy(update={"policy": policy})
    return found.model_copy(update={"topics": (topic,), "waiting": waits})


def test_a_finished_copy_has_caught_up_also_once_no_report_of_it_is_left() -> None:
    found = status(bounded(None, None), report(0), report(1))
    assert [(row.state, row.reason, row.position, row.end) for row in found.partitions] == [
        ("caught_up", "finished", 7, 7)
    ] * 2
    assert found.healthy and {row.lag_records for row in found.partitions} == {0}
    assert [of_partition(row) for row in found.partitions] == [FINISHED] * 2
    summary = summary_of("l", "a", "b", [found], ())
    assert (summary.state, summary.badge, summary.caught_up, summary.waiting) == ("copying", FINISHED, 2, ())
    assert not needs_of([found], Circumstances(growing={TopicPartition("orders", 0): Growth(1, 100, 60.0)}))
    assert not behind({TopicPartition("orders", 0): 99}, found.partitions), "nothing more is to be copied"


def test_a_topic_is_finished_once_all_of_it_is() -> None:
    found = status(bounded(None, None, 0), report(0, partition(2)), report(1))
    (topic,) = by_topic(found.partitions)
    assert topic.badge == STATES["copying"]
    assert summary_of("l", "a", "b", [found], ()).badge == STATES["copying"]
    done = partition(2, 7, state="caught_up", reason="finished", lag_records=0, end=7)
    (topic,) = by_topic(status(bounded(None, None, 0), report(0, done), report(1)).partitions)
    assert topic.badge == FINISHED
