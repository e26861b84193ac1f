"""Share groups move with their start offsets: what was done before them is not delivered again, and nothing is skipped."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import ResourceType

from strait.config.links import parse
from strait.consumer_groups.sync import GroupSync
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed, ConsumerGroups
from strait.net.handshake import Connection
from strait.net.share_groups import ShareGroups
from strait.planning.consumer_groups import GroupStatus, OffsetState
from strait.state.link_handle import ConfiguredLink, LinkHandle
from strait.state.schema import PlannedGroupSync
from strait.wire import error_codes
from support.fixtures.waiting import eventually
from support.kafka.acls import Right, grant
from support.kafka.groups import commit
from support.kafka.jvm import kafka_jvm
from support.kafka.share_reader import ShareReader
from support.links.engine_link import EngineLink
from support.links.group_sync import application
from support.security.secured import Secured

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
SHIFT = 7
"""Records that the destination has before the link's: its offsets are so much larger."""
RECORDS = 100


def write(cluster: Cluster, topic: str, records: int) -> None:
    producer = Producer(cluster.client_properties)
    for number in range(records):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with kafka_jvm() as found:
        yield found


@pytest.fixture
def link(make_link: MakeLink, topic_name: str) -> EngineLink:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    write(link.destination, topic_name, SHIFT)
    write(link.source, topic_name, RECORDS)
    link.publish(consumer_groups=PlannedGroupSync(include=(f"{topic_name}.*",), interval_seconds=1))
    return link


@pytest.fixture
def copied(link: EngineLink) -> EngineLink:
    link.start_slot()
    link.until_copied(RECORDS + SHIFT)
    link.until_seen()
    return link


def sync_of(link: EngineLink, **settings: bool) -> GroupSync:
    return GroupSync(ConfiguredLink.of(parse(link.settings, where="links file"), link.name), **settings)


def start_at(cluster: Cluster, group: str, topic: str, offset: int) -> int:
    """The broker's error code."""
    place = TopicPartition(topic, 0)
    with ConsumerGroups(cluster.client_properties, "it") as groups:
        return ShareGroups(groups.coordinators).alter({group: {place: Committed(offset, "")}})[group][place]


def start_of(cluster: Cluster, group: str, topic: str) -> int | None:
    with ConsumerGroups(cluster.client_properties, "it") as groups:
        found = ShareGroups(groups.coordinators).starts([group])[group]
    assert not isinstance(found, int)
    return {place: item.offset for place, item in found.items()}.get(TopicPartition(topic, 0))


def only_state(found: list[GroupStatus]) -> OffsetState:
    ((row,),) = (status.offsets for status in found)
    return row.state


@pytest.mark.core
def test_a_share_group_continues_at_its_start_offset(copied: EngineLink, topic_name: str, jvm: Any) -> None:
    """A real one, on both sides."""
    group = f"{topic_name}-real"
    assert start_at(copied.source, group, topic_name, 0) == 0
    before = ShareReader(jvm, copied.source, group, topic_name)
    before.read(25)
    before.leave()
    assert before.offsets == list(range(len(before.offsets)))
    # What brokers store is the start as it was before the last acknowledgement.
    start = eventually(lambda: start_of(copied.source, group, topic_name), what="the start offset follows")
    assert 10 <= start <= len(before.offsets)
    sync = sync_of(copied)
    (status,) = sync.status([group])
    assert (only_state([status]), status.destination.kind) == (OffsetState.BEHIND, "")
    (status,) = sync.sync([group])
    assert (status.synced, status.rereads, status.committed) == (True, None, 1)
    assert status.offsets[0].detail.startswith("share group's start only")
    assert start_of(copied.destination, group, topic_name) == start + SHIFT
    after = ShareReader(jvm, copied.destination, group, topic_name)
    after.read(RECORDS - start)
    after.leave()
    assert after.offsets == list(range(start + SHIFT, RECORDS + SHIFT))


