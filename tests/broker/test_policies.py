"""What the rules say about lost topics, from the links file through the plan to what a running slot does."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from strait.config.links import parse
from strait.control.plane import Control
from strait.kafka.admin import Admin, NewTopic
from support.fixtures.waiting import eventually
from support.kafka.records import read_all
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

StartAt = Callable[[str], Control]


@pytest.fixture
def link(make_link: Callable[..., EngineLink], topic_name: str) -> EngineLink:
    found = make_link(topics={topic_name: 2})
    found.make_topics()
    return found


@pytest.fixture
def begin(link: EngineLink, topic_name: str) -> Iterator[StartAt]:
    """A control plane under which the link's topic has a rule."""
    made: list[Control] = []

    def make(on_loss: str) -> Control:
        topics = {"include": [topic_name], "rules": [{"match": ".*", "on_loss": on_loss}]}
        clusters = {"source": link.source.client_properties, "destination": link.destination.client_properties}
        links = {link.name: {"source": "source", "destination": "destination", "topics": topics}}
        named = {name: dict(properties) for name, properties in clusters.items()}
        made.append(Control(parse({"clusters": named, "links": links}, where="test"), link.name))
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
