"""Heartbeats travel a link, tell how long that takes, and are read by MirrorMaker 2's own client."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ResourceType

from strait.config.links import LinksFile, parse
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.planning.topic_sync.actions import CreateHeartbeats
from support.fixtures.waiting import eventually
from support.kafka.acls import Right, documented, grant
from support.kafka.mirror_client import mirror_client
from support.kafka.records import assert_same_records, read_all
from support.links.copying import copying
from support.security.secured import Secured

pytestmark = pytest.mark.broker
TOPIC = "heartbeats"


def links_file(link: str, source: dict[str, str], destination: dict[str, str], **settings: Any) -> LinksFile:
    block = {"source": f"{link}-a", "destination": f"{link}-b", "heartbeats": {"enabled": True}}
    clusters = {f"{link}-a": source, f"{link}-b": destination}
    return parse({"clusters": clusters, "links": {link: block | settings}}, where="test")


def until_planned(control: Control, *topics: str) -> None:
    def look() -> bool:
        return {topic.source for topic in control.apply().plan.topics} == set(topics)

    eventually(look, what=f"a plan with {topics}")


def until_beating(control: Control) -> None:
    def look() -> bool:
        beat = control.status().heartbeat
        return beat is not None and beat.heartbeat_latency_ms is not None

    eventually(look, what="a heartbeat arrives")


@pytest.fixture
def link(topic_name: str) -> str:
    return "h" + topic_name[-8:]


@pytest.fixture
def no_heartbeats_left(clusters: Any, link: str) -> Iterator[None]:
    """Their topic is everybody's."""
    yield
    delete(clusters.source, TOPIC)
    delete(clusters.destination, f"{link}-a.{TOPIC}")


def delete(cluster: Cluster, topic: str) -> None:
    admin = AdminClient(cluster.client_properties)  # kept until the answer is there: without it that never comes
    admin.delete_topics([topic])[topic].result(30)


def test_heartbeats_are_created_written_copied_and_read_by_mirror_maker_2(
    clusters: Any, link: str, tmp_path: Path, no_heartbeats_left: None
) -> None:
    file = links_file(link, dict(clusters.source.client_properties), dict(clusters.destination.client_properties))
    copy = f"{link}-a.{TOPIC}"
    with Control(file, link) as control:
        proposed = control.propose().actions
        assert [action.subject for action in proposed if isinstance(action, CreateHeartbeats)] == [TOPIC]
        until_planned(control, TOPIC)
        assert not any(isinstance(action, CreateHeartbeats) for action in control.propose().actions)
        with copying(control, tmp_path):
            until_beating(control)
            eventually(lambda: control.status().latency_ms_p99 is not None, what="the link's latency")
            eventually(lambda: len(read_all(clusters.destination, copy, 1)[0]) >= 3, what="three heartbeats")
    written, arrived = read_all(clusters.source, TOPIC, 1), read_all(clusters.destination, copy, 1)
    assert_same_records([written[0][: len(arrived[0])]], arrived)
    with mirror_client(clusters.destination) as client:
        assert f"{link}-a" in client.upstream_clusters()
        assert client.hops_from(f"{link}-a") == 1
        for record in arrived[0]:
            beat = client.heartbeat(copy, record)
            assert (beat.source, beat.target, beat.at_ms) == (f"{link}-b", f"{link}-a", record.timestamp[1])


def test_heartbeats_need_the_right_to_write_them_and_copying_does_not(
    secured: Secured, tmp_path: Path, link: str
) -> None:
    properties = {}
    for end, cluster, topic in (
        ("source", secured.source, TOPIC),
        ("destination", secured.destination, f"{link}-a.{TOPIC}"),
    ):
        user = f"{link}-{end}"
        grant(cluster, user, documented(end, link, topic))
        properties[end] = secured.tls(cluster, secured.authority.issue(user))
    grant(secured.source, f"{link}-source", [Right(ResourceType.TOPIC, TOPIC, "CREATE")])
    file = links_file(link, properties["source"], properties["destination"])
    with Control(file, link) as control:
        until_planned(control, TOPIC)
        with copying(control, tmp_path):

            def trouble() -> str:
                beat = control.status().heartbeat
                return "" if beat is None else beat.heartbeat_trouble

            said = eventually(trouble, what="the slot says that it may not write heartbeats")
            assert TOPIC in said or "uthoriz" in said, said
            grant(secured.source, f"{link}-source", [Right(ResourceType.TOPIC, TOPIC, "WRITE")])
            until_beating(control)
            eventually(lambda: not trouble(), what="the trouble is over")
