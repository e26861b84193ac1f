"""What the page says of one partition, the plan in force and the quarantine."""

from dataclasses import replace

import pytest

from strait.exporter.observation import Observation
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status
from strait.reasons import Reason
from strait.state.quarantine_log import Entry
from strait.state.schema import Loss, Pause, Plan, PlannedTopic, TopicPolicy
from strait_airflow.page.views.details import link_details, partition_details, partition_runs, quarantine_page
from strait_airflow.page.views.links import Now
from strait_airflow.page.watches.polled import Seen
from support.model.reports import plain_run


def loss(topic: str, partition: int, at_ms: int) -> Loss:
    offsets = {"from_offset": at_ms, "to_offset": at_ms + 5}
    said = {"side": "source", "cause": "source_truncated", "action": "halted", "detail": "gone"}
    return Loss(link="l", topic=topic, partition=partition, at_ms=at_ms, **offsets, **said)  # type: ignore[arg-type]


def pause(topic: str = "", partition: int | None = None) -> Pause:
    return Pause(topic=topic, partition=partition, by="ann", at_ms=1)


def planned(source: str, **policy: str) -> PlannedTopic:
    return PlannedTopic(
        source=source,
        destination=f"copy.{source}",
        source_id="s",
        destination_id="d",
        slots=(0, 0),
        policy=TopicPolicy(**policy),  # type: ignore[arg-type]
    )


def plan(group: str, *topics: PlannedTopic, pauses: tuple[Pause, ...] = ()) -> Plan:
    return Plan(
        link="l", group=group, version=2, producer_id=1, slots=1, topics=topics, pauses=pauses, published_at_ms=7
    )


def row(topic: str, partition: int, reason: str = "") -> PartitionStatus:
    state = "waiting" if reason else "copying"
    return PartitionStatus(topic, partition, f"copy.{topic}", 0, state, reason, "", 5, 9, 4, 1.0)


PAUSES = (pause(), pause("x"), pause("x", 0), pause("x", 1), pause("y"))
PLANS = {
    "default": plan("default", planned("y"), pauses=PAUSES),
    "big": plan("big", planned("x", on_loss="continue"), pauses=PAUSES),
}
STATUSES = (
    Status("l", "big", 2, False, (), (row("x", 0), row("x", 1, str(Reason.SOURCE_TRUNCATED)))),
    Status("l", "default", 2, False, (), (row("y", 0),)),
)
LOSSES = (loss("x", 1, 10), loss("x", 0, 20), loss("y", 1, 30), loss("x", 1, 40))
SEEN = Observation("l", "a", "b", 0.0, plans=PLANS, statuses=STATUSES, losses=LOSSES)


def test_a_partition_has_its_own_losses_pauses_and_policy_and_no_other():
    found = partition_details(SEEN, "x", 1)
    assert found is not None
    assert [one["at_ms"] for one in found["losses"]] == [40, 10]
    assert [(one["topic"], one["partition"]) for one in found["pauses"]] == [("", None), ("x", None), ("x", 1)]
    assert (found["group"], found["policy"]) == ("big", {"on_loss": "continue"})
    assert found["remedy"] == Reason.SOURCE_TRUNCATED.remedy
    assert found["losses_not_kept"] == 0


def test_a_partition_tells_of_losses_that_are_too_old_to_be_kept():
    found = partition_details(replace(SEEN, loss_counts={("source_truncated", "halted"): 1004}), "x", 1)
    assert found is not None
    assert (found["losses_not_kept"], len(found["losses"])) == (1000, 2)


@pytest.mark.parametrize(("topic", "partition"), [("x", 2), ("copy.x", 0), ("none", 0)])
def test_of_a_partition_that_is_not_planned_nothing_is_known(topic, partition):
    assert partition_details(SEEN, topic, partition) is None


def test_before_a_link_was_read_no_partition_is_missing():
    told = {"age_seconds": None, "every_seconds": None}
    assert partition_details(None, "x", 1) == {"looking": True, "error": ""} | told
    away = Observation("l", "a", "b", 0.0, error="cluster b: connecting: refused")
    assert partition_details(away, "x", 1) == {"looking": False, "error": away.error} | told
    assert partition_details(replace(SEEN, error=away.error), "x", 2) is None, "its last plan is known"


def test_a_link_shows_its_newest_losses_first_and_every_plan():
    many = Observation("l", "a", "b", 0.0, plans=PLANS, losses=tuple(loss("x", 0, at) for at in range(70)))
    found = link_details("l", many, Now(1.0, 1))
    assert [one["at_ms"] for one in found["losses_newest"]] == list(range(69, 19, -1))
    assert [(one["group"], one["version"], one["topics"]) for one in found["plans"]] == [
        ("big", 2, 1),
        ("default", 2, 1),
    ]


def test_runs_are_the_newest_first_and_a_topic_created_again_is_another_generation():
    runs = tuple(
        plain_run(source_id=source, sequence_base=base, sequence_end=end)
        for source, base, end in (("old", 0, 90), ("old", 100, 150), ("new", 150, 0))
    )
    found = partition_runs(Seen({("t", 0): runs, ("t", 1): runs[:1]}), "t", 0)
    assert [(one["generation"], one["source_id"], one["confirmed"]) for one in found["rows"]] == [
        (2, "new", 0),
        (1, "old", 50),
        (1, "old", 90),
    ]
    assert (found["total"], found["looking"], found["error"]) == (3, False, "")


def test_of_very_many_runs_the_newest_keep_the_number_of_their_generation():
    runs = tuple(plain_run(source_id=str(number), sequence_base=number) for number in range(80))
    found = partition_runs(Seen({("t", 0): runs}), "t", 0)
    assert [one["generation"] for one in found["rows"]] == list(range(80, 30, -1))
    assert found["total"] == 80


def test_a_map_that_was_not_read_is_not_an_empty_one():
    assert partition_runs(None, "t", 0)["looking"]
    failed = partition_runs(Seen({}, "cluster b: gone"), "t", 0)
    assert (failed["looking"], failed["error"], failed["rows"]) == (False, "cluster b: gone", [])


def entry(at: int, topic: str) -> Entry:
    return Entry(at, topic, 0, at, 1, f"copy.{topic}", "too_large", "", 2, 3)


def test_quarantine_is_searched_and_paged_the_newest_first():
    seen = Seen(tuple(entry(at, "Odd" if at % 2 else "even") for at in range(6)))

    def at(search: str, offset: int, limit: int) -> list[int]:
        return [one["at"] for one in quarantine_page(seen, search=search, offset=offset, limit=limit)["rows"]]

    assert at("", 0, 4) == [5, 4, 3, 2]
    assert at("", 4, 4) == [1, 0]
    assert at("oDD", 1, 20) == [3, 1]
    assert quarantine_page(seen, search="odd", offset=0, limit=1)["total"] == 3
    assert quarantine_page(None, search="", offset=0, limit=1)["looking"]
