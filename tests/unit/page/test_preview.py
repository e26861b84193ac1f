"""What is told to whoever is about to change a link's topics."""

from typing import Any

from strait.control.forecast import Forecast
from strait.planning.plan.planner import Proposal
from strait.planning.review.backfill import Backfill, TopicBackfill
from strait.planning.risks.risks import Risk
from strait_airflow.page.views.preview import MOST_SHOWN, preview_of
from unit.planning.test_plan import cluster, link, propose, publish

BOTH = cluster("a", {"orders": 2, "payments": 1}), cluster("b", {"orders": 2, "payments": 1})


def changed(**topics: Any) -> tuple[Any, Proposal]:
    """The link that copied `orders` alone, with other topics."""
    plan, runs = publish(propose(link(topics={"include": ["orders"]}), *BOTH))
    settings = link(topics=topics)
    return settings, propose(settings, *BOTH, plan, runs)


def lines(found: dict[str, Any]) -> list[str]:
    return [f"{one['sign']} {one['verb']} {one['subject']}" for one in found["effects"]["shown"]]


def test_topics_that_come_and_go_are_named() -> None:
    found = preview_of(*changed(include=["payments"]), Forecast())
    assert lines(found) == ["+ copies payments", "- leaves orders"]
    assert found["effects"]["total"] == 2
    assert found["waits"]["total"] == found["left_out"]["total"] == 0


def test_what_would_wait_is_told_with_its_reason_and_remedy_and_what_waits_already_is_not() -> None:
    found = preview_of(*changed(include=["orders", "nowhere"]), Forecast())
    (waits,) = found["waits"]["shown"]
    assert waits["topic"] == "nowhere"
    assert waits["reason"]
    assert waits["remedy"]
    settings = link(topics={"include": ["orders", "nowhere"]})
    plan, runs = publish(propose(settings, *BOTH))
    wider = link(topics={"include": ["orders", "nowhere", "payments"]})
    again = preview_of(wider, propose(wider, *BOTH, plan, runs), Forecast())
    assert again["waits"]["total"] == 0
    assert lines(again) == ["+ copies payments"]


def test_the_same_topics_do_nothing() -> None:
    found = preview_of(*changed(include=["orders"]), Forecast())
    assert (found["effects"]["total"], found["waits"]["total"], found["needs_approval"]) == (0, 0, False)


def test_excluded_topics_are_named_and_those_that_nothing_selects_are_not() -> None:
    found = preview_of(*changed(regex=["o.*"], exclude=["orders"]), Forecast())
    assert [one["topic"] for one in found["left_out"]["shown"]] == ["orders"]


def test_how_much_there_is_to_copy_and_what_may_go_wrong_is_told() -> None:
    topics = (TopicBackfill("payments", 1, 50, 7200, "log"),)
    ahead = Forecast(Backfill(topics, 2.0, None), (Risk("missing_right", "payments", "no"),), ("cluster a: why",))
    found = preview_of(*changed(include=["orders", "payments"]), ahead)["forecast"]
    assert found["backfill"] == {"records": 50, "bytes": 7200, "seconds": 3600.0}
    assert [one["code"] for one in found["risks"]["shown"]] == ["missing_right"]
    assert found["not_known"] == ["cluster a: why"]


def test_of_thousands_of_topics_some_are_shown_and_all_are_counted() -> None:
    many = {f"t{number}": 1 for number in range(3 * MOST_SHOWN)}
    settings = link()
    found = preview_of(settings, propose(settings, cluster("a", many), cluster("b", many)), Forecast())
    assert found["effects"]["total"] == 3 * MOST_SHOWN
    assert len(found["effects"]["shown"]) == MOST_SHOWN
