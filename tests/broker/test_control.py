"""The control cycle against real brokers: what it creates, publishes and refuses."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from strait.config import naming
from strait.config.links import LinksFile, Topics, parse, with_topics
from strait.control.outcome import Outcome
from strait.control.plane import Control
from strait.errors import ConfigError, StateError
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.state.codec import encode
from strait.state.reader import StateReader
from strait.state.report_records import PartitionReport
from strait.state.schema import OffsetMapping
from strait.state.writer import StateWriter
from support.fixtures.waiting import eventually
from support.kafka.topics import alter, create, delete
from support.model.reports import plain_report

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


def produce(cluster: Any, topic: str, partition: int, count: int) -> None:
    producer = Producer(cluster.client_properties)
    for number in range(count):
        producer.produce(topic, value=str(number), partition=partition)
    assert producer.flush(30) == 0


def waits(outcome: Outcome) -> dict[str, str]:
    return {item.topic: item.reason for item in outcome.plan.waiting}


@pytest.mark.core
def test_a_first_cycle_creates_topics_and_publishes_plan_and_runs(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders", 3, max_message_bytes="3000000")
    outcome = control.apply()
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


@pytest.mark.core
def test_equal_facts_give_no_new_plan(clusters: Any, control: Control, make_file: MakeFile, link: str) -> None:
    create(clusters.source, f"{link}-orders", 2)
    first = control.apply()
    assert not control.apply().published
    with Control(make_file(), link) as later:
        again = later.apply()
    assert not again.published
    assert again.plan == first.plan


def test_proposing_changes_nothing(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders", 2)
    assert [item.topic for item in control.propose().create] == [f"{link}-orders"]
    topics = Admin(clusters.destination.client_properties, "b").observe(lambda _: False).topics
    assert not [topic for topic in topics if link in topic]


@pytest.mark.core
def test_a_new_topic_is_added_and_nothing_else_moves(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-m", 3)
    first = control.apply().plan
    create(clusters.source, f"{link}-a", 2)
    second = control.apply().plan
    assert second.version == 2
    assert second.producer_id == first.producer_id
    assert [topic for topic in second.topics if topic.source == f"{link}-m"] == list(first.topics)
    assert len(second.topics) == 2


@pytest.mark.core
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
        (new,) = control.apply().proposal.new.values()
    assert (new.source_base, new.destination_base) == (expected, 3)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("1970-01-01T00:00:06Z", (5, 0)),  # the sixth record of partition 0, and the first of partition 1 is younger
        (2_001, (2, 0)),
        (90_000_000, (10, 1)),
        ({"0": 7}, (7, 0)),
        ({"0": 10, "1": 1}, (10, 1)),
    ],
)
def test_copying_may_start_at_a_time_or_at_offsets(
    clusters: Any, make_file: MakeFile, link: str, start: Any, expected: tuple[int, int]
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic, 2, retention_ms="-1")
    producer = Producer(clusters.source.client_properties)
    for number in range(10):
        producer.produce(topic, value=b"x", partition=0, timestamp=(number + 1) * 1000)
    producer.produce(topic, value=b"x", partition=1, timestamp=60_000_000)
    assert producer.flush(30) == 0
    block = {"regex": [f"{link}-.*"], "rules": [{"match": f"{link}-ord.*", "start": start}]}
    with Control(make_file(topics=block, start="latest"), link) as control:
        new = control.apply().proposal.new
    assert tuple(begun.source_base for _, begun in sorted(new.items())) == expected


def test_an_offset_that_is_not_there_waits_until_it_is_corrected(clusters: Any, make_file: MakeFile, link: str) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic)
    produce(clusters.source, topic, 0, 10)
    with Control(make_file(start={"0": 11}), link) as control:
        outcome = control.apply()
        assert waits(outcome) == {topic: "start_out_of_range"}
        assert "names offset 11, and the source holds 0 to 9" in outcome.plan.waiting[0].detail
    with Control(make_file(start={"0": 10}), link) as control:
        assert waits(control.apply()) == {}


def test_what_the_destination_takes_and_the_source_stamps_is_in_the_plan(
    clusters: Any, control: Control, link: str
) -> None:
    create(clusters.source, f"{link}-orders", cleanup_policy="compact", message_timestamp_type="LogAppendTime")
    create(clusters.destination, f"{link}-orders", max_message_bytes="54321")
    (topic,) = control.apply().plan.topics
    assert topic.policy.max_message_bytes == 54321
    assert (topic.policy.source_compacted, topic.policy.source_append_time) == (True, True)
    alter(clusters.destination, f"{link}-orders", max_message_bytes="65432")

    def told() -> bool:
        return control.apply().plan.topics[0].policy.max_message_bytes == 65432

    eventually(told, what="the new limit in the plan")


def test_a_copy_of_a_stamping_topic_keeps_the_timestamps_it_is_given(
    clusters: Any, control: Control, link: str
) -> None:
    create(clusters.source, f"{link}-orders", message_timestamp_type="LogAppendTime")
    (topic,) = control.apply().plan.topics
    assert not topic.policy.destination_append_time
    made = Admin(clusters.destination.client_properties, "b").configs(f"{link}-orders", ["message.timestamp.type"])
    assert made == {"message.timestamp.type": "CreateTime"}


def ledger(clusters: Any, link: str) -> list[tuple[str, str, int, int, str]]:
    with StateReader(clusters.destination.client_properties, "b", link, follow=("losses",)) as state:
        state.catch_up()
        return [(loss.side, loss.cause, loss.from_offset, loss.to_offset, loss.action) for loss in state.losses]


def ruled(make_file: MakeFile, link: str, on_loss: str) -> LinksFile:
    return make_file(topics={"regex": [f"{link}-.*"], "rules": [{"match": ".*", "on_loss": on_loss}]})


def checkpoint(clusters: Any, link: str, run: OffsetMapping, sequence: int) -> None:
    """As a slot does it once a minute."""
    writer = StateWriter(clusters.destination.client_properties, "b", link)
    writer.write_run(run.model_copy(update={"sequence_end": sequence, "checkpoint_at_ms": run.checkpoint_at_ms + 1}))
    assert writer.flush(30)


@pytest.mark.core
@pytest.mark.parametrize(
    ("on_loss", "source_base", "action"), [("restart", 0, "restarted"), ("continue", 6, "continued")]
)
def test_a_destination_made_anew_is_filled_as_the_policy_says(
    clusters: Any, make_file: MakeFile, control: Control, link: str, on_loss: str, source_base: int, action: str
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic)
    produce(clusters.source, topic, 0, 10)
    (first,) = control.apply().proposal.first_runs(1)
    checkpoint(clusters, link, first, 6)
    delete(clusters.destination, topic)
    create(clusters.destination, topic)
    assert waits(control.apply()) == {topic: "destination_recreated"}
    halted = ("destination", "destination_recreated", 0, 6, "halted")
    assert ledger(clusters, link) == [halted]
    assert not control.apply().published
    with Control(ruled(make_file, link, on_loss), link) as allowed:
        outcome = allowed.apply()
        assert waits(outcome) == {}
        (new,) = outcome.proposal.new.values()
        assert (new.source_base, new.destination_base) == (source_base, 0)
        assert new.destination_id == outcome.plan.topics[0].destination_id
        assert ledger(clusters, link) == [halted, (*halted[:4], action)]
        assert not allowed.apply().published


@pytest.mark.parametrize("on_loss", ["restart", "continue"])
def test_a_source_made_anew_is_left_to_the_slot_as_the_policy_says(
    clusters: Any, make_file: MakeFile, control: Control, link: str, on_loss: str
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic)
    before = control.apply().plan.topics[0]
    delete(clusters.source, topic)
    create(clusters.source, topic)
    assert waits(control.apply()) == {topic: "source_recreated"}
    assert ledger(clusters, link) == [("source", "source_recreated", 0, 0, "halted")]
    with Control(ruled(make_file, link, on_loss), link) as allowed:
        outcome = allowed.apply()
    assert outcome.proposal.new == {}
    (after,) = outcome.plan.topics
    assert (after.source_id != before.source_id, after.slots) == (True, (0,))


def test_a_topic_that_may_not_be_created_waits(clusters: Any, make_file: MakeFile, link: str) -> None:
    create(clusters.source, f"{link}-orders")
    with Control(make_file(create_topics=False), link) as control:
        assert waits(control.apply()) == {f"{link}-orders": "destination_missing"}
        create(clusters.destination, f"{link}-orders")
        assert waits(control.apply()) == {}


def test_a_topic_that_cannot_be_created_waits_with_the_cause_and_stops_no_other(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    create(clusters.source, f"{link}-good")
    create(clusters.destination, f"{link}-good")
    with Control(make_file(replication_factor=1), link) as control:
        control.apply()
    create(clusters.source, f"{link}-bad")
    with Control(make_file(replication_factor=7), link) as control:
        outcome = control.apply()
        assert waits(outcome) == {f"{link}-bad": "destination_missing"}
        assert "INVALID_REPLICATION_FACTOR" in outcome.refused[f"{link}-bad"]
        assert [topic.source for topic in outcome.plan.topics] == [f"{link}-good"]
        assert not control.apply().published, "a topic that is refused again and again is no news"


def test_a_destination_with_its_own_clock_waits(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders")
    create(clusters.destination, f"{link}-orders", message_timestamp_type="LogAppendTime")
    assert waits(control.apply()) == {f"{link}-orders": "destination_log_append_time"}


@pytest.mark.core
@pytest.mark.parametrize("end", ["source", "destination"])
def test_a_topic_that_was_deleted_and_made_again_is_not_copied_on(
    clusters: Any, control: Control, link: str, end: str
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic)
    assert waits(control.apply()) == {}
    cluster = getattr(clusters, end)
    delete(cluster, topic)
    create(cluster, topic)
    outcome = control.apply()
    assert waits(outcome) == {topic: f"{end}_recreated"}
    assert outcome.plan.topics[0].slots == (None,)


def test_a_link_that_lost_its_map_starts_again_in_a_recreated_destination(
    clusters: Any, make_file: MakeFile, control: Control, link: str
) -> None:
    """The way out of `map_run_missing`, as its remedy has it, whether the rule or the topic changes first."""
    topic = f"{link}-orders"
    create(clusters.source, topic)
    control.apply()
    delete(clusters.destination, naming.map_topic(link))
    with Control(ruled(make_file, link, "restart"), link) as allowed:
        assert waits(allowed.apply()) == {}, "the slot looks whether it knows enough"
        assert allowed.propose().new == {}
    delete(clusters.destination, topic)
    create(clusters.destination, topic)
    for _ in range(2):
        with Control(make_file(topics={"regex": [f"{link}-.*"]}), link) as halted:
            assert waits(halted.apply()) == {topic: "destination_recreated"}
            assert not halted.apply().published
    with Control(ruled(make_file, link, "restart"), link) as allowed:
        outcome = allowed.apply()
    assert waits(outcome) == {}
    assert [(place.partition, new.source_base) for place, new in outcome.proposal.new.items()] == [(0, 0)]
    (entry, *_) = [loss for loss in ledger(clusters, link) if loss[-1] == "restarted"]
    assert entry == ("destination", "destination_recreated", 0, 0, "restarted")
    with Control(ruled(make_file, link, "restart"), link) as after:
        assert not after.apply().published


def test_a_topic_that_vanishes_from_the_source_is_missed_and_not_forgotten(
    clusters: Any, control: Control, link: str
) -> None:
    create(clusters.source, f"{link}-orders")
    control.apply()
    delete(clusters.source, f"{link}-orders")
    assert waits(control.apply()) == {f"{link}-orders": "source_missing"}
    assert not control.apply().published


def test_stopping_stays_until_somebody_starts_again(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders")
    assert control.apply(stopped=True).plan.stopped
    assert control.apply().plan.stopped
    assert not control.apply(stopped=False).plan.stopped


@pytest.mark.core
def test_racing_first_cycles_agree_on_one_producer_id_and_one_first_run(
    clusters: Any, make_file: MakeFile, link: str
) -> None:
    create(clusters.source, f"{link}-orders", 4)
    outcomes: list[Outcome] = []

    def cycle() -> None:
        with Control(make_file(), link) as control:
            outcomes.append(control.apply())

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


@pytest.mark.parametrize("late", ["it has read the plan", "it has shown its changes"])
def test_topics_that_another_control_plane_has_replaced_are_not_put_back(
    clusters: Any, make_file: MakeFile, link: str, late: str
) -> None:
    """`strait run` goes on with the Variable's topics, until `strait apply --from-file` replaces them."""
    variable, own = (f"{link}-orders", f"{link}-added"), (f"{link}-orders",)
    for topic in variable:
        create(clusters.source, topic, 1)
    file = make_file(topics={"include": [*own]})
    steered = with_topics(file.links[link], Topics(include=variable), where="Airflow Variable it")
    with Control(file.model_copy(update={"links": {link: steered}}), link) as airflow:
        assert planned(airflow.apply()) == set(variable)
    with Control(file, link) as running, Control(file, link) as replacing:
        assert running.settings_in_force(adopt=True).elsewhere == "Airflow Variable it"
        proposal = running.propose(stopped=True) if late == "it has shown its changes" else None
        assert planned(replacing.apply()) == set(own)
        assert planned(running.apply(proposal, stopped=True)) == set(own)
        assert running.settings_in_force().elsewhere == ""


