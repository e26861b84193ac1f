"""What the rules say about lost topics, from the links file through the plan to what a running slot does."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from strait.config.links import LinksFile, parse
from strait.control.plane import Control
from strait.control.resolving import resolve
from strait.errors import ConfigError
from strait.kafka.admin import Admin, NewTopic
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import Plan
from support.fixtures.waiting import eventually
from support.kafka.records import read_all
from support.kafka.topics import delete, exists
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

StartAt = Callable[[str], Control]


@pytest.fixture
def link(make_link: Callable[..., EngineLink], topic_name: str) -> EngineLink:
    found = make_link(topics={topic_name: 2})
    found.make_topics()
    return found


def file_of(link: EngineLink, topic: str, on_loss: str = "halt") -> LinksFile:
    topics = {"include": [topic], "rules": [{"match": ".*", "on_loss": on_loss}]}
    clusters = {"source": link.source.client_properties, "destination": link.destination.client_properties}
    links = {link.name: {"source": "source", "destination": "destination", "topics": topics}}
    named = {name: dict(properties) for name, properties in clusters.items()}
    return parse({"clusters": named, "links": links}, where="test")


@pytest.fixture
def begin(link: EngineLink, topic_name: str) -> Iterator[StartAt]:
    """A control plane under which the link's topic has a rule."""
    made: list[Control] = []

    def make(on_loss: str) -> Control:
        made.append(Control(file_of(link, topic_name, on_loss), link.name))
        return made[-1]

    yield make
    for control in made:
        control.close()


def produce(link: EngineLink, topic: str, *values: str) -> None:
    producer = Producer(link.source.client_properties)
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % 2)
    assert producer.flush(60) == 0


def make_anew(cluster: Any, topic: str) -> None:
    admin = AdminClient(cluster.client_properties)
    admin.delete_topics([topic])[topic].result(60)

    def create() -> bool:
        made = Admin(cluster.client_properties, "x").create([NewTopic(topic, 2, 1)])
        return made == [topic]  # not there any more, everywhere

    eventually(create, what=f"another {topic}")


def texts(prefix: str, count: int) -> list[str]:
    return [f"{prefix} {number}" for number in range(count)]


def copied(link: EngineLink, topic: str) -> list[str]:
    """Every value, of one partition after the other."""
    return [str(record.value, "ascii") for records in read_all(link.destination, topic, 2) for record in records]


def in_partitions(*values: str) -> list[str]:
    return [*values[::2], *values[1::2]]


def noted(link: EngineLink) -> set[tuple[int, str, str]]:
    return {(loss.partition, loss.cause, loss.action) for loss in link.losses()}


def test_a_source_made_anew_is_copied_behind_the_old_one_once_the_rule_allows_it(
    link: EngineLink, begin: StartAt, topic_name: str
) -> None:
    old, new = texts("old", 100), texts("new", 60)
    produce(link, topic_name, *old)
    begin("halt").apply()
    link.start_slot()
    link.until_copied()
    make_anew(link.source, topic_name)
    produce(link, topic_name, *new)
    waiting = begin("halt").apply().plan.waiting
    assert [(item.reason, item.partitions) for item in waiting] == [("source_recreated", (0, 1))]
    assert noted(link) == {(0, "source_recreated", "halted"), (1, "source_recreated", "halted")}
    assert begin("restart").apply().plan.waiting == ()
    link.until_copied(160)
    assert copied(link, topic_name) == [*old[::2], *new[::2], *old[1::2], *new[1::2]]
    assert noted(link) >= {(0, "source_recreated", "restarted"), (1, "source_recreated", "restarted")}
    assert not begin("halt").apply().plan.waiting, "once it is begun there is nothing to decide"
    produce(link, topic_name, "one", "more")
    link.until_copied(162)


@pytest.mark.core
def test_a_destination_made_anew_gets_all_that_the_source_has(
    link: EngineLink, begin: StartAt, topic_name: str
) -> None:
    produce(link, topic_name, *texts("x", 100))
    begin("restart").apply()
    link.start_slot()
    link.until_copied()
    make_anew(link.destination, topic_name)
    assert begin("restart").apply().published
    link.until_copied()
    link.assert_equal()
    assert noted(link) == {(0, "destination_recreated", "restarted"), (1, "destination_recreated", "restarted")}


