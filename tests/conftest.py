"""Fixtures that every tier may use. Brokers start when the first test asks for them, once for each worker."""

import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings

from strait.embedded.kafka import Cluster

pytest_plugins = ["support.fixtures.no_skips", "support.fixtures.no_leftovers", "support.fixtures.longest_first"]

# No property is judged by the clock: a busy machine makes every example slow.
settings.register_profile("strait", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("strait")


@dataclass(frozen=True, slots=True)
class Clusters:
    """A pair to copy between: one broker each."""

    source: Cluster
    destination: Cluster


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Shared by all tests: use topics of your own (``topic_name``), and leave both running."""
    with _pair(tmp_path_factory) as pair:
        yield pair


@pytest.fixture(scope="module")
def own_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """A pair that no other module uses."""
    with _pair(tmp_path_factory) as pair:
        yield pair


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Brokers 1 to 3 and a controller of their own. A test that ends a broker starts it again."""
    cluster = Cluster(tmp_path_factory.mktemp("three"), brokers=3)
    with _running(cluster):
        yield cluster


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """Nobody else's, and it tells whose."""
    test = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name).strip("-")
    return f"{test[:200]}.{uuid.uuid4().hex[:8]}"


@contextmanager
def _pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    pair = Clusters(
        source=Cluster(tmp_path_factory.mktemp("source")),
        destination=Cluster(tmp_path_factory.mktemp("destination")),
    )
    with _running(pair.source, pair.destination):
        yield pair


@contextmanager
def _running(*clusters: Cluster) -> Iterator[None]:
    try:
        with ThreadPoolExecutor(len(clusters)) as pool:
            list(pool.map(Cluster.start, clusters))
        yield
    finally:
        for cluster in clusters:
            cluster.stop()
