"""Links for the engine's tests, and one cluster for what is tried by itself."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strait.embedded.kafka import Cluster
from support.kafka.raw import RawClient
from support.links.engine_link import EngineLink
from support.links.mesh import Mesh
from support.security.secured import Secured, secured_clusters


@pytest.fixture
def make_link(tmp_path: Path, topic_name: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., EngineLink]]:
    """Make a link; its slots are ended with the test. Without clusters given it runs between the session's two."""
    made: list[EngineLink] = []

    def make(**settings: Any) -> EngineLink:
        if "source" not in settings:
            clusters = request.getfixturevalue("clusters")
            settings |= {"source": clusters.source, "destination": clusters.destination}
        settings.setdefault("topics", {topic_name: 3})
        link = EngineLink(name=f"link-{topic_name[-8:]}-{len(made)}", folder=tmp_path, **settings)
        made.append(link)
        return link

    yield make
    for link in made:
        link.stop()


@pytest.fixture
def make_mesh(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[Callable[..., Mesh]]:
    """Make links between several clusters, by default the session's two; their slots are ended with the test."""
    made: list[Mesh] = []

    def make(**settings: Any) -> Mesh:
        both = {"a": clusters.source, "b": clusters.destination}
        mesh = Mesh(**{"clusters": both, "topic": topic_name, "folder": tmp_path} | settings)
        made.append(mesh)
        mesh.make_topics()
        return mesh

    yield make
    for mesh in made:
        mesh.stop()


@pytest.fixture(scope="module")
def third(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Besides the session's two."""
    cluster = Cluster(tmp_path_factory.mktemp("third"))
    cluster.start()
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(clusters: Any) -> Cluster:
    """For tests that need no other."""
    found: Cluster = clusters.destination
    return found


@pytest.fixture
def raw(cluster: Cluster) -> Iterator[RawClient]:
    with RawClient(cluster) as client:
        yield client


@pytest.fixture(scope="package")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Shared by the tests of security: use topics and principals of your own."""
    with secured_clusters(tmp_path_factory.mktemp("secured")) as clusters:
        yield clusters
