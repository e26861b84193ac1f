"""The control cycle against real brokers: what it creates, publishes and refuses."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewPartitions

from strait import naming
from strait.config import LinksFile, parse
from strait.control import Control, Outcome
from strait.errors import ConfigError, StateError
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition
from strait.state.store import StateReader
from support.waiting import eventually

pytestmark = pytest.mark.broker

MakeFile = Callable[..., LinksFile]


@pytest.fixture
def link(topic_name: str) -> str:
    return "c" + topic_name[-8:]


@pytest.fixture
def make_file(clusters: Any, link: str) -> MakeFile:
    """A links file with one link; every topic of the test begins with the link's name."""

    def make(**settings: Any) -> LinksFile:
        base = {
            "source": "a",
            "destination": "b",
            "topics": {"regex": [f"{link}-.*"]},
            "groups": {"default": {"slots": 2}},
        }
        raw = {
            "clusters": {
                "a": dict(clusters.source.client_properties),
                "b": dict(clusters.destination.client_properties),
            },
            "links": {link: base | settings},
        }
        return parse(raw, where="links file")

    return make


@pytest.fixture
def control(make_file: MakeFile, link: str) -> Iterator[Control]:
    with Control(make_file(), link) as found:
        yield found


def create(cluster: Any, topic: str, partitions: int = 1, **configs: str) -> None:
    configs = {name.replace("_", "."): value for name, value in configs.items()}
    Admin(cluster.client_properties, "x").create([NewTopic(topic, partitions, 1, configs)])


def delete(cluster: Any, topic: str) -> None:
    admin = AdminClient(cluster.client_properties)
    admin.delete_topics([topic])[topic].result(30)
    eventually(lambda: topic not in admin.list_topics(timeout=10).topics, what=f"the end of {topic}")


def produce(cluster: Any, topic: str, partition: int, count: int) -> None:
    producer = Producer(cluster.client_properties)
    for number in range(count):
        producer.produce(topic, value=str(number), partition=partition)
    assert producer.flush(30) == 0


def waits(outcome: Outcome) -> dict[str, str]:
    return {item.topic: item.reason for item in outcome.plan.waiting}


