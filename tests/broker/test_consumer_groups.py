"""Consumer groups move: each continues at the destination exactly where it was, and no group there is disturbed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from strait.config.links import parse
from strait.consumer_groups.commits import MARK
from strait.consumer_groups.sync import GroupSync
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed, ConsumerGroups
from strait.planning.consumer_groups import GroupStatus, OffsetState
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import TopicPolicy
from strait.wire import error_codes
from support.fixtures.waiting import eventually
from support.kafka.groups import Reader, commit, committed
from support.kafka.records import read_all
from support.kafka.transactions import small_transactions
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
PARTITIONS = 2
DAY_MS = 86_400_000


def sync_of(link: EngineLink, **settings: bool) -> GroupSync:
    return GroupSync(ConfiguredLink.of(parse(link.settings, where="links file"), link.name), **settings)


def states(statuses: list[GroupStatus]) -> dict[int, OffsetState]:
    (status,) = statuses
    return {item.partition: item.state for item in status.offsets}


@pytest.fixture
def copied(make_link: MakeLink, topic_name: str) -> EngineLink:
    """A link that has copied a topic of small transactions: their markers make the offsets of both sides differ."""
    link = make_link(topics={topic_name: PARTITIONS})
    link.make_topics()
    link.publish()
    link.start_slot()
    with small_transactions(link, topic_name, 60, seed=7):
        pass
    link.until_seen()
    return link


def test_an_open_transaction_holds_back_its_own_partition_alone(copied: EngineLink, topic_name: str) -> None:
    """Of an exactly-once worker, which commits its offsets in transactions."""
    group = f"{topic_name}-worker"
    commit(copied.source, group, {TopicPartition(topic_name, number): 5 for number in range(PARTITIONS)})
    at_work = Consumer(copied.source.client_properties | {"group.id": group}).consumer_group_metadata()
    producer = Producer(copied.source.client_properties | {"transactional.id": group})
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction([Place(topic_name, 0, 9)], at_work)
    commit(copied.source, group, {TopicPartition(topic_name, 1): 9})
    (status,) = sync_of(copied).sync([group])
    assert {item.partition: (item.offset, item.fit) for item in status.offsets} == {0: (5, "inexact"), 1: (9, "exact")}
    assert not status.synced
    assert committed(copied.destination, group, topic_name).keys() == {0, 1}
    producer.commit_transaction()
    eventually(lambda: sync_of(copied).sync([group])[0].synced, what="it is exact once the transaction is over")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_continues_where_it_was(copied: EngineLink, topic_name: str, protocol: str) -> None:
    """None of its records twice, none missed, on both partitions, in the middle of transactions."""
    group = f"{topic_name}-{protocol}"
    every = [record.key for records in read_all(copied.destination, topic_name, PARTITIONS) for record in records]
    before = Reader(copied.source, group, topic_name, protocol)
    half = before.read(len(every) // 2)
    before.leave()
    (status,) = sync_of(copied).status([group])
    assert {item.state for item in status.offsets} == {OffsetState.BEHIND}
    assert (status.rereads, status.source.kind, status.destination.kind) == (None, protocol, "")
    (status,) = sync_of(copied).sync([group])
    assert status.synced, [(item.state, item.fit, item.detail, item.offset, item.to_offset) for item in status.offsets]
    after = Reader(copied.destination, group, topic_name, protocol)
    rest = after.read(len(every) - len(half))
    after.leave()
    assert sorted(half + rest) == sorted(every)
    assert len({*half, *rest}) == len(every)


def test_a_group_that_has_moved_or_is_at_work_is_left_alone(copied: EngineLink, topic_name: str) -> None:
    group = f"{topic_name}-moved"
    first = Reader(copied.source, group, topic_name)
    first.read(20)
    first.leave()
    sync = sync_of(copied)
    assert sync.sync([group])[0].synced
    there = Reader(copied.destination, group, topic_name)
    there.read(1)  # now it is a member
    second = Reader(copied.source, group, topic_name)
    second.read(20)
    second.leave()
    at_first = committed(copied.destination, group, topic_name)
    assert set(states(sync.sync([group])).values()) <= {OffsetState.HELD_ACTIVE, OffsetState.IN_SYNC}
    assert committed(copied.destination, group, topic_name) == at_first
    with ConsumerGroups(copied.destination.client_properties, "b") as groups:
        wanted = {TopicPartition(topic_name, n): Committed(1, "") for n in range(PARTITIONS)}
        codes = groups.commit({group: wanted}, DAY_MS)[group]
    assert set(codes.values()) == {error_codes.UNKNOWN_MEMBER_ID}  # also if it joined a moment ago
    assert committed(copied.destination, group, topic_name) == at_first
    there.read(40)
    there.leave()
    moved = committed(copied.destination, group, topic_name)
    assert moved != at_first
    (status,) = sync.sync([group])
    left_alone = {OffsetState.DESTINATION_AHEAD, OffsetState.HELD_MOVED, OffsetState.IN_SYNC}
    assert OffsetState.DESTINATION_AHEAD in states([status]).values()
    assert set(states([status]).values()) <= left_alone
    assert committed(copied.destination, group, topic_name) == moved
    with ConsumerGroups(copied.destination.client_properties, "b") as groups:  # to consume everything again there
        groups.commit({group: {TopicPartition(topic_name, n): Committed(0, "") for n in moved}}, DAY_MS)
    assert set(states(sync.sync([group])).values()) <= {OffsetState.HELD_MOVED, OffsetState.IN_SYNC}
    assert set(committed(copied.destination, group, topic_name).values()) == {0}
    assert sync_of(copied, include_moved=True).sync([group])[0].synced


def test_among_records_of_others_no_offset_is_written(make_link: MakeLink, topic_name: str) -> None:
    """A group that consumes there would skip those of others that it has not seen on the source."""
    link = make_link(topics={topic_name: 1}, policy=TopicPolicy(on_foreign="expect"))
    link.make_topics()
    producer = Producer(link.source.client_properties)
    for number in range(20):
        producer.produce(topic_name, b"%d" % number)
    assert producer.flush(30) == 0
    link.publish()
    link.start_slot()
    link.until_copied()
    group = f"{topic_name}-shared"
    commit(link.source, group, {TopicPartition(topic_name, 0): 20})
    assert set(states(sync_of(link).sync([group])).values()) == {OffsetState.HELD_SHARED}
    assert committed(link.destination, group, topic_name) == {}


def test_a_group_ahead_of_the_copy_continues_at_its_end_and_follows(make_link: MakeLink, topic_name: str) -> None:
    """An offset beyond the end would be taken by the broker, and consumers would then begin anew."""
    link = make_link(topics={topic_name: PARTITIONS})
    link.make_topics()
    producer = Producer(link.source.client_properties)

    def write(records: int) -> None:
        for number in range(records):
            producer.produce(topic_name, b"%d" % number, partition=0)
        assert producer.flush(30) == 0

    write(50)
    link.publish()
    slot = link.start_slot()
    link.until_copied()
    link.until_seen()
    link.kill(slot)
    write(30)
    group = f"{topic_name}-ahead"
    commit(link.source, group, {TopicPartition(topic_name, 0): 70, TopicPartition(topic_name, 1): 0})
    sync = sync_of(link)
    (status,) = sync.sync([group])
    assert states([status])[0] is OffsetState.AHEAD_OF_COPY
    assert committed(link.destination, group, topic_name)[0] == 50
    link.start_slot()
    link.until_copied()
    link.until_seen()
    (status,) = sync.sync([group])
    assert states([status])[0] is OffsetState.IN_SYNC
    assert committed(link.destination, group, topic_name)[0] == 70


def test_what_a_consumer_wrote_beside_its_offset_goes_with_it(copied: EngineLink, topic_name: str) -> None:
    """Kafka Streams keeps its time there."""
    group = f"{topic_name}-metadata"
    place = TopicPartition(topic_name, 0)
    with ConsumerGroups(copied.source.client_properties, "a") as groups:
        assert groups.commit({group: {place: Committed(5, "AQAAAYÜ")}}, DAY_MS) == {group: {place: 0}}
    sync_of(copied).sync([group])
    with ConsumerGroups(copied.destination.client_properties, "b") as groups:
        found = groups.committed([group, "nobody"])
    assert found["nobody"] == {}
    assert found[group][place].metadata == "AQAAAYÜ"  # type: ignore[index]


def test_an_offset_is_written_without_metadata_that_the_destination_does_not_take(
    clusters: Any, make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    group, places = f"{topic_name}-large", [TopicPartition(topic_name, number) for number in range(PARTITIONS)]
    with Cluster(tmp_path / "small", properties={"offset.metadata.max.bytes": "100"}) as small:
        link = make_link(topics={topic_name: PARTITIONS}, source=clusters.source, destination=small)
        link.make_topics()
        link.publish()
        link.start_slot()
        with small_transactions(link, topic_name, 60, seed=7):
            pass
        link.until_seen()
        with ConsumerGroups(link.source.client_properties, "a") as groups:
            offsets = {places[0]: Committed(5, "x" * 2_000), places[1]: Committed(5, "small")}
            assert set(groups.commit({group: offsets}, DAY_MS)[group].values()) == {0}
        (status,) = sync_of(link).sync([group])
        assert status.synced
        with ConsumerGroups(small.client_properties, "b") as groups:
            found = groups.committed([group])[group]
        assert [found[place].metadata for place in places] == [MARK, "small"]  # type: ignore[index]
        (status,) = sync_of(link).sync([group])
        assert status.synced and not status.committed, "it is not written again and again"
        link.stop()


@pytest.fixture
def quickly_expiring(tmp_path: Path) -> Iterator[Cluster]:
    """Keeps offsets for a minute, the shortest time there is, and looks every second."""
    properties = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
    with Cluster(tmp_path / "expiring", properties=properties) as cluster:
        yield cluster


def test_an_offset_that_was_written_does_not_expire(quickly_expiring: Cluster, topic_name: str) -> None:
    """A broker drops offsets that nobody commits again, though the group lives on at the source."""
    place = TopicPartition(topic_name, 0)
    Admin(quickly_expiring.client_properties, "it").create([NewTopic(topic_name, 1, 1)])
    commit(quickly_expiring, "own", {place: 0})
    with ConsumerGroups(quickly_expiring.client_properties, "it") as groups:
        assert groups.commit({"kept": {place: Committed(0, "")}}, DAY_MS) == {"kept": {place: 0}}
        eventually(lambda: groups.committed(["own"])["own"] == {}, what="the group's own offset expires")
        time.sleep(5.0)  # rounds of the broker's
        assert groups.committed(["kept"])["kept"] == {place: Committed(0, "")}


def strait(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [Path(sys.executable).with_name("strait"), "groups", *words],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_on_the_command_line(copied: EngineLink, topic_name: str, tmp_path: Path) -> None:
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(copied.settings))
    group = f"{topic_name}-cli"
    reader = Reader(copied.source, group, topic_name)
    reader.read(30)
    reader.leave()
    said = strait(tmp_path, copied.name, group, "--check")
    assert (said.returncode, said.stderr) == (1, "")
    assert " behind" in said.stdout
    said = strait(tmp_path, group, "--sync", "-o", "json")
    assert said.returncode == 0, said.stderr
    (item,) = json.loads(said.stdout)
    assert (item["group"], item["synced"], item["rereads"]) == (group, True, 0)
    said = strait(tmp_path, "--check", copied.name, group)
    assert (said.returncode, said.stderr) == (0, "")
    assert " in sync" in said.stdout
    hostile = f"{topic_name} [red]a[/b] \x1b[2J\nb :fire:"
    with ConsumerGroups(copied.source.client_properties, "a") as groups:
        groups.commit({hostile: {TopicPartition(topic_name, 0): Committed(5, "")}}, DAY_MS)
    said = strait(tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    (line,) = (line for line in said.stdout.splitlines() if "red" in line)
    assert line.startswith(f"{topic_name} [red]a[/b] \\x1b[2J\\nb :fire: ")
    every: list[dict[str, Any]] = json.loads(strait(tmp_path, "--json").stdout)
    assert [item["synced"] for item in every if item["group"] == group] == [True]
    said = strait(tmp_path, copied.name, f"{group}x")
    assert said.returncode == 2
    assert "has no consumer group" in said.stderr
    assert "did you mean" in said.stderr
