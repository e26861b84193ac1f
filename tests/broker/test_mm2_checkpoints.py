"""Clients that translate offsets with MirrorMaker 2's `RemoteClusterUtils` read from a link what `strait groups` says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import ResourceType

from strait.config.links import LinksFile, parse
from strait.consumer_groups.sync import GroupSync
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.kafka.reading import read_topic
from strait.model import TopicPartition
from strait.planning.consumer_groups import OffsetState
from strait.state.compacted_topic import CompactedTopic
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.schema import PlannedGroupSync
from support.fixtures.waiting import eventually
from support.kafka.acls import Right, grant
from support.kafka.groups import Reader, commit
from support.kafka.log_ends import ends
from support.kafka.mirror_client import mirror_client
from support.kafka.records import Record, read_all
from support.kafka.transactions import Transactions
from support.links.copying import copying
from support.links.engine_link import EngineLink
from support.links.group_sync import application, application_of
from support.security.secured import Secured

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
PARTITIONS = 2


@pytest.fixture
def link(topic_name: str) -> str:
    return "m" + topic_name[-8:]


def links_file(link: str, clusters: Any, topic: str, **settings: Any) -> LinksFile:
    ends = {f"{link}-a": clusters.source.client_properties, f"{link}-b": clusters.destination.client_properties}
    block = {
        "source": f"{link}-a",
        "destination": f"{link}-b",
        "topics": {"include": [topic]},
        "consumer_groups": {"include": [f"{topic}.*"], "interval_seconds": 1, "mm2_checkpoints": True},
    }
    return parse({"clusters": ends, "links": {link: block | settings}}, where="test")


def records_of(cluster: Cluster, topic: str) -> list[Record]:
    """None of a topic that does not exist."""
    messages = read_topic(cluster.client_properties, "it", topic)
    return [Record(it.offset() or 0, it.key(), it.value(), (), it.timestamp()) for it in messages]


def transactions(cluster: Cluster, topic: str, count: int) -> None:
    """Their markers make the offsets of both sides differ."""
    producer = Transactions(cluster, topic, topic, PARTITIONS)
    for number in range(count):
        producer.begin()
        producer.write(6)
        producer.end(number % 4 != 3)
    wanted = [count * (6 // PARTITIONS + 1)] * PARTITIONS  # a broker writes the last marker after its answer
    eventually(lambda: ends(cluster, topic, PARTITIONS) == wanted, what="the last marker is written")


@pytest.mark.parametrize("naming", ["alias", "identity"])
def test_its_clients_read_what_strait_groups_says(
    clusters: Any, link: str, topic_name: str, tmp_path: Path, naming: str
) -> None:
    """Of groups that lag, that are at work on the destination, and that have moved; under any names."""
    alias = f"{link}-a"
    copy = f"{alias}.{topic_name}" if naming == "alias" else topic_name
    Admin(clusters.source.client_properties, "a").create([NewTopic(topic_name, PARTITIONS, 1)])
    transactions(clusters.source, topic_name, 20)
    places = [TopicPartition(topic_name, number) for number in range(PARTITIONS)]
    last = ends(clusters.source, topic_name, PARTITIONS)
    groups = {f"{topic_name}-{word}": word for word in ("begun", "lagging", "done", "active", "half")}
    for group, word in groups.items():
        offsets = {place: {"begun": 0, "done": last[place.partition]}.get(word, 17) for place in places}
        commit(clusters.source, group, dict(list(offsets.items())[: 1 if word == "half" else PARTITIONS]))
    file = links_file(link, clusters, topic_name, naming={"policy": naming})
    sync = GroupSync(ConfiguredLink.of(file, link))
    with Control(file, link) as control:
        eventually(lambda: control.apply().plan.topics, what="a plan with the topic")
        with copying(control, tmp_path), mirror_client(clusters.destination) as client:
            eventually(
                lambda: {row.position for row in control.status().partitions} == set(last),
                what=lambda: f"all is replicated up to {last}: {control.status().partitions}",
            )
            active = f"{topic_name}-active"
            member = Reader(clusters.destination, active, copy)
            member.read(1)
            spec = control.spec(control.apply().plan, ledger_dir=tmp_path / "l", checkpoint_dir=tmp_path / "c")
            with application_of(spec):

                def said() -> dict[str, dict[TopicPartition, int | None]]:
                    return {
                        status.group: {row.target: row.to_offset for row in status.offsets}
                        for status in sync.status(groups)
                    }

                def read() -> dict[str, dict[TopicPartition, int]]:
                    return {group: client.translated(alias, group) for group in groups}

                eventually(lambda: read() == said(), what=lambda: f"{read()} is {said()}")
                commit(clusters.source, active, dict.fromkeys(places, 40))
                commit(clusters.source, f"{topic_name}-lagging", dict.fromkeys(places, 3))  # set back
                eventually(lambda: read() == said(), what=lambda: f"{read()} is {said()}")
                (status,) = sync.status([active])
                assert {row.state for row in status.offsets} == {OffsetState.HELD_ACTIVE}
                found = read()
                policy = "IdentityReplicationPolicy"
                assert {group: client.translated(alias, group, policy) for group in groups} == found
            member.leave()
    assert found[f"{topic_name}-half"].keys() == {TopicPartition(copy, 0)}
    assert set(found[f"{topic_name}-begun"].values()) == {0}
    assert found[f"{topic_name}-done"] == {
        TopicPartition(copy, number): end for number, end in enumerate(ends(clusters.destination, copy, PARTITIONS))
    }
    assert all(record.value for record in records_of(clusters.destination, f"{alias}.checkpoints.internal"))
    # What is written last is confirmed as the application ends; the next one tells of it.
    syncs_topic = f"mm2-offset-syncs.{alias}.internal"
    written, copied = (
        read_all(cluster, topic, PARTITIONS)
        for cluster, topic in ((clusters.source, topic_name), (clusters.destination, copy))
    )
    with application_of(spec), mirror_client(clusters.destination) as client:

        def syncs() -> dict[TopicPartition, tuple[int, int]]:
            told = (client.offset_sync(syncs_topic, record) for record in records_of(clusters.destination, syncs_topic))
            return {place: (upstream, downstream) for place, upstream, downstream in told}

        expected = {
            place: (written[place.partition][-1].offset, copied[place.partition][-1].offset) for place in places
        }
        eventually(lambda: syncs() == expected, what=lambda: f"{syncs()} is {expected}")


@pytest.mark.core
def test_only_what_is_new_is_written_and_an_edit_counts_from_the_next_look(
    make_link: MakeLink, topic_name: str
) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    topic = f"{link.name}.checkpoints.internal"
    off = PlannedGroupSync(include=(f"{topic_name}.*",), interval_seconds=1)
    on = off.model_copy(
        update={"checkpoints_topic": topic, "offset_syncs_topic": f"mm2-offset-syncs.{link.name}.internal"}
    )
    producer = Transactions(link.source, topic_name, topic_name, 1)
    producer.begin()
    producer.write(50)
    producer.commit()
    link.publish(consumer_groups=off)
    link.start_slot()
    link.until_seen()
    place = TopicPartition(topic_name, 0)
    names = [f"{topic_name}-{number}" for number in range(3)]
    for name in names:
        commit(link.source, name, {place: 10})

    def looked_again() -> None:
        """Two looks that began from now on."""
        seen: set[int] = set()
        with StateReader(link.destination.client_properties, "b", link.name, follow=("reports",)) as state:

            def enough() -> bool:
                state.catch_up()
                seen.update([state.group_sync.at_ms] if state.group_sync else [])
                assert state.group_sync is None or state.group_sync.trouble == ""
                return len(seen) > 3

            eventually(enough, what="more looks")

    def written() -> int:
        return len(records_of(link.destination, topic))

    with application(link):
        looked_again()
        assert written() == 0
        link.publish(consumer_groups=on)
        eventually(lambda: written() == 3, what="the checkpoints come")
        looked_again()
        assert written() == 3
        commit(link.source, names[1], {place: 20})
        eventually(lambda: written() == 4, what="what is new is written")
    with application(link):
        looked_again()
        assert written() == 4
        link.publish(consumer_groups=off)
        looked_again()
        commit(link.source, names[1], {place: 30})
        looked_again()
        assert written() == 4
    facts = Admin(link.destination.client_properties, "b").observe(topic.__eq__, ("cleanup.policy",)).topics[topic]
    assert (facts.partitions, facts.configs["cleanup.policy"]) == (1, "compact")


def test_what_others_have_written_meanwhile_is_seen(
    cluster: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MirrorMaker 2 may still run, or another application of the link."""
    monkeypatch.setattr("strait.state.compacted_topic._READ_SECONDS", 0.0)
    ours, theirs = (CompactedTopic(cluster.client_properties, "b", topic_name) for _ in range(2))
    assert not ours.read_on()
    assert ours.write({b"k": b"1", b"other": b"0"}) == 2
    assert not ours.read_on()  # its own words are no news
    assert ours.write({b"k": b"1"}) == 0
    assert theirs.read_on()
    assert theirs.write({b"k": b"2", b"other": b"0"}) == 1
    assert ours.read_on()
    assert ours.write({b"k": b"1"}) == 1
    assert [(record.key, record.value) for record in records_of(cluster, topic_name)][-2:] == [
        (b"k", b"2"),
        (b"k", b"1"),
    ]


