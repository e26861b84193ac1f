"""The moment that a sensor waits for stays the same in the triggerer, also if a topic is created again meanwhile."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from strait.errors import ClusterUnavailable
from strait.model import ClusterFacts, TopicFacts
from strait.planning.status.rows import PartitionStatus
from strait_airflow.conditions import condition_of

pytestmark = [pytest.mark.airflow, pytest.mark.core]

OLD, NEW = "Zm9ybWVyLXRvcGljLWlkcw", "bGF0ZXItdG9waWMtaWRzMQ"
END, REPORTED = 5, 1000
ASKED = {"kind": "caught_up", "link": "shop", "topics": ["orders"], "to": "now", "lateness_seconds": 0.0}
GIVEN = {**ASKED, "topics": [], "to": json.dumps({"orders": {"0": END}})}


class Source:
    """A source with the topic `orders`, and the link's state: a plan for a topic of that name, whose slot reported
    1,000 copied records."""

    def __init__(self) -> None:
        self.topic_id, self.planned_id, self.observed, self.answers = NEW, OLD, 0, True
        self.destination_answers = True

    def link(self, name: str) -> Any:
        return SimpleNamespace(name=name, admin=lambda _: self, state=lambda *_: self)

    def observe(self, wanted: Any) -> ClusterFacts:
        if not self.answers:
            raise ClusterUnavailable("a", "no broker answers")
        self.observed += 1
        return ClusterFacts("a", "c", {"orders": TopicFacts("orders", self.topic_id if wanted("orders") else "", 1)})

    def offsets(self, places: Any, at: str) -> dict[Any, int]:
        return dict.fromkeys(places, END)

    def catch_up(self) -> None:
        if not self.destination_answers:
            raise ClusterUnavailable("b", "no broker answers")

    @property
    def plans(self) -> dict[str, Any]:
        topic = SimpleNamespace(source="orders", destination="orders", source_id=self.planned_id)
        return {"default": SimpleNamespace(topics=[topic])}

    def close(self) -> None: ...


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    made = Source()
    row = PartitionStatus("orders", 0, "orders", 0, "caught_up", "", "", position=REPORTED)
    monkeypatch.setattr("strait_airflow.settings.link_of", made.link)
    monkeypatch.setattr("strait.control.reaching.group_status", lambda *_: SimpleNamespace(partitions=[row]))
    return made


def again(condition: Any) -> Any:
    """The condition in the triggerer, after Airflow has stored its arguments."""
    return condition_of(json.loads(json.dumps(condition.data())))


@pytest.mark.parametrize("asked", [ASKED, GIVEN], ids=["now", "offsets"])
def test_the_position_in_a_topic_of_before_does_not_count_in_the_triggerer_either(source, asked):
    first = condition_of(asked)
    assert "source_recreated" in first.look()
    deferred = again(first)
    assert "source_recreated" in deferred.look()
    assert "source_recreated" in again(deferred).look(), "after a restart of the triggerer, too"
    assert source.observed == 1
    source.planned_id = NEW
    assert deferred.look() == ""


def test_a_topic_that_is_created_again_while_the_sensor_is_deferred_is_another_one(source):
    source.topic_id = OLD
    first = condition_of({**ASKED, "to": json.dumps({"orders": {"0": REPORTED + 1}})})
    assert "1 offset behind" in first.look()
    deferred = again(first)
    source.planned_id = source.topic_id = NEW
    assert "source_recreated" in deferred.look()


def test_what_was_found_on_the_source_is_kept_though_the_destination_does_not_answer(source):
    source.destination_answers = False
    first = condition_of(GIVEN)
    with pytest.raises(ClusterUnavailable):
        first.look()
    assert again(first).data()["ids"] == {"orders": NEW}


def test_arguments_of_an_earlier_version_and_of_a_source_that_did_not_answer_have_no_ids(source):
    source.answers = False
    first = condition_of(GIVEN)
    with pytest.raises(ClusterUnavailable):
        first.look()
    data = first.data()
    assert "ids" not in data
    source.answers = True
    assert "source_recreated" in condition_of(data).look()
