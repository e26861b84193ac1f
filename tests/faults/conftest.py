"""Far clusters and links between them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strait.embedded.kafka import Cluster
from support.kafka.producers import FORGETFUL
from support.links.engine_link import EngineLink
from support.links.far import FarCluster, FarLink, running


@pytest.fixture(scope="session")
def far_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarCluster]:
    """One broker behind a proxy. Leave it calm and running."""
    cluster = FarCluster(tmp_path_factory.mktemp("far-source"))
    with running(cluster):
        yield cluster


@pytest.fixture(scope="session")
def far_destination(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarCluster]:
    """One broker behind a proxy. Leave it calm and running."""
    cluster = FarCluster(tmp_path_factory.mktemp("far-destination"))
    with running(cluster):
        yield cluster


@pytest.fixture(scope="session")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker that forgets producers within a second. Leave it running."""
    with Cluster(tmp_path_factory.mktemp("forgetful"), properties=FORGETFUL) as cluster:
        yield cluster


@pytest.fixture
def make_link(tmp_path: Path, topic_name: str) -> Iterator[Callable[..., EngineLink]]:
    """Make a link between the clusters given. With the test its slots end, and its proxies calm down."""
    made: list[EngineLink] = []

    def make(**settings: Any) -> EngineLink:
        settings.setdefault("topics", {topic_name: 3})
        link = FarLink(name=f"link-{topic_name[-8:]}-{len(made)}", folder=tmp_path, **settings)
        made.append(link)
        return link

    yield make
    for link in made:
        link.stop()
        for cluster in (link.source, link.destination):
            if isinstance(cluster, FarCluster):
                cluster.proxy.calm()


@pytest.fixture
def make_long_link(
    make_link: Callable[..., EngineLink],
    topic_name: str,
    far_source: FarCluster,
    far_destination: FarCluster,
    three_brokers: Cluster,
) -> Iterator[Callable[..., EngineLink]]:
    """A link whose ``end`` is the cluster of three brokers, with its topics made and its plan published. All three run
    again after the test, however it ends."""

    def make(end: str, partitions: int, **configs: dict[str, str]) -> EngineLink:
        clusters = {"source": far_source, "destination": far_destination} | {end: three_brokers}
        link: EngineLink = make_link(topics={topic_name: partitions}, **clusters)
        link.make_topics(**configs)
        link.publish()
        return link

    yield make
    for broker in three_brokers.broker_ids:
        three_brokers.start_broker(broker)