def test_the_documented_rights_suffice_and_without_them_groups_are_in_sync(
    secured: Secured, topic_name: str, make_link: MakeLink
) -> None:
    cluster, user = secured.destination, f"user-{topic_name[-8:]}"
    properties = secured.tls(cluster, secured.authority.issue(user))
    grant(cluster, user, [Right(ResourceType.TOPIC, topic_name, it) for it in ("READ", "WRITE", "CREATE")])
    topic = eventually(lambda: _opened(properties, topic_name), what="it may create the topic")
    assert not topic.read_on()
    assert topic.write({b"k": b"1"}) == 1
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish(
        consumer_groups=PlannedGroupSync(
            include=(f"{topic_name}.*",),
            interval_seconds=1,
            checkpoints_topic="no such name!",
            offset_syncs_topic="nor this",
        )
    )
    with (
        application(link),
        StateReader(link.destination.client_properties, "b", link.name, follow=("reports",)) as state,
    ):

        def trouble() -> str:
            state.catch_up()
            return state.group_sync.trouble if state.group_sync else ""

        assert "checkpoints" in eventually(trouble, what="the report says it")


def _opened(properties: dict[str, str], topic: str) -> CompactedTopic | None:
    try:
        return CompactedTopic(properties, "b", topic)
    except Exception:  # noqa: BLE001  an authorizer hears of a right a moment later
        return None
