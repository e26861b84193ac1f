"""Settling what is quarantined, on a real broker: every record once, as it was, by one person at a time."""

import json
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

from strait.cli.main import app
from strait.config import naming
from strait.control.quarantine import Quarantine
from strait.embedded.kafka import Cluster
from strait.errors import ClusterError, PlanConflict
from strait.kafka.admin import Admin, NewTopic
from strait.state.publisher import ControlPublisher
from strait.state.quarantine_log import Chosen
from strait.state.reader import StateReader
from strait.state.schema import Plan, PlannedTopic, TopicPolicy
from strait.state.topics import ensure_state_topics
from strait.wire.records import Record
from support.links.handles import handle_into
from support.links.quarantined import keep_aside

pytestmark = pytest.mark.broker

OffsetMapping = Callable[..., Any]
TIME_MS = 1_600_000_000_000


@pytest.fixture
def link(cluster: Cluster, topic_name: str) -> str:
    name = "q" + topic_name[-8:]
    ensure_state_topics(Admin(cluster.client_properties, "b"), name, None)
    return name


@pytest.fixture
def quarantine(cluster: Cluster, link: str) -> Quarantine:
    return Quarantine(handle_into(cluster.client_properties, "b", link))


@pytest.fixture
def command(clusters: Any, link: str, tmp_path: Path) -> OffsetMapping:
    """Runs `strait quarantine …` on the link; returns its exit code and output."""
    properties = {"a": dict(clusters.source.client_properties), "b": dict(clusters.destination.client_properties)}
    path = tmp_path / "links.yaml"
    path.write_text(yaml.safe_dump({"clusters": properties, "links": {link: {"source": "a", "destination": "b"}}}))

    def run(*arguments: str, answer: str | None = None, of: Sequence[str] = ("quarantine",)) -> Any:
        options = ["--config", str(path), "--link", link]
        return CliRunner().invoke(app, [*of, arguments[0], *options, *arguments[1:]], input=answer)

    return run


def record(offset: int, value: bytes = b"v") -> Record:
    return Record(offset, TIME_MS + offset, b"k", value, (("own", b"1"), ("null", None)))


def create(cluster: Cluster, topic: str, partitions: int = 1, **configs: str) -> None:
    named = {name.replace("_", "."): value for name, value in configs.items()}
    Admin(cluster.client_properties, "b").create([NewTopic(topic, partitions, 1, named)])


def publish(cluster: Cluster, link: str, **rule: str) -> None:
    """A plan that copies `orders`."""
    policy = TopicPolicy.model_validate(rule)
    topic = PlannedTopic(
        source="orders", destination=f"{link}-orders", source_id="s", destination_id="d", slots=(0,), policy=policy
    )
    plan = Plan(link=link, group="default", version=1, producer_id=1, slots=1, topics=(topic,), published_at_ms=1)
    with (
        StateReader(cluster.client_properties, "b", link) as state,
        ControlPublisher(cluster.client_properties, "b", link).exclusive(state) as publication,
    ):
        publication.publish([plan])


