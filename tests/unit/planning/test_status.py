"""What each partition does and why, from the plan and what its slots say."""

from typing import Any

from strait.planning.status import SILENT_MS, Status, status_of
from strait.state.schema import PartitionReport, Plan, PlannedTopic, Report, Waiting

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
    return Report(
        link="l",
        group="default",
        slot=slot,
        part=0,
        parts=1,
        application=application,
        at_ms=NOW_MS - age_ms,
        started_at_ms=0,
        plan_version=3,
        strait_version="0",
        host="h",
        pid=1,
        cpu_seconds=1.0,
        memory_bytes=1,
        records_per_second=10.0,
        bytes_per_second=100.0,
        latency_ms_p50=None,
        latency_ms_p99=None,
        conflicts=0,
        recoveries=0,
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
    stuck = partition(1, state="waiting", reason="batch_with_holes", detail="at 7")
    found = status(plan(0, 1), report(0, partition(0)), report(1, stuck))
    assert states(found) == [(0, "copying", ""), (1, "waiting", "batch_with_holes")]
    assert found.lag_records == 8
    assert found.records_per_second == 20.0


def test_a_silent_slot_is_a_reason_and_the_last_position_stays_to_be_seen() -> None:
    found = status(plan(0, 1), report(0, partition(0)), report(1, partition(1), age_ms=SILENT_MS + 1))
    assert states(found) == [(0, "copying", ""), (1, "waiting", "slot_silent")]
    assert found.partitions[1].position == 5
    assert [slot.silent for slot in found.slots] == [False, True]


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


def test_without_a_plan_there_is_nothing_to_say() -> None:
    assert status(None).plan_version == 0
