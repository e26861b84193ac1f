"""The state topics on a real broker: what is written is read, what cannot be read harms nobody."""

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from strait.config import naming
from strait.control.executor import harden_state_topics
from strait.embedded.kafka import Cluster
from strait.errors import ClusterUnavailable, StateError
from strait.kafka.admin import Admin, NewTopic
from strait.kafka.reading import read_topic
from strait.model import TopicFacts, TopicPartition
from strait.planning.risks.state_safety import state_changes
from strait.state.codec import encode, encode_key, run_key
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Loss, Plan
from strait.state.segments import SEGMENT_CONFIGS
from strait.state.topics import ensure_state_topics
from strait.state.writer import StateWriter
from support.fixtures.waiting import eventually
from support.kafka.topics import alter
from support.model.reports import plain_report, plain_run

pytestmark = pytest.mark.broker


def plan(link: str, version: int = 1) -> Plan:
    return Plan(link=link, group="default", version=version, producer_id=1, slots=1, published_at_ms=0)


def report(link: str, partitions: int = 1, application: str = "app", part: int = 0, parts: int = 1) -> Report:
    return plain_report(
        link=link,
        part=part,
        parts=parts,
        application=application,
        partitions=tuple(
            PartitionReport(
                topic="t",
                partition=number,
                state="copying",
                position=1,
                end=1,
                lag_records=0,
                lag_seconds=0.0,
                records=1,
                bytes=1,
            )
            for number in range(partitions)
        ),
    )


@pytest.fixture
def link(cluster: Cluster, topic_name: str) -> str:
    """Its state topics are there and empty."""
    name = topic_name.replace(".", "-")[-50:]
    ensure_state_topics(Admin(cluster.client_properties, "b"), name, None)
    return name


@pytest.fixture
def reader(cluster: Cluster, link: str) -> Iterator[StateReader]:
    with StateReader(cluster.client_properties, "b", link, follow=("plan", "map", "reports")) as found:
        found.catch_up()
        yield found


@pytest.fixture
def writer(cluster: Cluster, link: str) -> StateWriter:
    return StateWriter(cluster.client_properties, "b", link)


def publish(cluster: Cluster, link: str, state: StateReader, *plans: Plan) -> None:
    for item in plans:
        with ControlPublisher(cluster.client_properties, "b", link).exclusive(state) as publication:
            publication.publish([item], [plain_run()] if item.version == 1 else [])


def write_raw(cluster: Cluster, topic: str, key: bytes, value: bytes | None) -> None:
    producer = Producer(cluster.client_properties)
    producer.produce(topic, key=key, value=value)
    assert producer.flush(30) == 0


def test_a_link_without_state_topics_has_empty_state(cluster: Cluster, topic_name: str) -> None:
    with StateReader(cluster.client_properties, "b", topic_name) as state:
        state.catch_up()
        assert (state.plans, state.runs, state.trouble) == ({}, {}, None)


def test_state_topics_that_were_made_anew_are_read_from_their_start(
    cluster: Cluster, link: str, reader: StateReader, writer: StateWriter
) -> None:
    """By another control plane or an operator, while a control plane waits for its next cycle."""
    for version in range(1, 6):
        publish(cluster, link, reader, plan(link).model_copy(update={"version": version}))
    reader.catch_up()
    assert (reader.plans["default"].version, {partition for _, partition in reader.runs}) == (5, {0})
    admin, topics = Admin(cluster.client_properties, "b"), [naming.plan_topic(link), naming.map_topic(link)]
    admin.delete_each(topics).or_raise()
    eventually(lambda: not {*topics} & admin.observe({*topics}.__contains__).topics.keys(), what="they are deleted")
    ensure_state_topics(admin, link, None)
    writer.write_run(plain_run(partition=7))
    assert writer.flush(30)
    reader.catch_up()
    assert (reader.plans, {partition for _, partition in reader.runs}) == ({}, {7})
    publish(cluster, link, reader, plan(link))
    reader.catch_up()
    assert reader.plans["default"].version == 1