def test_a_destination_made_anew_may_go_on_where_the_copy_was(
    link: EngineLink, begin: StartAt, topic_name: str
) -> None:
    produce(link, topic_name, *texts("old", 100))
    control = begin("continue")
    control.apply()
    slot = link.start_slot()
    link.until_copied()
    control.apply(stopped=True)
    slot.wait(60)  # and what it has copied is confirmed in the map
    make_anew(link.destination, topic_name)
    produce(link, topic_name, *texts("new", 10))
    control.apply(stopped=False)
    link.start_slot()
    link.until_copied(10)
    assert copied(link, topic_name) == in_partitions(*texts("new", 10))
    assert noted(link) == {(0, "destination_recreated", "continued"), (1, "destination_recreated", "continued")}
    assert {(loss.from_offset, loss.to_offset) for loss in link.losses()} == {(0, 50)}


def in_force(control: Control) -> Plan:
    found = control.propose().previous
    assert found is not None
    return found


def copy_and_stop(link: EngineLink, control: Control, topic: str, *values: str) -> None:
    """Until what was copied is confirmed in the map."""
    produce(link, topic, *values)
    control.apply()
    slot = link.start_slot()
    link.until_copied()
    control.apply(stopped=True)
    slot.wait(60)
    control.apply(stopped=False)


@pytest.mark.parametrize("action", ["continue", "restart"])
def test_a_deleted_destination_is_created_again_once_somebody_decides_and_the_decision_is_over_then(
    link: EngineLink, begin: StartAt, topic_name: str, action: Any
) -> None:
    old, new = texts("old", 100), texts("new", 10)
    control, file = begin("halt"), file_of(link, topic_name)
    copy_and_stop(link, control, topic_name, *old)
    with pytest.raises(ConfigError, match="nothing to resolve"):
        resolve(ConfiguredLink.of(file, link.name), topic_name, action, by="ann", reason="")
    for again in (False, True):
        delete(link.destination, topic_name)
        (waiting,) = control.apply().plan.waiting
        assert (waiting.reason, waiting.partitions) == ("destination_deleted", (0, 1))
        assert (
            f"had copied {110 if again and action == 'restart' else 10 if again else 100:,} records" in waiting.detail
        )
        assert "source still has" in waiting.detail
        assert control.propose().actions == ()
        assert not exists(link.destination, topic_name)
        if again:
            break
        assert noted(link) == {(0, "destination_deleted", "halted"), (1, "destination_deleted", "halted")}
        resolve(ConfiguredLink.of(file, link.name), topic_name, action, by="ann", reason="a mistake")
        (waiting,) = in_force(control).waiting
        assert "decided by ann" in waiting.detail
        produce(link, topic_name, *new)
        outcome = control.apply()
        assert (outcome.created, outcome.plan.waiting) == ((topic_name,), ())
        slot = link.start_slot()
        expected = in_partitions(*([] if action == "continue" else old), *new)
        link.until_copied(len(expected))
        assert sorted(copied(link, topic_name)) == sorted(expected)
        losses = [loss for loss in link.losses() if loss.cause == "destination_recreated"]
        assert [loss.action for loss in losses] == ["continued" if action == "continue" else "restarted"] * 2
        assert all("decided by ann" in loss.detail and "a mistake" in loss.detail for loss in losses)
        control.apply()
        assert in_force(control).decisions == ()
        assert not control.apply().published
        control.apply(stopped=True)
        slot.wait(60)
        control.apply(stopped=False)


def test_a_source_made_anew_is_copied_once_somebody_decides_and_the_next_one_waits_again(
    link: EngineLink, begin: StartAt, topic_name: str
) -> None:
    control, file = begin("halt"), file_of(link, topic_name)
    produce(link, topic_name, *texts("old", 100))
    control.apply()
    link.start_slot()
    link.until_copied()
    delete(link.source, topic_name)
    (missing,) = control.apply().plan.waiting
    assert missing.reason == "source_missing"
    assert "does not have topic" in missing.detail and f"they stay in {topic_name}" in missing.detail
    with pytest.raises(ConfigError, match="the source does not have it"):
        resolve(ConfiguredLink.of(file, link.name), topic_name, "restart", by="ann", reason="")
    eventually(
        lambda: Admin(link.source.client_properties, "x").create([NewTopic(topic_name, 2, 1)]) == [topic_name],
        what="it is created again",
    )
    produce(link, topic_name, *texts("new", 60))
    (waiting,) = control.apply().plan.waiting
    assert waiting.reason == "source_recreated"
    resolve(ConfiguredLink.of(file, link.name), topic_name, "restart", by="ann", reason="")
    assert control.apply().plan.waiting == ()
    link.until_copied(160)
    eventually(lambda: control.apply().plan.decisions == (), what="the decision is over")
    assert in_force(control).topics[0].policy.on_loss == "halt"
    make_anew(link.source, topic_name)
    (waiting,) = control.apply().plan.waiting
    assert waiting.reason == "source_recreated"