def consumed(cluster: Cluster, topic: str, count: int, partition: int = 0) -> list[Any]:
    """The committed records of a partition, of which there must be so many and no more."""
    settings = {"group.id": "test", "enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = Consumer(dict(cluster.client_properties) | settings)
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        found.append(message)
    consumer.close()
    assert len(found) == count
    return found


def open_offsets(quarantine: Quarantine) -> list[int]:
    return [entry.offset for entry in quarantine.contents().entries() if not entry.settled]


def test_a_link_without_a_quarantine_keeps_nothing_aside(cluster: Cluster, topic_name: str) -> None:
    assert Quarantine(handle_into(cluster.client_properties, "b", topic_name)).contents().entries() == []


def test_a_replayed_record_is_as_it_was_and_is_replayed_once(
    cluster: Cluster, link: str, quarantine: Quarantine, command: OffsetMapping
) -> None:
    create(cluster, f"{link}-repaired", 2)
    keep_aside(cluster, link, record(5), record(6, b""), record(5), partition=1)
    done = command("replay", "--to", f"{link}-repaired", "--yes")
    assert (done.exit_code, done.output) == (0, "replayed 2 records\n")
    first, second = consumed(cluster, f"{link}-repaired", 2, partition=1)
    assert (first.key(), first.value(), first.timestamp()[1]) == (b"k", b"v", TIME_MS + 5)
    assert first.headers() == [("own", b"1"), ("null", None)]
    assert second.value() == b""
    assert open_offsets(quarantine) == []
    done = command("replay", "--to", f"{link}-repaired", "--yes")
    assert (done.exit_code, done.output) == (0, "replayed 0 records\n")
    consumed(cluster, f"{link}-repaired", 2, partition=1)


def test_a_copy_that_halts_at_strangers_is_spared_and_one_that_does_not_gets_its_records(
    cluster: Cluster, link: str, command: OffsetMapping
) -> None:
    create(cluster, f"{link}-orders")
    keep_aside(cluster, link, record(5))
    publish(cluster, link, on_foreign="halt")
    done = command("replay", "--yes")
    assert done.exit_code != 0
    assert f"{link}-orders: replayed records would halt the replication of orders" in str(done.exception)
    consumed(cluster, f"{link}-orders", 0)


def test_they_go_into_the_copy_where_its_rule_lets_others_write(
    cluster: Cluster, link: str, quarantine: Quarantine, command: OffsetMapping
) -> None:
    create(cluster, f"{link}-orders")
    keep_aside(cluster, link, record(5))
    publish(cluster, link, on_foreign="continue")
    planned = json.loads(command("replay", "--dry-run", "--json").output)
    assert [(entry["offset"], entry["into"]) for entry in planned] == [(5, f"{link}-orders")]
    assert open_offsets(quarantine) == [5]
    assert command("replay", answer="n\n").exit_code == 1
    assert open_offsets(quarantine) == [5]
    assert command("replay", answer="y\n").exit_code == 0
    consumed(cluster, f"{link}-orders", 1)


def test_what_is_refused_again_is_named_and_nothing_of_it_is_done(
    cluster: Cluster, link: str, quarantine: Quarantine
) -> None:
    create(cluster, f"{link}-small", max_message_bytes="1000")
    keep_aside(cluster, link, record(5), record(6, bytes(5_000_000)))
    with quarantine.settling() as settling:
        entries = quarantine.contents().entries()
        with pytest.raises(ClusterError, match=rf"replaying orders-0 offset 6 into {link}-small: .*MSG_SIZE_TOO_LARGE"):
            settling.replay(entries, {"orders": f"{link}-small"})
    assert open_offsets(quarantine) == [5, 6]
    consumed(cluster, f"{link}-small", 0)
    with quarantine.settling() as settling:
        assert settling.replay(entries[:1], {"orders": f"{link}-small"}) == 1
    assert open_offsets(quarantine) == [6]


def test_a_record_is_kept_aside_and_replayed_however_large(cluster: Cluster, link: str, quarantine: Quarantine) -> None:
    create(cluster, f"{link}-wide", max_message_bytes=str(64 << 20))
    large = record(5, random.Random(5).randbytes(20 << 20))
    keep_aside(cluster, link, large)
    with quarantine.settling() as settling:
        assert settling.replay(quarantine.contents().entries(), {"orders": f"{link}-wide"}) == 1
    (found,) = consumed(cluster, f"{link}-wide", 1)
    assert found.value() == large.value


def test_of_two_who_settle_at_once_the_first_is_told_and_each_record_is_settled_once(
    cluster: Cluster, link: str, quarantine: Quarantine
) -> None:
    create(cluster, f"{link}-repaired")
    keep_aside(cluster, link, *map(record, range(1200)))
    into = {"orders": f"{link}-repaired"}
    ready, go = threading.Event(), threading.Event()
    fenced: list[PlanConflict] = []

    def first() -> None:
        with quarantine.settling() as settling:
            entries = quarantine.contents().entries()
            ready.set()
            go.wait(60)
            try:
                settling.replay(entries, into)
            except PlanConflict as conflict:
                fenced.append(conflict)

    thread = threading.Thread(target=first, daemon=True)
    thread.start()
    assert ready.wait(60)
    with quarantine.settling() as settling:
        go.set()
        thread.join(60)
        entries = [entry for entry in quarantine.contents().entries() if not entry.settled]
        assert settling.replay(entries, into) == 1200
    assert "somebody else settles the quarantine now" in str(fenced[0])
    found = consumed(cluster, f"{link}-repaired", 1200)
    assert [message.timestamp()[1] - TIME_MS for message in found] == list(range(1200))


@pytest.mark.core
def test_records_are_listed_and_dropped_by_topic_and_reason(
    cluster: Cluster, link: str, quarantine: Quarantine, command: OffsetMapping
) -> None:
    keep_aside(cluster, link, record(5))
    keep_aside(cluster, link, record(7), topic="clicks")
    table = command("list", "--topic", "orders").output
    assert "batch_refused: said the broker" in table
    assert "clicks" not in table
    assert command("drop", "--reason", "batch_too_large", "--yes").output == "dropped 0 records\n"
    assert command("drop", "--topic", "orders", "--dry-run").exit_code == 0
    assert open_offsets(quarantine) == [5, 7]
    assert json.loads(command("drop", "--topic", "orders", "--yes", "--json").output) == {
        "schema_version": 1,
        "dropped": 1,
    }
    assert open_offsets(quarantine) == [7]
    shown = json.loads(command("list", "--settled", "--json").output)
    assert [(entry["topic"], entry["settled"]) for entry in shown] == [("orders", "dropped"), ("clicks", "")]


def test_one_record_is_shown_and_its_value_only_when_asked_for(
    cluster: Cluster, link: str, quarantine: Quarantine, command: OffsetMapping
) -> None:
    headers = (("trace", b"\xff\x00"), ("empty", None))
    keep_aside(cluster, link, Record(5, TIME_MS, b"caf\xc3\xa9\x1b[2J", b'{"email": "a@b"}', headers))
    place = ("show", "--topic", "orders", "--partition", "0", "--offset", "5")
    text = command(*place).output
    assert "orders-0 offset 5, 2020-09-13 12:26:40 UTC" in text
    assert "key     café\\x1b[2J\n" in text
    assert "header  trace: 0xff00\nheader  empty: null\n" in text
    assert "value   16 bytes; --value shows them\n" in text
    assert "a@b" not in text
    assert 'value   {"email": "a@b"}\n' in command(*place, "--value").output
    shown = json.loads(command(*place, "--value", "--json").output)
    assert shown["value"] == {"text": '{"email": "a@b"}', "encoding": "utf-8", "size": 16, "shown": 16}
    missing = command(*place[:-1], "6").exception
    assert str(missing).startswith(f"link {link}: no quarantined record of orders-0 at source offset 6 (see ")

    (entry,) = quarantine.contents().entries()
    found = quarantine.record(entry.at)
    assert found is not None
    assert "value" not in found.readable(3, with_value=False)
    cut = found.readable(4, with_value=True)
    assert cut["key"] == {"text": "caf", "encoding": "utf-8", "size": 9, "shown": 3}  # not within a character
    assert cut["value"]["shown"] == 4
    assert quarantine.record(entry.at + 1) is None


def test_somebody_elses_record_is_said_and_hides_nothing(cluster: Cluster, link: str, command: OffsetMapping) -> None:
    producer = Producer(dict(cluster.client_properties))
    producer.produce(naming.quarantine_topic(link), value=b"?")
    assert producer.flush(30) == 0
    keep_aside(cluster, link, record(5))
    done = command("list", "--json")
    assert f"topic strait.{link}.quarantine offset 0 is not of Strait's making" in done.stderr
    assert [entry["offset"] for entry in json.loads(done.stdout)] == [5]


def test_the_status_counts_what_is_kept_aside_and_not_settled(
    cluster: Cluster, link: str, quarantine: Quarantine, command: OffsetMapping
) -> None:
    publish(cluster, link, on_refused="quarantine")
    keep_aside(cluster, link, record(1), record(2), record(3))
    with quarantine.settling() as settling:
        settling.drop(quarantine.contents().entries()[:1])
    done = command("status", "--json", of=())
    said = json.loads(done.stdout)
    (row,) = said["partitions"]
    assert (row["quarantined"], row["detail"]) == (
        2,
        "slot 0 has not reported for more than 2 min, or ever; 2 records in quarantine",
    )
    assert said["quarantine_unread"] == 0


def test_what_is_older_than_the_newest_is_not_read_and_later_only_what_is_new(
    cluster: Cluster, link: str, quarantine: Quarantine
) -> None:
    publish(cluster, link, on_refused="quarantine")
    keep_aside(cluster, link, record(1), record(2), record(3))
    with quarantine.settling() as settling:
        settling.drop(quarantine.contents().entries()[:1])
    newest = Quarantine(handle_into(cluster.client_properties, "x", link), keeps_settled=False)
    newest.skip_settled()
    assert newest._next == 1, "the first one is resolved"
    assert [entry.at for entry in newest.contents().entries()] == [1, 2]
    keep_aside(cluster, link, record(4))
    assert [entry.offset for entry in newest.contents().entries()] == [2, 3, 4]
    with quarantine.settling() as settling:
        settling.drop(quarantine.unsettled(Chosen()))
    assert newest.contents().entries() == []
    assert [entry.settled for entry in quarantine.contents().entries()] == ["dropped"] * 4
    later = Quarantine(handle_into(cluster.client_properties, "x", link), keeps_settled=False)
    later.skip_settled(100)
    assert (later.contents().entries(), later.unread) == ([], 0)
    assert later._began >= 4, "nothing that was resolved is read again"
    nowhere = Quarantine(handle_into(cluster.client_properties, "x", f"{link}-none"))
    nowhere.skip_settled(4)
    assert (nowhere.contents().entries(), nowhere.unread) == ([], 0)
