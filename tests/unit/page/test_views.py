"""What the page's endpoints answer, from an observation."""

from dataclasses import replace

import pytest

from strait.exporter.observation import Observation
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.reasons import Reason
from strait.state.schema import Plan
from strait_airflow.page.views.details import link_details
from strait_airflow.page.views.links import (
    LINK_SORTS,
    SORTS,
    LinksQuestion,
    Now,
    Question,
    link_row,
    links_page,
    partition_page,
)
from strait_airflow.page.views.topics import topic_page

LOST = str(Reason.SOURCE_TRUNCATED)

NOW = Now(10.0, 1_000_000)


def row(topic: str, partition: int, lag: int, state: str = "copying", reason: str = "") -> PartitionStatus:
    return PartitionStatus(topic, partition, topic, 0, state, reason, "", 5, 9, lag, lag / 10)


def seen(*rows: PartitionStatus, link: str = "l") -> Observation:
    plan = Plan(link=link, group="default", version=3, producer_id=1, slots=1, topics=(), waiting=(), published_at_ms=1)
    slot = SlotStatus(0, silent=False, age_ms=1, latency_ms_p99=7.0)
    status = Status(link, "default", 3, False, (slot,), rows)
    return Observation(link, "a", "b", 0.0, plans={"default": plan}, statuses=(status,))


def test_a_link_has_its_figures_from_all_its_partitions():
    found = link_row("l", seen(row("x", 0, 30), row("x", 1, 0, "caught_up"), row("y", 0, -1, "waiting", LOST)), NOW)
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
        link_row("fine", seen(row("x", 0, 0), link="fine"), NOW),
        link_row("looking", None, NOW),
        link_row("retries", seen(row("x", 0, 0, "waiting", str(Reason.SOURCE_UNREACHABLE)), link="retries"), NOW),
        link_row("decide", seen(row("x", 0, 0, "waiting", LOST), link="decide"), NOW),
        link_row("away", Observation("away", "a", "b", 0.0, error="cluster b: away"), NOW),
    ]
    ordered = links_page(rows, LinksQuestion())["links"]
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
    if sort == "seconds_to_loss":
        assert {one[key] for one in (*answered, *turned)} == {None}
        return
    if sort == "state":
        assert (turned[0]["badge"]["word"], answered[-1]["badge"]["word"]) == ("halted", "copying")
        return
    assert [one[key] for one in answered] == [at[0] if sort == "topic" else at for at in sorted(up)[:200]]
    assert [one[key] for one in turned] == [at[0] if sort == "topic" else at for at in sorted(up, reverse=True)[:200]]


def test_a_search_takes_any_case_and_a_filter_the_reason_with_its_remedy():
    for asked in (Question(search="oDD"), Question(reason=LOST), Question(state="waiting")):
        (found,) = partition_page(MANY, asked)["rows"]
        assert (found["topic"], found["remedy"]) == ("Odd", Reason.SOURCE_TRUNCATED.remedy)
    assert partition_page(MANY, Question(search="odd", state="copying"))["total"] == 0


def test_before_the_first_look_there_is_nothing_and_no_error():
    assert partition_page(None, Question())["total"] == 0
    assert link_details("l", None, NOW)["state"] == "looking"


def test_of_a_link_whose_slots_do_not_report_nothing_is_known():
    silent = SlotStatus(0, silent=True, age_ms=600_000)
    unknown = PartitionStatus("x", 0, "x", 0, "waiting", str(Reason.SLOT_SILENT), "", 5)
    status = Status("l", "default", 3, False, (silent,), (unknown,))
    found = link_row("l", Observation("l", "a", "b", 0.0, statuses=(status,), plans=seen().plans), NOW)
    assert (found["lag_records"], found["lag_seconds"], found["records_per_second"]) == (None, None, None)
    assert (found["lag_unknown"], found["badge"]["word"], found["badge"]["level"]) == (1, "no report", "passing")


def test_after_an_error_the_last_figures_stay_with_their_age():
    failed = replace(seen(row("x", 0, 30)), error="cluster b: gone", at=4.0)
    found = link_row("l", failed, NOW)
    assert (found["lag_records"], found["age_seconds"], found["error"]) == (30, 6.0, "cluster b: gone")
    assert (found["badge"]["word"], found["needs_person"]) == ("unreadable", True)
    assert link_details("l", failed, NOW)["plans"]
    never = link_row("l", Observation("l", "a", "b", 0.0, error="gone"), NOW)
    assert (never["age_seconds"], never["lag_records"], never["known"]) == (None, None, False)


