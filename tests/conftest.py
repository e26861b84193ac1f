"""Fixtures that every tier may use. Brokers start when the first test asks for them, once for each worker."""

import re
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from strait.embedded.kafka import Cluster
from support.fixtures.clusters import Clusters, pair, running

pytest_plugins = [
    "support.fixtures.no_skips",
    "support.fixtures.no_leftovers",
    "support.fixtures.tiers",
    "support.fixtures.longest_first",
]

# No property is judged by the clock: a busy machine makes every example slow.
settings.register_profile("strait", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("strait")


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Shared by all tests: use topics of your own (``topic_name``), and leave both running."""
    with pair(tmp_path_factory) as both:
        yield both


@pytest.fixture(scope="module")
def own_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """A pair that no other module uses."""
    with pair(tmp_path_factory) as both:
        yield both


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Brokers 1 to 3 and a controller of their own. A test that ends a broker starts it again."""
    cluster = Cluster(tmp_path_factory.mktemp("three"), brokers=3)
    with running(cluster):
        yield cluster


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """Nobody else's, and it tells whose."""
    test = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name).strip("-")
    return f"{test[:200]}.{uuid.uuid4().hex[:8]}"
