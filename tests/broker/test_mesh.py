"""Same names both ways: everybody writes everywhere, and each record is everywhere once."""

import itertools
import json
import random
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from strait.cli.main import app
from strait.config import naming
from strait.control.last_copied import copied_record
from strait.control.pausing import set_stopped
from strait.control.plane import Control
from strait.control.registration import register
from strait.embedded.kafka import Cluster
from strait.errors import StateError
from strait.kafka.admin import Admin
from strait.kafka.reading import read_topic
from strait.net.producer_id import transactional_producer_id
from strait.reasons import Reason
from strait.state.codec import decode
from strait.state.link_handle import ConfiguredLink
from strait.state.publisher import Publication
from strait.state.schema import Registration, TopicPolicy
from strait.wire.records import Record
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import read_all
from support.links.auditing import planned
from support.links.engine_link import EngineLink
from support.links.mesh import Mesh
from support.links.quarantined import keep_aside

pytestmark = pytest.mark.broker
MakeMesh = Callable[..., Mesh]


def cluster_id(cluster: Cluster) -> str:
    return Admin(cluster.client_properties, "it").cluster_id


def registrations(cluster: Cluster) -> list[Registration]:
    messages = read_topic(cluster.client_properties, "it", naming.PRODUCERS_TOPIC)
    return [decode(Registration, message.key(), message.value()) for message in messages if message.value()]


@pytest.mark.parametrize("seed", [23])
def test_in_a_mesh_of_three_each_record_is_everywhere_once_whoever_is_killed(
    make_mesh: MakeMesh, clusters: Any, third: Cluster, seed: int
) -> None:
    """All write at once, with ever new producers; links begin one after the other, and slots are killed all the
    time."""
    rng = random.Random(seed)
    links = list(permutations("abc", 2))
    mesh = make_mesh(clusters={"a": clusters.source, "b": clusters.destination, "c": third}, links=links)
    with mesh.writing(rounds=8, records=150, pause_seconds=0.5):
        for link in rng.sample(links, len(links)):
            mesh.start(link)
        for _ in range(4):
            time.sleep(rng.uniform(0.3, 1.0))
            link = rng.choice(links)
            mesh.kill(link)
            mesh.start(link)
    mesh.until_everywhere()
    mesh.assert_each_once()


def test_along_a_line_copies_are_copied_on_and_never_back(make_mesh: MakeMesh, clusters: Any, third: Cluster) -> None:
    links = [("a", "b"), ("b", "c"), ("c", "b"), ("b", "a")]
    three = {"a": clusters.source, "b": clusters.destination, "c": third}
    mesh = make_mesh(clusters=three, links=links, copies="forward")
    for link in links:
        mesh.start(link)
    with mesh.writing(rounds=3, records=50, pause_seconds=0.2):
        pass
    mesh.until_everywhere()
    mesh.assert_each_once()


def test_a_source_of_nothing_but_copies_is_left_out_and_not_read_again(make_mesh: MakeMesh) -> None:
    there, back = ("a", "b"), ("b", "a")
    mesh = make_mesh(links=[there, back])
    mesh.write("a", 1000)
    mesh.start(there)
    mesh.start(back)
    eventually(lambda: [row.left_out for row in mesh.reports(back)] == [500, 500], what="copies are left out")
    eventually(
        lambda: [runs[-1].source_base for _, runs in sorted(mesh.runs(back).items())] == [500, 500],
        what=lambda: f"reading begins behind them: {mesh.runs(back)}",
    )
    mesh.kill(back)
    mesh.start(back)
    eventually(
        lambda: [row.left_out for row in mesh.reports(back)] == [0, 0],
        what=lambda: f"a new process reads none of them: {mesh.reports(back)} {mesh.runs(back)}",
    )
    mesh.write("b", 10)
    mesh.until_everywhere()
    mesh.assert_each_once()


