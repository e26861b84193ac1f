"""Brokers on ZooKeeper whose `inter.broker.protocol.version` is raised: topics get IDs that had none."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strait.config.links import parse
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin
from strait.model import is_known_id
from strait.state.reader import StateReader
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_copied
from support.kafka.topics import create, produce
from support.links.copying import copying

pytestmark = pytest.mark.broker

BEFORE, AFTER = (f"inter.broker.protocol.version={version}" for version in ("2.7", "2.8"))


@pytest.fixture(params=["2.8.2", "3.3.2"], ids=["fetches by name", "would fetch by id"])
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, Cluster]]:
    name, _, version = BEFORE.partition("=")
    source, destination = (
        Cluster(tmp_path / end, properties={name: version}, version=request.param, zookeeper=True)
        for end in ("source", "destination")
    )
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Cluster.start, (source, destination)))
        yield source, destination
    finally:
        for cluster in (source, destination):
            cluster.stop()


def raise_protocol(cluster: Cluster) -> None:
    """As the last step of an upgrade does it."""
    cluster.stop_broker(1)
    changed = 0
    for settings in cluster.directory.glob("*/server.properties"):
        text = settings.read_text()
        changed += BEFORE in text
        settings.write_text(text.replace(BEFORE, AFTER))
    assert changed == 1
    cluster.start_broker(1)


def has_id(cluster: Cluster) -> bool:
    """A broker that has just started shows no topic yet."""
    found = Admin(cluster.client_properties, "it").observe("t".__eq__, ()).topics.get("t")
    return found is not None and is_known_id(found.topic_id)


def test_topics_that_get_ids_are_the_same_topics(pair: tuple[Cluster, Cluster], tmp_path: Path) -> None:
    source, destination = pair
    create(source, "t", 1)
    produce(source, "t", 100)
    clusters = {"a": source.client_properties, "b": destination.client_properties}
    link = {"source": "a", "destination": "b", "topics": {"include": ["t"]}}
    file = parse({"clusters": clusters, "links": {"old": link}}, where="links file")

    def until_copied() -> None:
        wanted = ends(source, "t", 1)
        eventually(lambda: ends(destination, "t", 1) == wanted, what=f"{wanted} copied")
        assert_copied(source, destination, "t", 1)

    with Control(file, "old") as control:
        control.apply()
        with copying(control, tmp_path):
            until_copied()
            for cluster in pair:
                assert not has_id(cluster)
                raise_protocol(cluster)
                produce(source, "t", 50)
                eventually(lambda one=cluster: has_id(one), what="the topic has an ID")
                with Control(file, "old") as later:
                    assert later.apply().plan.waiting == ()
                produce(source, "t", 50)
                until_copied()
    with StateReader(destination.client_properties, "b", "old", follow=("plan", "losses")) as state:
        state.catch_up()
        assert state.losses == ()
        (topic,) = state.plans["default"].topics
        assert is_known_id(topic.source_id) and is_known_id(topic.destination_id)
    assert ends(destination, "t", 1) == [300]
