"""Brokers whose wall clocks jump, as after a broken NTP server or a machine that was moved."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strait.reasons import Reason
from support.fixtures.waiting import eventually
from support.kafka.clocks import JumpingCluster
from support.links.engine_link import EngineLink
from support.links.load import writing

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
HOUR = 3600
FORGETTING = {"producer.id.expiration.check.interval.ms": "500"}


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[dict[str, JumpingCluster]]:
    with (
        JumpingCluster(tmp_path / "jumping-source", properties=FORGETTING) as source,
        JumpingCluster(tmp_path / "jumping-destination", properties=FORGETTING) as destination,
    ):
        yield {"source": source, "destination": destination}


@pytest.mark.parametrize(("copies", "hours"), [(2, (12, -0.5, 0)), (1, (49, -0.5, 49, 0))])
def test_they_jump_back_and_forth(
    make_link: MakeLink, topic_name: str, ends: dict[str, JumpingCluster], copies: int, hours: tuple[float, ...]
) -> None:
    """Two days ahead they forget their producers in the middle of the writing, which does not matter to one that writes
    alone."""
    link = make_link(topics={topic_name: 4}, **ends)
    link.make_topics()
    link.publish()
    running = [link.start_slot() for _ in range(copies)]
    with writing(link.source, link.topics, seed=41, per_second=2_000):
        for jump in hours:
            for end in ends.values():
                before = link.copied()
                end.jump(round(jump * HOUR))
                eventually(
                    lambda before=before: link.copied() > before + 1_000, what=lambda: f"it goes on: {link.log()}"
                )
                time.sleep(1.0)
    link.until_copied()
    link.assert_equal()
    assert [slot.poll() for slot in running] == [None] * copies, link.log()


def test_a_destination_that_takes_the_present_for_the_future(
    make_link: MakeLink, topic_name: str, ends: dict[str, JumpingCluster]
) -> None:
    """More than `message.timestamp.after.max.ms` (an hour) behind, it refuses every record: said, waited for, nothing
    lost."""
    link = make_link(topics={topic_name: 2}, **ends)
    link.make_topics()
    link.publish()
    link.start_slot()
    with writing(link.source, link.topics, seed=42, per_second=500):
        eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
        ends["destination"].jump(-2 * HOUR)
        row = link.until_waiting(topic_name, 0, Reason.BATCH_REFUSED)
        assert "INVALID_TIMESTAMP" in row.detail.upper().replace(" ", "_"), row.detail
        ends["destination"].jump(0)
    link.until_copied()
    link.assert_equal()