def planned(outcome: Outcome) -> set[str]:
    return {topic.source for topic in outcome.plan.topics}


def test_a_lost_plan_topic_is_refused_rather_than_copied_anew(
    clusters: Any, control: Control, make_file: MakeFile, link: str
) -> None:
    create(clusters.source, f"{link}-orders")
    control.apply()
    delete(clusters.destination, naming.plan_topic(link))
    with Control(make_file(), link) as later, pytest.raises(StateError, match="its producer id is lost"):
        later.apply()


@pytest.mark.core
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
        assert control.apply().created == (f"{link}-orders.copy",)
        again = control.apply()
    assert not again.created
    assert not again.published


def test_a_loss_is_foreseen_from_what_slots_said_hours_ago(clusters: Any, control: Control, link: str) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic)
    control.apply()
    alter(clusters.destination, naming.reports_topic(link), message_timestamp_type="CreateTime")
    producer = Producer(clusters.destination.client_properties)
    now_ms = int(time.time() * 1000)

    def report(hours_ago: float, log_start: int) -> None:
        row = {"topic": topic, "partition": 0, "state": "copying", "position": 5000, "end": 9000, "lag_records": 4000}
        partition = PartitionReport(**row, lag_seconds=1.0, records=0, bytes=0, log_start=log_start)
        at_ms = now_ms - int(hours_ago * 3_600_000)
        key, value = encode(plain_report(link=link, at_ms=at_ms, partitions=(partition,)))
        producer.produce(naming.reports_topic(link), key=key, value=value, timestamp=at_ms)

    report(9, 900)  # beyond the window
    report(5, 1000)
    report(2, 1500)  # between the two looks
    report(0, 3000)
    assert producer.flush(30) == 0
    (row,) = control.status().partitions
    assert row.log_start == 3000
    assert row.seconds_to_loss == pytest.approx(5 * 3600, rel=0.01), "2000 records more, at 2000 in five hours"


def test_status_tells_of_a_plan_that_no_slot_follows(clusters: Any, control: Control, link: str) -> None:
    create(clusters.source, f"{link}-orders", 2)
    assert control.status().plan_version == 0
    control.apply()
    found = control.status()
    assert {(row.state, row.reason) for row in found.partitions} == {("waiting", "slot_silent")}
    assert len(control.status(f"{link}-orders").partitions) == 2
    with pytest.raises(ConfigError, match=f"its plan has no topic '{link}-order'; did you mean '{link}-orders'"):
        control.status(f"{link}-order")
