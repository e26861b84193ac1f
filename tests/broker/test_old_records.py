"""Records so old that the destination's broker forgets their producer while it writes: its rounds come every half
second here, instead of every ten minutes."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strait.embedded.kafka import Cluster
from strait.reasons import Reason
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.links.load import writing

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
TWO_DAYS_SECONDS = 2 * 86_400.0


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Cluster]:
    """Forgets producers after a day, as brokers do, and looks for such ones often."""
    with Cluster(tmp_path / "forgetful", properties={"producer.id.expiration.check.interval.ms": "500"}) as cluster:
        yield cluster


def test_one_copy_sends_them_and_the_other_goes_on_when_it_dies(
    make_link: MakeLink, topic_name: str, forgetful: Cluster, request: pytest.FixtureRequest
) -> None:
    """I1, though the broker compares nothing: whoever comes second looks on, and nothing is written twice."""
    link = make_link(topics={topic_name: 4}, source=request.getfixturevalue("clusters").source, destination=forgetful)
    link.make_topics()
    link.publish()
    first = link.start_slot()
    with writing(link.source, link.topics, seed=1, age_seconds=TWO_DAYS_SECONDS):
        eventually(lambda: link.copied() > 1000, what=lambda: f"the first copies: {link.log()}")
        second = link.start_slot()
        link.until_waiting(topic_name, 0, Reason.ANOTHER_COPY)
        time.sleep(5.0)  # ten rounds of the broker's
        link.kill(first)
        before = link.copied()
        eventually(lambda: link.copied() > before + 1000, what=lambda: f"the second goes on: {link.log()}")
    link.until_copied()
    link.assert_equal()
    assert second.poll() is None
