"""A pair of clusters of chosen releases.

``STRAIT_COMPAT=all``, or the names of pairs: these, and the results are kept for the table in
docs/reference/compatibility.md. Otherwise the oldest release at both ends.
"""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from strait.embedded.kafka import Cluster
from support.compat_results import Results
from support.kafka.releases import MATRIX, PAIRS, Release, pair_name
from support.links.engine_link import EngineLink

# A broker forgets a producer that was quiet that long when it starts again. Before 3.0 the time for transactions
# counts.
FORGETFUL = {"producer.id.expiration.ms": "1000", "transactional.id.expiration.ms": "1000"}


RESULTS = Results()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    params = getattr(getattr(item, "callspec", None), "params", {})
    if MATRIX and isinstance(params.get("pair"), tuple):
        RESULTS.add(pair_name(*params["pair"]), item.nodeid, report.outcome)
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    chosen, options = session.config.args, session.config.option
    if exitstatus in (0, 1) and not (options.keyword or options.markexpr or any("::" in path for path in chosen)):
        RESULTS.keep()


@dataclass(frozen=True, slots=True)
class Pair:
    source: Cluster
    source_release: Release
    destination: Cluster
    destination_release: Release


@pytest.fixture(scope="package", params=PAIRS, ids=lambda pair: pair_name(*pair))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Shared by the tests: use topics of your own, and leave both running."""
    one, two = request.param
    source, destination = (
        Cluster(tmp_path_factory.mktemp(end), properties=more, version=of.version, zookeeper=of.zookeeper)
        for end, of, more in (("source", one, {}), ("destination", two, FORGETFUL))
    )
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Cluster.start, (source, destination)))
        yield Pair(source, one, destination, two)
    finally:
        for cluster in (source, destination):
            cluster.stop()


@pytest.fixture
def make_link(pair: Pair, tmp_path: Path, topic_name: str) -> Iterator[Callable[..., EngineLink]]:
    """Make a link between the pair; its slots are ended with the test."""
    made: list[EngineLink] = []

    def make(**settings: Any) -> EngineLink:
        settings = {"source": pair.source, "destination": pair.destination, "topics": {topic_name: 1}} | settings
        made.append(EngineLink(name=f"link-{topic_name[-8:]}-{len(made)}", folder=tmp_path, **settings))
        return made[-1]

    yield make
    for link in made:
        link.stop()
