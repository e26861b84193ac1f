"""Hours of topics that a link has replicated completely, between two real clusters."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config import links
from strait.control.hours import LinkHours
from strait.control.pausing import pause, resume
from strait.control.plane import Control
from strait.kafka.admin import Admin, NewTopic
from strait.planning.plan.pauses import Scope
from strait.planning.status.complete_hours import HOUR_MS, key_of, told_by
from strait.state.link_handle import ConfiguredLink
from strait.waiting import unix_ms
from support.fixtures.waiting import eventually
from support.links.copying import copying

pytestmark = pytest.mark.broker

NOW_MS = unix_ms() // HOUR_MS * HOUR_MS
NINE = NOW_MS - 10 * HOUR_MS
MINUTE_MS = 60_000


class Scene:
    """A link of one topic with two partitions, of which records are written into the first."""

    def __init__(self, clusters: Any, folder: Path, **configs: str) -> None:
        self.topic = f"h-{uuid.uuid4().hex[:8]}"
        self.clusters = clusters
        both = {"a": clusters.source.client_properties, "b": clusters.destination.client_properties}
        topics = {"include": [self.topic], "rules": [{"match": ".*", "on_loss": "restart"}]}
        settings = {"source": "a", "destination": "b", "topics": topics, "assets": {"hourly": [self.topic]}}
        self.file = links.parse({"clusters": both, "links": {self.topic: settings}}, where="test")
        self.link = ConfiguredLink.of(self.file, self.topic)
        self.source = Admin(clusters.source.client_properties, "a")
        self.source.create([NewTopic(self.topic, 2, 1, configs)])
        self.hours = LinkHours(self.link)
        self.folder = folder

    def write(self, *at_ms: int) -> None:
        producer, failed = Producer(self.clusters.source.client_properties), []
        for one in at_ms:
            producer.produce(
                self.topic, b"v", partition=0, timestamp=one, on_delivery=lambda error, _: failed.append(error)
            )
        assert producer.flush(30) == 0
        assert set(failed) == {None}

    def replicating(self) -> ExitStack:
        stack = ExitStack()
        stack.enter_context(copying(stack.enter_context(Control(self.file, self.topic)), self.folder))
        return stack

    def complete(self, next_ms: int, now_ms: int = NOW_MS) -> list[str]:
        with self.link.state("plan", "reports") as state:
            state.catch_up()
            found = self.hours.complete(state, {self.topic: next_ms}, now_ms).get(self.topic, [])
        return [key_of(start)[11:16] for start in found]

    def is_followed(self) -> bool:
        """Whether every slot that reports follows the newest plan."""
        with self.link.state("plan", "reports") as state:
            state.catch_up()
            return {state.plans[group].version for (group, _), parts in state.reports.items() for report in parts} == {
                report.plan_version for parts in state.reports.values() for report in parts
            }

    def wait(self, next_ms: int, hours: int, now_ms: int = NOW_MS) -> None:
        eventually(lambda: len(self.complete(next_ms, now_ms)) == hours, what=f"{hours} complete hours")

    def events(self, next_ms: int, hours: int, told: Any = None) -> list[dict[str, Any]]:
        starts = [next_ms + number * HOUR_MS for number in range(hours)]
        with self.link.state("plan", "reports") as state:
            state.catch_up()
            return list(self.hours.events(state, self.topic, starts, told))


@pytest.fixture
def scene(clusters: Any, tmp_path: Path) -> Iterator[Scene]:
    return Scene(clusters, tmp_path)


@pytest.mark.core
def test_each_hour_has_its_records_and_a_late_one_is_in_the_hour_in_which_it_arrives(scene):
    scene.write(NINE - 1, NINE + MINUTE_MS, NINE + HOUR_MS - 1, NINE + HOUR_MS - 2)
    with scene.replicating():
        scene.wait(NINE, 6)
        assert scene.complete(NINE, NINE + HOUR_MS + MINUTE_MS - 1) == []
        scene.hours = LinkHours(scene.link)
        scene.write(NINE + HOUR_MS + 5 * MINUTE_MS, NINE + 2, NINE + 2 * HOUR_MS + 2 * MINUTE_MS)
        scene.wait(NINE, 6)
        first, second, third = scene.events(NINE, 3)
        assert [one["hour"] for one in (first, second, third)] == [key_of(NINE + n * HOUR_MS) for n in range(3)]
        assert [one["source"]["0"] for one in (first, second, third)] == [[1, 4], [4, 6], [6, 7]]
        assert [one["source"]["1"] for one in (first, second, third)] == [[0, 0]] * 3, "it is idle, and delays nothing"
        assert [one["destination"]["0"] for one in (first, second, third)] == [[1, 4], [4, 6], [6, 7]]
        assert first["destination_topic"] == scene.topic
        (again,) = scene.events(NINE + HOUR_MS, 1, told_by(first))
        assert again == second, "whoever continues after an event gets the same"


def test_what_is_paused_is_waited_for_and_then_all_hours_follow(scene):
    scene.write(NINE + 1)
    with scene.replicating():
        scene.wait(NINE, 6)
        pause(scene.link, Scope(scene.topic), by="ann", reason="")
        eventually(scene.is_followed, what="the slot follows the pause")
        scene.hours = LinkHours(scene.link)
        scene.write(NINE + 2 * HOUR_MS + 2 * MINUTE_MS)
        assert len(scene.complete(NINE)) <= 2, "none from the record on that is not replicated"
        resume(scene.link, Scope(scene.topic))
        scene.wait(NINE, 6)


def test_a_timestamp_in_the_future_hides_no_record(clusters, tmp_path):
    """All later records would follow the 'first record of the next hour'. Kafka 4.0 and later reject it by default."""
    accepts = {"message.timestamp.after.max.ms": str(10**12)}
    scene = Scene(clusters, tmp_path, **accepts)
    Admin(clusters.destination.client_properties, "b").create([NewTopic(scene.topic, 2, 1, accepts)])
    scene.write(NOW_MS + 900 * HOUR_MS, NINE + 1, NINE + 2)
    with scene.replicating():
        scene.wait(NINE, 1, NINE + HOUR_MS + MINUTE_MS)
        (event,) = scene.events(NINE, 1)
        assert event["source"]["0"][1] == 3


def test_with_log_append_time_the_brokers_clock_counts(clusters, tmp_path):
    scene = Scene(clusters, tmp_path, **{"message.timestamp.type": "LogAppendTime"})
    scene.write(1_000, NINE)
    with scene.replicating():
        this_hour = unix_ms() // HOUR_MS * HOUR_MS
        scene.wait(this_hour - HOUR_MS, 2, this_hour + HOUR_MS + MINUTE_MS)
        before, now = scene.events(this_hour - HOUR_MS, 2)
        assert sum(one["source"]["0"][1] - one["source"]["0"][0] for one in (before, now)) == 2
        assert now["source"]["0"][1] == 2


def test_of_a_topic_that_is_created_again_nothing_is_complete_before_it_is_replicated(scene):
    scene.write(NINE + 1, NINE + 2)
    with scene.replicating():
        scene.wait(NINE, 6)
        (first,) = scene.events(NINE, 1)
    scene.source.delete_each([scene.topic]).or_raise()
    eventually(lambda: scene.topic not in scene.source.observe(lambda _: True).topics, what="it is deleted")
    scene.source.create([NewTopic(scene.topic, 2, 1)])
    scene.write(NINE + HOUR_MS + 1)
    scene.hours = LinkHours(scene.link)
    assert scene.complete(NINE + HOUR_MS) == []
    with scene.replicating():
        scene.wait(NINE + HOUR_MS, 6)
        (event,) = scene.events(NINE + HOUR_MS, 1, told_by(first))
        assert event["created_again"] and event["source"]["0"] == [0, 1]