def test_a_share_group_that_is_at_work_or_has_moved_is_left_alone(
    copied: EngineLink, topic_name: str, jvm: Any
) -> None:
    group = f"{topic_name}-moved"
    sync = sync_of(copied)
    for start in (10, 20):  # a group that only the link has written for is written for again
        assert start_at(copied.source, group, topic_name, start) == 0
        assert only_state(sync.sync([group])) is OffsetState.IN_SYNC
        assert start_of(copied.destination, group, topic_name) == start + SHIFT
    there = ShareReader(jvm, copied.destination, group, topic_name)
    there.read(25)
    at_work = start_of(copied.destination, group, topic_name)
    assert start_at(copied.source, group, topic_name, 90) == 0
    assert only_state(sync.sync([group])) is OffsetState.HELD_ACTIVE
    assert start_at(copied.destination, group, topic_name, 90) == error_codes.NON_EMPTY_GROUP  # also if it just joined
    assert start_of(copied.destination, group, topic_name) == at_work
    there.leave()
    moved = eventually(lambda: start_of(copied.destination, group, topic_name), what="its start offset")
    assert 20 + SHIFT < moved < 90 + SHIFT
    held = eventually(
        lambda: (state := only_state(sync.sync([group]))) is not OffsetState.HELD_ACTIVE and state, what="it has left"
    )
    assert held is OffsetState.HELD_MOVED
    assert start_of(copied.destination, group, topic_name) == moved
    assert only_state(sync_of(copied, include_moved=True).sync([group])) is OffsetState.IN_SYNC
    assert start_of(copied.destination, group, topic_name) == 90 + SHIFT
    assert start_at(copied.source, group, topic_name, 50) == 0
    assert only_state(sync_of(copied, include_moved=True).sync([group])) is OffsetState.DESTINATION_AHEAD
    assert start_of(copied.destination, group, topic_name) == 90 + SHIFT


def test_a_share_group_ahead_of_the_copy_starts_at_its_end_and_follows(link: EngineLink, topic_name: str) -> None:
    """A start beyond the end would be accepted, and members would then get nothing."""
    slot = link.start_slot()
    link.until_copied(RECORDS + SHIFT)
    link.until_seen()
    link.kill(slot)
    write(link.source, topic_name, 30)
    group = f"{topic_name}-ahead"
    assert start_at(link.source, group, topic_name, RECORDS + 20) == 0
    assert only_state(sync_of(link).sync([group])) is OffsetState.AHEAD_OF_COPY
    assert start_of(link.destination, group, topic_name) == RECORDS + SHIFT
    link.start_slot()
    with application(link):
        eventually(
            lambda: start_of(link.destination, group, topic_name) == RECORDS + 20 + SHIFT, what="the start follows"
        )


def test_a_group_of_another_kind_on_the_destination_is_left_alone(copied: EngineLink, topic_name: str) -> None:
    place = TopicPartition(topic_name, 0)
    share, simple = f"{topic_name}-share", f"{topic_name}-simple"
    assert start_at(copied.source, share, topic_name, 10) == 0
    commit(copied.destination, share, {place: 3})
    commit(copied.source, simple, {place: 10})
    assert start_at(copied.destination, simple, topic_name, 3) == 0
    found = {status.group: status for status in sync_of(copied).sync([share, simple])}
    assert "not a share group" in found[share].note
    assert "a share group of this name" in found[simple].note
    assert not any(status.committed or status.refused for status in found.values())
    assert start_of(copied.destination, simple, topic_name) == 3
    with ConsumerGroups(copied.destination.client_properties, "b") as groups:
        kept = groups.committed([share])[share]
        assert isinstance(kept, dict)
        assert kept[place].offset == 3
        codes = ShareGroups(groups.coordinators).alter({share: {place: Committed(5, "")}})
    assert codes == {share: {place: error_codes.GROUP_ID_NOT_FOUND}}  # also if it was made a moment ago