def test_what_only_one_neighbour_got_of_a_lost_cluster_is_named_and_copied_to_the_other(
    make_mesh: MakeMesh, clusters: Any, third: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is interrupted, and c comes back in the end: each record is everywhere once all the time. The link that
    lacks records has just confirmed all that it has, so the place of its last record is exact."""
    links = list(permutations("abc", 2))
    mesh = make_mesh(clusters={"a": clusters.source, "b": clusters.destination, "c": third}, links=links)
    for link in links:
        mesh.start(link, changed={"strait.engine.slot:CHECKPOINT_SECONDS": 0.5})
        mesh.write(link[0], 10)
    mesh.until_everywhere()

    def confirmed() -> bool:
        runs = mesh.runs(("c", "b"))
        return all(max(run.sequence_end for run in runs[partition]) == 10 for partition in range(2))

    eventually(confirmed, what="the map confirms c's 20 records on b")
    mesh.kill(("c", "b"))
    mesh.write("c", 50)
    eventually(lambda: sum(ends(mesh.clusters["a"], mesh.topic, 2)) == 110, what="a has all of them")
    for link in (("c", "a"), ("a", "c"), ("b", "c")):
        mesh.kill(link)
    for name in ("a", "b"):
        mesh.write(name, 5)
    eventually(lambda: sum(ends(mesh.clusters["b"], mesh.topic, 2)) == 70, what="b has what a and b have written")

    contents = mesh.contents
    contents["clusters"]["c"] = {"bootstrap.servers": "127.0.0.1:1"}  # nobody answers there
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(contents))
    lost, other = mesh.name(("c", "b")), mesh.name(("c", "a"))

    def held(name: str) -> int:
        """Its number of records: transactions have taken offsets, too."""
        return sum(map(len, read_all(mesh.clusters[name], mesh.topic, 2)))

    def strait(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, [*words, "--config", str(tmp_path / "links.yaml")])
        assert done.exit_code == code, f"{done.output} {done.exception}"
        return done.output

    assert "is not stopped" in str(_error(tmp_path, "tail", "copy", lost, "--from", other, "--reason", "x", "--yes"))
    told = strait("failover", lost, "--unplanned", "--reason", "c is lost", "--yes")
    assert f"link {other} has 50 missing records ({mesh.topic} 50): strait tail copy {lost} --from {other}" in told
    rows = json.loads(strait("tail", "list", lost, "--from", other, "-o", "json"))["partitions"]
    assert [(row["partition"], row["records"], row["exact"]) for row in rows] == [(0, 25, True), (1, 25, True)]
    assert len(strait("tail", "list", lost, "--from", other, "--records").splitlines()) == 50
    copying = ("tail", "copy", lost, "--from", other, "--reason", "c is lost", "--yes")

    published: list[None] = []
    publish = Publication.publish

    def interrupted(publication: Publication, *words: Any) -> None:
        published.append(None)
        if len(published) == 3:
            raise KeyboardInterrupt
        publish(publication, *words)

    with monkeypatch.context() as patch:
        patch.setattr("strait.control.tail_copy._CHUNK_RECORDS", 7)
        patch.setattr(Publication, "publish", interrupted)
        CliRunner().invoke(app, [*copying, "--config", str(tmp_path / "links.yaml")])

    calls = itertools.count()

    def another_there(*arguments: Any) -> Record | None:
        """Of the two that are compared, the second one is changed."""
        found = copied_record(*arguments)
        return found._replace(value=b"another") if found is not None and next(calls) % 2 else found

    with monkeypatch.context() as patch:
        patch.setattr("strait.control.held_elsewhere.copied_record", another_there)
        rows = json.loads(strait("tail", "list", lost, "--from", other, "-o", "json", code=1))["partitions"]
        assert [(row["partition"], row["exact"]) for row in rows] == [(0, False), (1, False)]
        assert all("the last one that both destinations should have, differs" in row["detail"] for row in rows)
    assert json.loads(strait(*copying, "-o", "json"))["copied"] == 50 - 14
    assert json.loads(strait(*copying, "-o", "json"))["copied"] == 0
    assert "has every record" in strait("tail", "list", lost, "--from", other)
    losses = json.loads(strait("losses", lost, "-o", "json"))
    assert {(loss["cause"], loss["side"], loss["action"]) for loss in losses} == {
        ("tail_copied", "source", "continued")
    }
    for name in ("a", "b"):
        mesh.write(name, 5)  # by now, what was copied would have come to the other one
    eventually(lambda: (held("a"), held("b")) == (130, 130), what=lambda: f"both have all: {held('a')}, {held('b')}")

    set_stopped(ConfiguredLink.of(mesh.file, lost), stopped=False, by="a test")
    for link in (("c", "a"), ("c", "b"), ("a", "c"), ("b", "c")):
        mesh.start(link)
    mesh.write("c", 10)
    eventually(lambda: {held(name) for name in "abc"} == {140}, what=lambda: f"all have all: {mesh.log()}")
    mesh.assert_each_once()


def _error(folder: Path, *words: str) -> BaseException | None:
    return CliRunner().invoke(app, [*words, "--config", str(folder / "links.yaml")]).exception


def test_what_a_person_replays_into_a_copy_does_not_come_back_to_its_source(
    make_mesh: MakeMesh, tmp_path: Path
) -> None:
    there, back = ("a", "b"), ("b", "a")
    mesh = make_mesh(links=[there, back])
    for link in (there, back):
        mesh.start(link)
    mesh.write("a", 10)
    mesh.until_everywhere()
    values = [b"too large", b"too old", b"large again"]
    aside = [Record(offset, 0, b"k", value, ()) for offset, value in zip((7, 9, 8), values, strict=True)]
    keep_aside(mesh.clusters["b"], mesh.name(there), *aside, topic=mesh.topic, destination=mesh.topic)
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(mesh.contents))
    options = ["--config", str(tmp_path / "links.yaml"), "--link", mesh.name(there), "--yes"]
    done = CliRunner().invoke(app, ["quarantine", "replay", *options])
    assert (done.exit_code, done.output) == (0, "replayed 3 records\n")
    mesh.write("b", 10)
    eventually(lambda: sum(ends(mesh.clusters["a"], mesh.topic, 2)) >= 20, what="what comes later comes back")
    assert {len(records) for records in read_all(mesh.clusters["a"], mesh.topic, 2)} == {10}
    replayed = [one for one in read_all(mesh.clusters["b"], mesh.topic, 2)[0] if one.value in values]
    assert [one.value for one in replayed] == [values[0], values[2], values[1]], "in the order of the source"
    assert {one.timestamp[1] for one in replayed} == {1}, "as old as a client writes it"
    with Control(mesh.file, mesh.name(there)) as control:
        assert not [risk for risk in control.forecast(control.propose()).risks if risk.code == "loop"]


def test_a_link_is_registered_before_its_plan_and_again_where_the_register_is_gone(
    make_mesh: MakeMesh, clusters: Any, third: Cluster
) -> None:
    link = ("a", "c")
    mesh = make_mesh(clusters={"a": clusters.source, "c": third}, links=[link])
    with Control(mesh.file, mesh.name(link)) as control:
        plan = control.apply().plan
        assert plan.registered
        ours = Registration(
            producer_id=plan.producer_id,
            link=mesh.name(link),
            source=cluster_id(clusters.source),
            destination=cluster_id(third),
        )
        assert ours in registrations(third)
        admin = AdminClient(third.client_properties)
        admin.delete_topics([naming.PRODUCERS_TOPIC])[naming.PRODUCERS_TOPIC].result()
        eventually(lambda: naming.PRODUCERS_TOPIC not in admin.list_topics(timeout=10).topics, what="it is gone")
        assert not control.apply().published
        assert registrations(third) == [ours]


def test_a_register_that_cannot_be_read_holds_new_producers_back_until_it_is_mended(
    make_link: Callable[..., EngineLink], topic_name: str
) -> None:
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(copies="skip"))
    link.make_topics()
    link.publish()
    register_other(link.source, 1 << 40)  # the topic is there
    key = b'{"producer_id":1234567890}'
    write(link.source, naming.PRODUCERS_TOPIC, key, b"garbage")
    try:
        write(link.source, topic_name, None, b"born here")
        link.start_slot()
        row = link.until_waiting(topic_name, 0, Reason.PRODUCERS_UNREADABLE)
        assert "Invalid JSON" in row.detail
        with pytest.raises(StateError, match=r"cluster source: reading which links write there: .* cannot be read"):
            planned(link)
    finally:
        write(link.source, naming.PRODUCERS_TOPIC, key, None)
    link.until_copied()
    link.assert_equal()


@pytest.fixture
def unregistered(make_link: Callable[..., EngineLink], third: Cluster, clusters: Any, topic_name: str) -> EngineLink:
    """A link that leaves copies out, whose source has no register."""
    admin = AdminClient(third.client_properties)
    if naming.PRODUCERS_TOPIC in admin.list_topics(timeout=10).topics:
        delete_register(third)
    policy = TopicPolicy(copies="skip")
    link = make_link(source=third, destination=clusters.destination, topics={topic_name: 1}, policy=policy)
    link.make_topics()
    link.publish()
    return link


def delete_register(cluster: Cluster) -> None:
    admin = AdminClient(cluster.client_properties)
    admin.delete_topics([naming.PRODUCERS_TOPIC])[naming.PRODUCERS_TOPIC].result()
    eventually(lambda: naming.PRODUCERS_TOPIC not in admin.list_topics(timeout=10).topics, what="it is gone")


def register_other(cluster: Cluster, producer_id: int) -> None:
    other = Registration(producer_id=producer_id, link="other", source="elsewhere", destination="here")
    register(Admin(cluster.client_properties, "c"), other, None)


def test_where_the_register_was_deleted_new_producers_wait_until_it_is_there_again(
    unregistered: EngineLink, topic_name: str
) -> None:
    link = unregistered
    register_other(link.source, 1 << 40)
    link.start_slot()
    write(link.source, topic_name, None, b"one")
    link.until_copied(1)
    delete_register(link.source)
    write(link.source, topic_name, None, b"two")
    assert "does not exist any more" in link.until_waiting(topic_name, 0, Reason.PRODUCERS_UNREADABLE).detail
    register_other(link.source, 1 << 40)
    link.until_copied(2)
    link.assert_equal()


def test_who_is_registered_late_since_the_register_was_away_is_left_out_from_then_on(
    unregistered: EngineLink, topic_name: str
) -> None:
    link = unregistered
    properties = link.source.client_properties
    producer_id = transactional_producer_id(properties, "c", topic_name, 60_000)
    copier = Producer(properties | {"transactional.id": topic_name})
    copier.init_transactions(60)
    link.start_slot(changed={"strait.engine.loop_filter:MISSING_SECONDS": 0.2})

    def copied(number: int) -> bool:
        """Whether a record of the copier arrives; one that somebody else writes behind it does."""
        copier.begin_transaction()
        copier.produce(topic_name, f"copy {number}", partition=0)
        copier.commit_transaction(60)
        write(link.source, topic_name, None, f"born here {number}".encode())

        def values() -> list[bytes | None]:
            return [record.value for record in read_all(link.destination, topic_name, 1)[0]]

        eventually(lambda: f"born here {number}".encode() in values(), what=lambda: f"{number} is copied: {link.log()}")
        return f"copy {number}".encode() in values()

    assert copied(0)
    register_other(link.source, producer_id)
    numbers = itertools.count(1)
    eventually(lambda: not copied(next(numbers)), what="its records are left out")


def test_the_register_is_asked_whichever_broker_leads_it(
    make_link: Callable[..., EngineLink], clusters: Any, three_brokers: Cluster, topic_name: str
) -> None:
    policy = TopicPolicy(copies="skip")
    link = make_link(source=three_brokers, destination=clusters.destination, topics={topic_name: 1}, policy=policy)
    link.make_topics()
    other = Registration(producer_id=1 << 40, link="other", source="elsewhere", destination="here")
    properties = three_brokers.client_properties
    register(Admin(properties, "it"), other, 3)
    link.publish()
    link.start_slot()
    write(three_brokers, topic_name, None, b"one")
    link.until_copied(1)
    leader = (
        AdminClient(properties).list_topics(naming.PRODUCERS_TOPIC).topics[naming.PRODUCERS_TOPIC].partitions[0].leader
    )
    three_brokers.stop_broker(leader)
    try:
        write(three_brokers, topic_name, None, b"two")
        link.until_copied(2)
    finally:
        three_brokers.start_broker(leader)
    link.assert_equal()


def write(cluster: Cluster, topic: str, key: bytes | None, value: bytes | None) -> None:
    producer = Producer(cluster.client_properties | {"enable.idempotence": True})
    refused: list[KafkaError | None] = []
    producer.produce(topic, value, key, partition=0, on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(30) == 0
    assert refused == [None]
