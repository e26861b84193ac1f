"""What the page's endpoints answer, from an observation."""

import pytest

from strait.exporter.observation import Observation
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.reasons import Reason
from strait.state.schema import Plan
from strait_airflow.page.views.details import link_details
from strait_airflow.page.views.links import SORTS, Question, by_urgency, link_row, partition_page

LOST = str(Reason.SOURCE_TRUNCATED)


def row(topic: str, partition: int, lag: int, state: str = "copying", reason: str = "") -> PartitionStatus:
    return PartitionStatus(topic, partition, topic, 0, state, reason, "", 5, 9, lag, lag / 10)


def seen(*rows: PartitionStatus, link: str = "l") -> Observation:
    plan = Plan(link=link, group="default", version=3, producer_id=1, slots=1, topics=(), waiting=(), published_at_ms=1)
    slot = SlotStatus(0, silent=False, age_ms=1, latency_ms_p99=7.0)
    status = Status(link, "default", 3, False, (slot,), rows)
    return Observation(link, "a", "b", 0.0, plans={"default": plan}, statuses=(status,))


def test_a_link_has_its_figures_from_all_its_partitions():
    found = link_row("l", seen(row("x", 0, 30), row("x", 1, 0, "caught_up"), row("y", 0, -1, "waiting", LOST)))
    told = {
        key: found[key] for key in ("lag_records", "lag_seconds", "latency_ms_p99", "caught_up", "copying", "waiting")
    }
    assert told == {
        "lag_records": 30,
        "lag_seconds": 3.0,
        "latency_ms_p99": 7.0,
        "caught_up": 1,
        "copying": 1,
        "waiting": {LOST: 1},
    }


def test_what_needs_a_person_stands_first():
    rows = [
        link_row("fine", seen(row("x", 0, 0), link="fine")),
        link_row("looking", None),
        link_row("retries", seen(row("x", 0, 0, "waiting", str(Reason.SOURCE_UNREACHABLE)), link="retries")),
        link_row("decide", seen(row("x", 0, 0, "waiting", LOST), link="decide")),
        link_row("away", Observation("away", "a", "b", 0.0, error="cluster b: away")),
    ]
    ordered = by_urgency(rows)
    assert [one["link"] for one in ordered] == ["away", "decide", "retries", "looking", "fine"]
    assert [one["needs_person"] for one in ordered] == [True, True, False, False, False]


MANY = seen(*(row(f"t{number % 7}", number, number) for number in range(1000)), row("Odd", 0, -1, "waiting", LOST))


def test_the_most_lagging_stand_on_the_first_page():
    found = partition_page(MANY, Question())
    assert [one["lag_records"] for one in found["rows"]] == list(range(999, 979, -1))
    assert (found["total"], found["of"], found["reasons"]) == (1001, 1001, [LOST])


def test_pages_together_are_all_partitions_each_once():
    pages = [partition_page(MANY, Question(offset=start, limit=100))["rows"] for start in range(0, 1100, 100)]
    assert [len(one) for one in pages] == [100] * 10 + [1]
    assert len({(one["topic"], one["partition"]) for page in pages for one in page}) == 1001


@pytest.mark.parametrize("sort", SORTS)
def test_every_order_can_be_turned_round(sort):
    up = [SORTS[sort](item) for item in MANY.statuses[0].partitions]
    answered = partition_page(MANY, Question(sort=sort, descending=False, limit=200))["rows"]
    turned = partition_page(MANY, Question(sort=sort, limit=200))["rows"]
    key = "topic" if sort == "topic" else sort
    assert [one[key] for one in answered] == [at[0] if sort == "topic" else at for at in sorted(up)[:200]]
    assert [one[key] for one in turned] == [at[0] if sort == "topic" else at for at in sorted(up, reverse=True)[:200]]


def test_a_search_takes_any_case_and_a_filter_the_reason_with_its_remedy():
    for asked in (Question(search="oDD"), Question(reason=LOST), Question(state="waiting")):
        (found,) = partition_page(MANY, asked)["rows"]
        assert (found["topic"], found["remedy"]) == ("Odd", Reason.SOURCE_TRUNCATED.remedy)
    assert partition_page(MANY, Question(search="odd", state="copying"))["total"] == 0


def test_before_the_first_look_there_is_nothing_and_no_error():
    assert partition_page(None, Question())["total"] == 0
    assert link_details("l", None)["state"] == "looking"