def test_state_topics_that_are_made_later_are_found(cluster: Cluster, topic_name: str) -> None:
    with StateReader(cluster.client_properties, "b", topic_name) as state:
        state.catch_up()
        ensure_state_topics(Admin(cluster.client_properties, "b"), topic_name, None)
        publish(cluster, topic_name, state, plan(topic_name))
        state.catch_up()
        assert state.plans["default"].version == 1


@pytest.mark.core
def test_what_is_published_is_read_by_whoever_comes_later(cluster: Cluster, link: str, reader: StateReader) -> None:
    publish(cluster, link, reader, plan(link, 1), plan(link, 2))
    with StateReader(cluster.client_properties, "b", link) as later:
        later.catch_up()
        assert later.plans["default"].version == 2
        assert later.runs["t", 0] == (plain_run(),)


def test_a_follower_hears_of_a_plan_by_polling(cluster: Cluster, link: str, reader: StateReader) -> None:
    with StateReader(cluster.client_properties, "b", link) as control:
        publish(cluster, link, control, plan(link))
    assert eventually(reader.poll, what="news of a plan")
    eventually(lambda: reader.poll() or "default" in reader.plans, what="the plan")
    assert not reader.poll()


def test_a_reader_that_has_caught_up_fetches_nothing_until_it_looks_again(
    cluster: Cluster, link: str, writer: StateWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    statistics = {"statistics.interval.ms": 100, "stats_cb": told.append}
    monkeypatch.setattr("strait.kafka.clients.Consumer", lambda config, **more: Consumer(config | statistics, **more))
    with StateReader(cluster.client_properties, "b", link) as reader:
        reader.catch_up()
        time.sleep(2)
        reader.poll()  # hears what was told meanwhile
        rested = [fetches(json.loads(text)) for text in told]
        assert len(rested) > 10
        assert rested[-1] - rested[len(rested) // 2] == 0, rested
        writer.write_run(plain_run())
        assert writer.flush(30)
        eventually(lambda: reader.poll() or reader.runs, what="the run that came after the rest")
        told.clear()
        for _ in range(20):
            reader.poll(0.1)
        assert fetches(json.loads(told[-1])) > fetches(json.loads(told[0])), "a follower fetches all the time"
        reader.catch_up()
        assert reader.runs["t", 0] == (plain_run(),)


def fetches(statistics: Any) -> int:
    """How many fetch requests a client has sent."""
    return sum(broker["req"].get("Fetch", 0) for broker in statistics["brokers"].values())


def test_a_slot_writes_checkpoints_and_hears_that_they_are_safe(
    link: str, writer: StateWriter, reader: StateReader
) -> None:
    acknowledged: list[Any] = []
    writer.write_run(plain_run(sequence_end=5), acknowledged.append)
    assert acknowledged == []
    assert writer.flush(30)
    assert acknowledged == [None]
    reader.catch_up()
    assert reader.runs["t", 0][0].sequence_end == 5


def test_the_last_run_written_under_a_key_is_the_one_that_stays(writer: StateWriter, reader: StateReader) -> None:
    for end in range(5000):
        writer.write_run(plain_run(sequence_end=end))
    assert writer.flush(30)
    reader.catch_up()
    assert reader.runs["t", 0][0].sequence_end == 4999


@pytest.mark.core
def test_no_record_is_missed_however_many_come_at_once(writer: StateWriter, reader: StateReader) -> None:
    for partition in range(5000):
        writer.write_run(plain_run(partition=partition))
    assert writer.flush(30)
    reader.catch_up()
    assert len(reader.runs) == 5000


@pytest.mark.parametrize("hours", [-48, 48])
def test_a_host_whose_clock_is_wrong_writes_its_state(cluster: Cluster, link: str, hours: int) -> None:
    """Kafka refuses a record whose time is more than an hour ahead of the broker's."""
    for name in (
        naming.plan_topic,
        naming.map_topic,
        naming.reports_topic,
        naming.losses_topic,
        naming.quarantine_topic,
    ):
        topic = name(link)
        producer = Producer(cluster.client_properties)
        refused = []
        producer.produce(
            topic,
            key=b"k",
            timestamp=int((time.time() + hours * 3600) * 1000),
            on_delivery=lambda error, _, refused=refused: refused.append(error),
        )
        assert producer.flush(30) == 0
        assert refused == [None], topic


def test_a_state_topic_that_takes_nothing_is_named_in_the_log(
    cluster: Cluster, link: str, writer: StateWriter, caplog: pytest.LogCaptureFixture
) -> None:
    """A report cannot say that reports are not written."""
    alter(cluster, naming.reports_topic(link), max_message_bytes="10")
    for _ in range(3):
        writer.write_report(report(link))
        assert writer.flush(30)
    assert writer.dropped_reports == 3
    (line,) = [record.getMessage() for record in caplog.records if record.name.startswith("strait.state")]
    assert f"writing to {naming.reports_topic(link)}" in line


def test_a_tombstone_takes_a_run_away(cluster: Cluster, link: str, writer: StateWriter, reader: StateReader) -> None:
    writer.write_run(plain_run())
    assert writer.flush(30)
    write_raw(cluster, naming.map_topic(link), encode_key(run_key(plain_run())), None)
    reader.catch_up()
    assert reader.runs == {}


def test_reports_of_every_part_and_application_are_kept_apart(
    link: str, writer: StateWriter, reader: StateReader
) -> None:
    for item in (report(link, part=0, parts=2), report(link, part=1, parts=2), report(link, application="other")):
        writer.write_report(item)
    assert writer.flush(30)
    reader.catch_up()
    assert [(item.application, item.part) for item in reader.reports["default", 0]] == [
        ("app", 0),
        ("app", 1),
        ("other", 0),
    ]


def test_ten_thousand_partitions_fit_into_one_report(link: str, writer: StateWriter, reader: StateReader) -> None:
    writer.write_report(report(link, partitions=10_000))
    assert writer.flush(30)
    assert writer.dropped_reports == 0
    reader.catch_up()
    assert len(reader.reports["default", 0][0].partitions) == 10_000


def test_a_destination_that_is_away_costs_reports_and_no_time_and_keeps_every_run() -> None:
    writer = StateWriter({"bootstrap.servers": "127.0.0.1:1"}, "b", "l")
    big, refused = report("l", partitions=10_000), []
    for _ in range(20):
        writer.write_report(big)
    assert writer.dropped_reports > 0
    for partition in range(100):
        writer.write_run(plain_run(partition=partition), refused.append)
    assert not writer.flush(0.1)
    assert refused == []


def raw_plan(link: str, **fields: Any) -> tuple[bytes, bytes]:
    key, value = encode(plan(link))
    return key, json.dumps(json.loads(value) | fields).encode()


@pytest.mark.core
@pytest.mark.parametrize(
    ("fields", "what"),
    [({"v": 2}, "it has v 2, and this version of Strait reads v 1"), ({"slots": "many"}, "value.slots: ")],
)
def test_a_plan_that_cannot_be_read_stops_the_control_plane_and_no_slot(
    cluster: Cluster, link: str, reader: StateReader, fields: dict[str, Any], what: str
) -> None:
    publish(cluster, link, reader, plan(link))
    write_raw(cluster, naming.plan_topic(link), *raw_plan(link, **fields))
    eventually(lambda: reader.poll() or reader.trouble, what="trouble")
    assert reader.plans["default"].version == 1
    with StateReader(cluster.client_properties, "b", link) as control:
        with (
            pytest.raises(StateError, match=what) as caught,
            ControlPublisher(cluster.client_properties, "b", link).exclusive(control),
        ):
            pytest.fail("decided from state that could not be read")
        assert f"topic {naming.plan_topic(link)} partition 0 offset " in caught.value.message
    write_raw(cluster, naming.plan_topic(link), *encode(plan(link)))
    reader.catch_up()
    assert reader.trouble is None


@pytest.mark.core
def test_garbage_in_the_map_is_named_and_a_tombstone_heals_it(cluster: Cluster, link: str, reader: StateReader) -> None:
    write_raw(cluster, naming.map_topic(link), b"?", b"\x00garbage")
    with pytest.raises(StateError, match=f"topic {naming.map_topic(link)} partition 0 offset 0 cannot be read"):
        reader.catch_up()
    write_raw(cluster, naming.map_topic(link), b"?", None)
    reader.catch_up()


def test_garbage_among_reports_is_trouble_but_stops_nobody(cluster: Cluster, link: str, reader: StateReader) -> None:
    write_raw(cluster, naming.reports_topic(link), b"?", b"garbage")
    reader.catch_up()
    assert reader.trouble is not None


def test_a_deleted_state_topic_is_trouble_and_the_last_plan_stays(
    cluster: Cluster, link: str, reader: StateReader
) -> None:
    publish(cluster, link, reader, plan(link))
    reader.catch_up()
    admin = AdminClient(cluster.client_properties)
    admin.delete_topics([naming.plan_topic(link)])[naming.plan_topic(link)].result(30)
    eventually(lambda: (reader.poll(), reader.trouble)[1], what="trouble")
    assert naming.plan_topic(link) in str(reader.trouble)
    assert reader.plans["default"].version == 1


@pytest.mark.core
def test_the_state_topics_are_made_as_they_must_be_and_made_once(cluster: Cluster, topic_name: str) -> None:
    admin = Admin(cluster.client_properties, "b")
    made = {
        naming.history_topic(topic_name): {"cleanup.policy": "compact", "max.message.bytes": "8388608"},
        naming.ledger_topic(topic_name): {"cleanup.policy": "delete", "retention.ms": "259200000"},
        naming.losses_topic(topic_name): {"cleanup.policy": "delete", "retention.ms": "-1"},
        naming.map_topic(topic_name): {"cleanup.policy": "compact", "max.message.bytes": "8388608"},
        naming.plan_topic(topic_name): {"cleanup.policy": "compact", "max.message.bytes": "8388608"},
        naming.quarantine_topic(topic_name): {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "max.message.bytes": "104857600",
        },
        naming.reports_topic(topic_name): {
            "cleanup.policy": "delete",
            "retention.ms": "86400000",
            "retention.bytes": str(64 << 20),
        },
    }
    assert ensure_state_topics(admin, topic_name, 1) == list(made)
    assert ensure_state_topics(admin, topic_name, 1) == []
    assert {name: admin.configs(name, configs) for name, configs in made.items()} == made


def test_a_cluster_that_refuses_segments_gets_topics_without_them(clusters: Any, topic_name: str) -> None:
    class Strict(Admin):
        def create(self, topics: Iterable[NewTopic]) -> list[str]:
            wanted = [replace(topic, configs={**topic.configs, **self.broken(topic)}) for topic in topics]
            return super().create(wanted)

        @staticmethod
        def broken(topic: NewTopic) -> dict[str, str]:
            return {"segment.ms": "refused"} if "segment.ms" in topic.configs else {}

    admin = Strict(clusters.destination.client_properties, "b")
    assert naming.map_topic(topic_name) in ensure_state_topics(admin, topic_name, 1)


def test_of_configurations_that_a_cluster_refuses_the_others_are_set(cluster: Cluster, link: str) -> None:
    admin, topic = Admin(cluster.client_properties, "b"), naming.map_topic(link)
    refused = harden_state_topics(admin, {topic: {"segment.ms": "599999", "segment.bytes": "-5"}})
    assert refused.keys() == {topic}
    assert refused[topic].endswith(f"--entity-name {topic} --add-config segment.bytes=-5")
    eventually(
        lambda: admin.configs(topic, ["segment.ms"]) == {"segment.ms": "599999"}, what="the one that is accepted"
    )


@pytest.fixture(scope="module")
def busy_cleaner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Looks for something to clean all the time."""
    properties = {"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "100"}
    with Cluster(tmp_path_factory.mktemp("cleaner"), properties=properties) as cluster:
        yield cluster


@pytest.mark.core
def test_the_map_of_an_older_version_gets_small_and_stays_small(busy_cleaner: Cluster, topic_name: str) -> None:
    """It has a week of superseded checkpoints in one segment, and no cleaner ever touches it."""
    admin, topic = Admin(busy_cleaner.client_properties, "b"), naming.map_topic(topic_name)
    admin.create([NewTopic(topic, 1, 1, {"cleanup.policy": "compact", "max.message.bytes": "8388608"})])
    writer = StateWriter(busy_cleaner.client_properties, "b", topic_name)
    for end in range(20_000):
        writer.write_run(plain_run(partition=end % 10, sequence_end=end))
    assert writer.flush(30)
    changes = state_changes(topic_name, admin.observe(topic.__eq__, SEGMENT_CONFIGS).topics)
    assert harden_state_topics(admin, changes) == {}
    eventually(
        lambda: state_changes(topic_name, admin.observe(topic.__eq__, SEGMENT_CONFIGS).topics) == {},
        what="segments as they are to be",
    )
    alter(busy_cleaner, topic, segment_ms="1000")  # instead of ten minutes

    def left() -> int:
        writer.write_run(plain_run(partition=0, sequence_end=20_000))
        assert writer.flush(30)
        return sum(1 for _ in read_topic(busy_cleaner.client_properties, "b", topic))

    eventually(lambda: left() < 1000, what="the cleaner's work")
    with StateReader(busy_cleaner.client_properties, "b", topic_name) as state:
        state.catch_up()
        ends = [state.runs["t", number][0].sequence_end for number in range(10)]
    assert ends == [20_000, *range(19_991, 20_000)]


class _Clock:
    """At each look some time has passed since the one before it."""

    def __init__(self, now: float, step: float = 0.001) -> None:
        self.now = now
        self._step = step

    def monotonic(self) -> float:
        self.now += self._step
        return self.now

    def time(self) -> float:
        return time.time()


def test_a_deletion_whose_trace_is_gone_is_found_by_a_reader_that_was_away(
    busy_cleaner: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept for an hour. A reader that looks again later than that begins again."""
    admin, topic = Admin(busy_cleaner.client_properties, "b"), naming.map_topic(topic_name)
    ensure_state_topics(admin, topic_name, 1)
    alter(busy_cleaner, topic, segment_ms="100", delete_retention_ms="0")
    writer = StateWriter(busy_cleaner.client_properties, "b", topic_name)
    writer.write_run(plain_run(partition=1))
    assert writer.flush(30)
    with (
        StateReader(busy_cleaner.client_properties, "b", topic_name) as reader,
        StateReader(busy_cleaner.client_properties, "b", topic_name) as follower,
    ):
        reader.catch_up()
        follower.catch_up()
        writer.forget_run(plain_run(partition=1))

        def is_gone() -> bool:
            writer.write_run(plain_run(partition=2))
            assert writer.flush(30)
            kept = [message.key() for message in read_topic(busy_cleaner.client_properties, "b", topic)]
            return encode_key(run_key(plain_run(partition=1))) not in kept

        eventually(is_gone, what="the end of the deletion's trace")
        reader.catch_up()
        assert ("t", 1) in reader.runs, "this reader has not seen the deletion"
        looked_at = time.monotonic()
        monkeypatch.setattr("strait.state.reader.time", _Clock(looked_at + 3600))
        reader.catch_up()
        assert follower.poll()
        assert list(reader.runs) == list(follower.runs) == [("t", 2)]


@pytest.mark.core
def test_however_long_the_map_is_reading_it_ends_and_says_how_far_it_is(
    cluster: Cluster, link: str, writer: StateWriter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2000):
        writer.write_run(plain_run(partition=number % 10, sequence_end=number))
    assert writer.flush(30)
    clock = _Clock(0.0, step=1.0)
    monkeypatch.setattr("strait.state.reader.time", clock)
    monkeypatch.setattr("strait.state.reader._MOST_PER_POLL", 3)
    caplog.set_level("INFO", "strait.state.reader")
    with StateReader(cluster.client_properties, "b", link) as reader:
        reader.catch_up(100.0)
        assert clock.now > 500, "it took longer than its timeout"
        assert reader.runs["t", 9][0].sequence_end == 1999
    told = [record.getMessage() for record in caplog.records]
    assert re.match(rf"link {link}: reading its state on cluster b: [\d,]+ of 2,000 records", told[0])


def test_reading_that_is_not_wanted_any_more_ends(cluster: Cluster, link: str, writer: StateWriter) -> None:
    writer.write_run(plain_run())
    assert writer.flush(30)
    with StateReader(cluster.client_properties, "b", link) as reader:
        reader.catch_up(is_over=lambda: True)
        assert not reader.runs
        reader.catch_up()
        assert reader.runs


def loss(link: str, at_ms: int = 1, **fields: Any) -> Loss:
    place = {"topic": "t", "partition": 0, "side": "source", "from_offset": 3, "to_offset": 9}
    return Loss(link=link, cause="source_data_lost", at_ms=at_ms, detail="", **place | {"action": "halted"} | fields)


@pytest.mark.core
def test_the_loss_ledger_has_each_loss_once_and_each_decision(cluster: Cluster, link: str, writer: StateWriter) -> None:
    told = [loss(link), loss(link, at_ms=2), loss(link, action="continued"), loss(link, from_offset=9)]
    for item in told:
        writer.write_loss(item)
    assert writer.flush(30)
    with StateReader(cluster.client_properties, "b", link, follow=("losses",)) as state:
        state.catch_up()
        assert state.losses == (told[0], told[2], told[3])
        write_raw(cluster, naming.losses_topic(link), *encode(loss("another")))
        state.catch_up()
        assert "it is a record of link 'another'" in str(state.trouble)
        assert len(state.losses) == 3


@pytest.mark.core
@pytest.mark.parametrize(
    ("partitions", "configs", "what"),
    [
        (2, {"cleanup.policy": "compact"}, "has 2 partitions, expected 1"),
        (1, {}, "has cleanup.policy=delete, expected compact"),
    ],
)
def test_a_state_topic_that_would_lose_state_is_refused(
    cluster: Cluster, topic_name: str, partitions: int, configs: dict[str, str], what: str
) -> None:
    admin, topic = Admin(cluster.client_properties, "b"), naming.map_topic(topic_name)
    admin.create([NewTopic(topic, partitions, 1, configs)])
    write_raw(cluster, topic, b"key", b"value")
    with pytest.raises(StateError, match=what):
        ensure_state_topics(admin, topic_name, None)


@pytest.mark.parametrize("partitions", [1, 3])
def test_an_empty_state_topic_of_the_wrong_form_is_corrected(
    cluster: Cluster, topic_name: str, partitions: int
) -> None:
    admin = Admin(cluster.client_properties, "b")
    reports, kept, plan = naming.reports_topic(topic_name), naming.map_topic(topic_name), naming.plan_topic(topic_name)
    admin.create([NewTopic(topic, partitions, 1) for topic in (reports, kept, plan)])
    places = [TopicPartition(topic, number) for topic in (reports, kept, plan) for number in range(partitions)]
    eventually(lambda: not admin.offsets_each(places, "end").failures, what="they have leaders")
    ensure_state_topics(admin, topic_name, None)

    def shown() -> Mapping[str, TopicFacts]:
        """What the brokers show, once they show all of them in their new form."""
        found = admin.observe({reports, kept, plan}.__contains__, ("cleanup.policy", "max.message.bytes")).topics
        own = [found[topic].partitions for topic in (reports, kept, plan) if topic in found]
        return found if own == [1, 1, 1] else {}

    topics = eventually(shown, what="three topics of one partition each")
    assert topics[kept].configs == topics[plan].configs == {"cleanup.policy": "compact", "max.message.bytes": "8388608"}
    assert topics[reports].configs["cleanup.policy"] == "delete"


def test_state_that_cannot_be_reached_is_told_in_time() -> None:
    with (
        StateReader({"bootstrap.servers": "127.0.0.1:1"}, "b", "l") as state,
        pytest.raises(ClusterUnavailable, match=r"cluster b: looking for state topic .*Connection refused"),
    ):
        state.catch_up(timeout_seconds=2.0)