def test_a_first_cycle_creates_topics_and_publishes_plan_and_runs(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders", 3, max_message_bytes="3000000")
    outcome = control.run_cycle()
    assert outcome.created == (f"{link}-orders",)
    assert outcome.published
    assert outcome.plan.version == 1
    (topic,) = outcome.plan.topics
    assert topic.slots == (0, 1, 0)
    made = Admin(clusters.destination.client_properties, "b").observe(
        lambda name: name == f"{link}-orders", ("max.message.bytes", "message.timestamp.type")
    )
    assert made.topics[topic.destination].topic_id == topic.destination_id
    assert made.topics[topic.destination].partitions == 3
    assert made.topics[topic.destination].configs == {
        "max.message.bytes": "3000000",
        "message.timestamp.type": "CreateTime",
    }
    with StateReader(clusters.destination.client_properties, "b", link) as state:
        state.catch_up()
        assert state.plans["default"] == outcome.plan
        assert sorted(state.runs) == [(f"{link}-orders", number) for number in range(3)]


def test_equal_facts_give_no_new_plan(clusters: Any, control: Control, make_file: MakeFile, link: str) -> None:
    create(clusters.source, f"{link}-orders", 2)
    first = control.run_cycle()
    assert not control.run_cycle().published
    with Control(make_file(), link) as later:
        again = later.run_cycle()
    assert not again.published
    assert again.plan == first.plan


def test_proposing_changes_nothing(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders", 2)
    assert [item.topic for item in control.propose().create] == [f"{link}-orders"]
    topics = Admin(clusters.destination.client_properties, "b").observe(lambda _: False).topics
    assert not [topic for topic in topics if link in topic]


def test_a_new_topic_is_added_and_nothing_else_moves(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-m", 3)
    first = control.run_cycle().plan
    create(clusters.source, f"{link}-a", 2)
    second = control.run_cycle().plan
    assert second.version == 2
    assert second.producer_id == first.producer_id
    assert [topic for topic in second.topics if topic.source == f"{link}-m"] == list(first.topics)
    assert len(second.topics) == 2


@pytest.mark.parametrize(("start", "expected"), [("earliest", 4), ("latest", 10)])
def test_copying_starts_where_the_source_is_told_to_and_where_the_destination_ends(
    clusters: Any, make_file: MakeFile, link: str, start: str, expected: int
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic)
    create(clusters.destination, topic)
    produce(clusters.source, topic, 0, 10)
    produce(clusters.destination, topic, 0, 3)
    admin = AdminClient(clusters.source.client_properties)
    for deleted in admin.delete_records([Place(topic, 0, 4)]).values():
        deleted.result(30)
    with Control(make_file(start=start), link) as control:
        (new,) = control.run_cycle().proposal.new.values()
    assert (new.source_base, new.destination_base) == (expected, 3)


def test_a_topic_that_may_not_be_created_waits(clusters: Any, make_file: MakeFile, link: str) -> None:
    create(clusters.source, f"{link}-orders")
    with Control(make_file(create_topics=False), link) as control:
        assert waits(control.run_cycle()) == {f"{link}-orders": "destination_missing"}
        create(clusters.destination, f"{link}-orders")
        assert waits(control.run_cycle()) == {}


def test_a_topic_that_cannot_be_created_waits_with_the_cause_and_stops_no_other(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    create(clusters.source, f"{link}-bad")
    create(clusters.source, f"{link}-good")
    create(clusters.destination, f"{link}-good")
    with Control(make_file(replication_factor=1), link) as control:
        control.run_cycle()
    delete(clusters.destination, f"{link}-bad")
    with Control(make_file(replication_factor=7), link) as control:
        outcome = control.run_cycle()
        assert waits(outcome) == {f"{link}-bad": "destination_missing"}
        assert "INVALID_REPLICATION_FACTOR" in outcome.refused[f"{link}-bad"]
        assert [topic.source for topic in outcome.plan.topics] == [f"{link}-good"]
        assert not control.run_cycle().published, "a topic that is refused again and again is no news"


def test_partitions_that_the_destination_lacks_wait_until_they_are_there(
    clusters: Any, control: Control, link: str
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic, 3)
    create(clusters.destination, topic, 2)
    outcome = control.run_cycle()
    assert waits(outcome) == {topic: "destination_has_fewer_partitions"}
    assert outcome.plan.topics[0].slots == (0, 1, None)
    admin = AdminClient(clusters.destination.client_properties)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    assert control.run_cycle().plan.topics[0].slots == (0, 1, 0)


def test_a_destination_with_its_own_clock_waits(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders")
    create(clusters.destination, f"{link}-orders", message_timestamp_type="LogAppendTime")
    assert waits(control.run_cycle()) == {f"{link}-orders": "destination_log_append_time"}


@pytest.mark.parametrize("end", ["source", "destination"])
def test_a_topic_that_was_deleted_and_made_again_is_not_copied_on(
    clusters: Any, control: Control, link: str, end: str
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic)
    assert waits(control.run_cycle()) == {}
    cluster = getattr(clusters, end)
    delete(cluster, topic)
    create(cluster, topic)
    outcome = control.run_cycle()
    assert waits(outcome) == {topic: f"{end}_recreated"}
    assert outcome.plan.topics[0].slots == (None,)


def test_a_topic_that_vanishes_from_the_source_is_missed_and_not_forgotten(
    clusters: Any, control: Control, link: str
) -> None:
    create(clusters.source, f"{link}-orders")
    control.run_cycle()
    delete(clusters.source, f"{link}-orders")
    assert waits(control.run_cycle()) == {f"{link}-orders": "source_missing"}
    assert not control.run_cycle().published


def test_stopping_stays_until_somebody_starts_again(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders")
    assert control.run_cycle(stopped=True).plan.stopped
    assert control.run_cycle().plan.stopped
    assert not control.run_cycle(stopped=False).plan.stopped


def test_racing_first_cycles_agree_on_one_producer_id_and_one_first_run(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    create(clusters.source, f"{link}-orders", 4)
    outcomes: list[Outcome] = []

    def cycle() -> None:
        with Control(make_file(), link) as control:
            outcomes.append(control.run_cycle())

    threads = [threading.Thread(target=cycle, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(outcomes) == 4
    assert len({outcome.plan.producer_id for outcome in outcomes}) == 1
    publications = [outcome for outcome in outcomes if outcome.published]
    versions = sorted(outcome.plan.version for outcome in publications)
    assert versions == list(range(1, len(versions) + 1))
    first_runs = [tp for outcome in publications for tp in outcome.proposal.new]
    assert sorted(first_runs) == [TopicPartition(f"{link}-orders", number) for number in range(4)]


def test_a_lost_plan_topic_is_refused_rather_than_copied_anew(
    clusters: Any, control: Control, make_file: MakeFile, link: str
) -> None:
    create(clusters.source, f"{link}-orders")
    control.run_cycle()
    delete(clusters.destination, naming.plan_topic(link))
    with Control(make_file(), link) as later, pytest.raises(StateError, match="its producer id is lost"):
        later.run_cycle()


def test_two_names_for_one_cluster_are_found_out(clusters: Any, make_file: MakeFile, link: str) -> None:
    file = make_file()
    same = dict(clusters.source.client_properties)
    with (
        Control(file.model_copy(update={"clusters": {"a": same, "b": same}}), link) as control,
        pytest.raises(ConfigError, match="source a and destination b are the same Kafka cluster"),
    ):
        control.propose()


def test_one_cluster_is_copied_within_under_other_names_and_only_once(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    create(clusters.source, f"{link}-orders")
    file = make_file(naming={"policy": "suffix", "suffix": ".copy"})
    same = dict(clusters.source.client_properties)
    with Control(file.model_copy(update={"clusters": {"a": same, "b": same}}), link) as control:
        assert control.run_cycle().created == (f"{link}-orders.copy",)
        again = control.run_cycle()
    assert not again.created
    assert not again.published


def test_status_tells_of_a_plan_that_no_slot_follows(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders", 2)
    assert control.status().plan_version == 0
    control.run_cycle()
    found = control.status()
    assert {(row.state, row.reason) for row in found.partitions} == {("waiting", "slot_silent")}
    assert len(control.status(f"{link}-orders").partitions) == 2
    assert control.status("something-else").partitions == ()