def test_a_link_is_summed_up_once_for_each_observation_and_its_age_is_that_of_the_moment(monkeypatch):
    summed = []
    summary = Observation.summary.fget
    monkeypatch.setattr(Observation, "summary", property(lambda one: summed.append(one.at) or summary(one)))
    first = seen(row("x", 0, 30))
    ages = [link_row("l", first, Now(seconds, 0))["age_seconds"] for seconds in (1.0, 5.0)]
    assert (ages, summed) == ([1.0, 5.0], [0.0])
    newer = link_row("l", replace(first, statuses=seen(row("x", 0, 7)).statuses, at=6.0), Now(6.5, 0))
    assert (newer["lag_records"], newer["age_seconds"], summed) == (7, 0.5, [0.0, 6.0])


OVERVIEW = [
    link_row("shop", seen(replace(row("x", 0, 9), seconds_to_loss=7100.0), link="shop"), NOW),
    link_row("decide", seen(row("x", 0, 300, "waiting", LOST), link="decide"), NOW),
    link_row("new", None, NOW),
    *(link_row(f"tenant-{number}", seen(row("x", 0, 0, "caught_up")), NOW) for number in range(30)),
]


def test_the_summary_counts_states_and_names_the_largest_lag_and_the_first_loss():
    found = links_page(OVERVIEW, LinksQuestion())["summary"]
    assert [(one["count"], one["word"], one["level"]) for one in found["states"]] == [
        (1, "copying", "person"),
        (1, "halted", "person"),
        (1, "being read", "quiet"),
        (30, "caught up", "good"),
    ]
    figures = {name: found[name] for name in ("links", "looking", "lag_seconds", "behind", "seconds_to_loss", "losing")}
    assert figures == {
        "links": 33,
        "looking": 1,
        "lag_seconds": 30.0,
        "behind": 2,
        "seconds_to_loss": 7100.0,
        "losing": 1,
    }


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"state": "person"}, ["decide", "shop"]),
        ({"state": "halted"}, ["decide"]),
        ({"state": "losing"}, ["shop"]),
        ({"state": "behind", "sort": "lag_seconds", "descending": True}, ["decide", "shop"]),
        ({"state": "being read"}, ["new"]),
        ({"search": "NT-2", "limit": 3}, ["tenant-2", "tenant-20", "tenant-21"]),
        ({"search": "-2", "sort": "link", "descending": True, "limit": 2}, ["tenant-29", "tenant-28"]),
        ({"sort": "lag_records", "descending": True, "limit": 2}, ["decide", "shop"]),
        ({"sort": "lag_records", "limit": 1}, ["tenant-0"]),
        ({"sort": "seconds_to_loss", "limit": 1}, ["shop"]),
        ({"offset": 32}, ["tenant-9"]),
    ],
)
def test_links_are_searched_filtered_sorted_and_paged(asked, names):
    assert [one["link"] for one in links_page(OVERVIEW, LinksQuestion(**asked))["links"]] == names


@pytest.mark.parametrize("sort", LINK_SORTS)
def test_a_link_of_which_nothing_is_known_comes_last_in_every_order_of_figures(sort):
    for descending in (False, True):
        found = links_page(OVERVIEW, LinksQuestion(sort=sort, descending=descending, limit=100))["links"]
        assert sort in ("urgency", "link") or found[-1]["link"] in ("new", "tenant-9")


def test_topics_that_need_an_operator_stand_first_with_what_is_known_of_them():
    shown = seen(row("calm", 0, 3), row("odd", 0, -1, "waiting", LOST), row("odd", 1, 4))
    found = topic_page(shown, search="", offset=0, limit=20)
    odd, calm = found["rows"]
    assert (odd["topic"], odd["badge"]["word"], odd["lag_records"], odd["lag_unknown"]) == ("odd", "halted", 4, 1)
    assert (calm["badge"]["word"], calm["lag_records"], calm["lag_unknown"]) == ("copying", 3, 0)
    assert topic_page(shown, search="OD", offset=0, limit=20)["total"] == 1
    assert topic_page(None, search="", offset=0, limit=20) == {"total": 0, "of": 0, "rows": []}
