"""Arguments of the operators, without brokers: what a template or a plain text in place of a list means."""

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from strait.state.schema import Pause, Plan, PlannedTopic, Waiting
from strait_airflow.operators import StraitAuditOperator, StraitFailoverOperator, StraitResumeOperator
from strait_airflow.sensors import StraitCaughtUpSensor, StraitHealthSensor

pytestmark = [pytest.mark.airflow, pytest.mark.core]

CONTEXT: Any = {"dag_run": SimpleNamespace(dag_id="nightly", triggering_user_name=None)}


class Link:
    """A link and its state: topic `orders`, the routes of `customers`, and a topic that only waits; with pauses."""

    name = "shop"

    def __init__(self) -> None:
        self.pauses: tuple[Pause, ...] = ()
        self.has_plan = True
        self.changes: list[tuple[Any, ...]] = []

    def state(self, *_: str) -> "Link":
        return self

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None: ...

    def catch_up(self) -> None: ...

    @property
    def plans(self) -> dict[str, Plan]:
        names = ("orders", "customers→big", "customers→small")
        topics = tuple(
            PlannedTopic(source=name, destination=name, source_id="s", destination_id="d", slots=(0,) * 4)
            for name in names
        )
        waiting = (Waiting(topic="clicks", reason="source_missing", detail=""),)
        plan = Plan(
            link="shop",
            group="default",
            version=1,
            producer_id=1,
            slots=1,
            published_at_ms=1,
            topics=topics,
            waiting=waiting,
            pauses=self.pauses,
        )
        return {"default": plan} if self.has_plan else {}

    def change(self, *given: Any) -> str:
        self.changes.append(given)
        return "resumed"


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Link:
    made = Link()
    monkeypatch.setattr("strait_airflow.settings.link_of", lambda _: made)
    monkeypatch.setattr("strait_airflow.pausing.change", made.change)
    return made


def resume(part: str) -> str:
    return StraitResumeOperator(task_id="t", link="shop", part=part).execute(CONTEXT)


@pytest.mark.parametrize(
    ("part", "topic", "partition"),
    [
        ("orders-3", "orders", 3),
        ("orders:3", "orders", 3),
        ("customers->big", "customers→big", None),
        ("customers", "customers", None),
        ("gone-2", "gone-2", None),
        ("", "", None),
    ],
)
def test_what_was_paused_is_resumed_by_the_same_text(link: Link, part: str, topic: str, partition: int | None) -> None:
    link.pauses = (Pause(topic=topic, partition=partition, by="ann", at_ms=1),)
    assert resume(part) == "resumed"
    assert link.changes == [("shop", "resume", part, "", "DAG nightly")]


@pytest.mark.parametrize(("part", "shown"), [("orders-2", "orders-2"), ("clicks", "clicks"), ("", "the link")])
def test_a_part_that_is_not_paused_needs_nothing(link: Link, part: str, shown: str) -> None:
    link.pauses = (Pause(topic="orders", partition=3, by="ann", at_ms=1),)
    assert resume(part) == f"link shop: {shown} is not paused"
    assert link.changes == []


def test_a_topic_that_the_plan_lacks_fails_the_task(link: Link) -> None:
    with pytest.raises(AirflowFailException, match="the plan has no such topic; did you mean 'orders'"):
        resume("order-3")
    link.has_plan = False
    with pytest.raises(AirflowFailException, match="it has no plan yet"):
        resume("orders-3")
    assert resume("") == "link shop: the link is not paused"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the failover and the audit were called with."""
    found: dict[str, Any] = {}

    def audit(link: str, request: Any, *_: object) -> Any:
        found["topics"] = list(request.topics)
        return SimpleNamespace(holds=True, verdict="equal", directory="")

    monkeypatch.setattr("strait_airflow.failing_over.fail_over", lambda params, _: found.update(params) or "done")
    monkeypatch.setattr("strait_airflow.auditing.run_audit", audit)
    return found


TI = SimpleNamespace(dag_id="nightly", run_id="r1", task_id="audit", map_index=-1, max_tries=0)
TAKE_LISTS = [
    (StraitFailoverOperator, "topics"),
    (StraitFailoverOperator, "groups"),
    (StraitFailoverOperator, "fence"),
    (StraitAuditOperator, "topics"),
    (StraitCaughtUpSensor, "topics"),
    (StraitHealthSensor, "topics"),
]


def taken(kind: Any, argument: str, value: Any, asked: dict[str, Any]) -> list[str]:
    """What an operator or a sensor takes the value of an argument for, once its templates are rendered."""
    made = kind(task_id="t", link="shop", **{argument: value})
    made.render_template_fields({"params": {"topic": "orders", "none": ""}})
    if kind in (StraitCaughtUpSensor, StraitHealthSensor):
        return made._condition()[argument]
    made.execute({**CONTEXT, "ti": TI})
    return asked[argument]


@pytest.mark.parametrize(("kind", "argument"), TAKE_LISTS)
def test_a_text_is_a_list_of_one(asked: dict[str, Any], kind: Any, argument: str) -> None:
    assert taken(kind, argument, "orders", asked) == ["orders"]
    assert taken(kind, argument, "{{ params.topic }}", asked) == ["orders"]
    assert taken(kind, argument, ("orders", "clicks"), asked) == ["orders", "clicks"]
    assert taken(kind, argument, (), asked) == []


@pytest.mark.parametrize(
    "value", ["", " ", "{{ params.none }}", ["orders", "{{ params.none }}"], [None], None], ids=str
)
@pytest.mark.parametrize(("kind", "argument"), TAKE_LISTS)
def test_an_empty_text_does_not_become_the_whole_link(
    asked: dict[str, Any], kind: Any, argument: str, value: Any
) -> None:
    with pytest.raises(
        AirflowFailException, match=f"^{argument}: .* is not a name; omit the argument for its default$"
    ):
        taken(kind, argument, value, asked)
    assert asked == {}