def test_unchanged_share_groups_cost_one_short_request_a_look(
    copied: EngineLink, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{topic_name}-{number}" for number in range(5)]
    for name in names:
        assert start_at(copied.source, name, topic_name, 10) == 0
    asked: list[int] = []
    real = Connection._exchange

    def noted(self: Connection, requests: Any, most_bytes: int) -> Any:
        asked.extend(request.API_KEY for request in requests if request.API_KEY in (77, 90, 91))
        return real(self, requests, most_bytes)

    clusters = LinkHandle.of_application(copied.spec)
    with GroupSync(clusters, selected=lambda name: name in names) as sync:
        assert {status.group: status.committed for status in sync.sync()} == dict.fromkeys(names, 1)
        assert {status.group: status.synced for status in sync.sync()} == dict.fromkeys(names, True)
        monkeypatch.setattr(Connection, "_exchange", noted)
        assert {status.group: status.synced for status in sync.sync()} == dict.fromkeys(names, True)
    assert asked == [90] * len(names)


def test_brokers_without_share_groups_refuse_none_but_those(
    copied: EngineLink, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share, other = f"{topic_name}-share", f"{topic_name}-other"
    assert start_at(copied.source, share, topic_name, 10) == 0
    commit(copied.source, other, {TopicPartition(topic_name, 0): 10})
    real = ShareGroups.alter

    def older(self: ShareGroups, wanted: Any) -> Any:
        for connection, *_ in self._by_coordinator(sorted(wanted), (91, 0, 0)):
            assert connection is not None
            connection.versions = {key: found for key, found in connection.versions.items() if key != 91}
        return real(self, wanted)

    monkeypatch.setattr(ShareGroups, "alter", older)
    found = {status.group: status for status in sync_of(copied).sync([share, other])}
    assert found[other].synced
    assert [(row.state, row.detail) for row in found[share].offsets] == [(OffsetState.REFUSED, "UNSUPPORTED_VERSION")]


def test_the_documented_rights_suffice(secured: Secured, topic_name: str) -> None:
    """DESCRIBE on group and topic to look, READ to write."""
    cluster, group, place = secured.destination, f"{topic_name}-rights", TopicPartition(topic_name, 0)
    user = f"user-{topic_name[-8:]}"
    Admin(cluster.client_properties, "b").create([NewTopic(topic_name, 1, 1)])
    assert start_at(cluster, group, topic_name, 0) == 0
    properties = secured.tls(cluster, secured.authority.issue(user))
    resources = (ResourceType.GROUP, group), (ResourceType.TOPIC, topic_name)
    with ConsumerGroups(properties, "b") as groups:
        shares = ShareGroups(groups.coordinators)

        def written() -> int:
            return shares.alter({group: {place: Committed(0, "")}})[group][place]

        grant(cluster, user, [Right(*resource, "DESCRIBE") for resource in resources])
        eventually(lambda: shares.starts([group]) == {group: {place: Committed(0, "")}}, what="it may look")
        assert shares.with_past([group]) == set()
        assert written() == error_codes.GROUP_AUTHORIZATION_FAILED
        grant(cluster, user, [Right(*resource, "READ") for resource in resources])
        eventually(lambda: written() == 0, what="it may write")


def test_on_the_command_line(copied: EngineLink, topic_name: str, tmp_path: Path) -> None:
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(copied.settings))
    group = f"{topic_name}-cli"
    assert start_at(copied.source, group, topic_name, 30) == 0

    def strait(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [Path(sys.executable).with_name("strait"), "groups", *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    said = strait(copied.name, "--sync")
    assert (said.returncode, said.stderr) == (0, "")
    (line,) = (line for line in said.stdout.splitlines() if line.startswith(f"{group} "))
    assert "share" in line
    assert line.endswith("1 in sync; share group's start only")
    (item,) = json.loads(strait(copied.name, group, "--check", "-o", "json").stdout)
    assert (item["synced"], item["rereads"]) == (True, None)
    assert (item["offsets"][0]["offset"], item["offsets"][0]["committed"]) == (30, 30 + SHIFT)
