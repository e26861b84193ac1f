"""The idle direction of two links: others write into its destination topics, and it has nothing to copy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.state.offset_map import covering, destination_offset
from strait.state.schema import TopicPolicy
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.producers import FORGETFUL, until_forgotten
from support.kafka.records import read_all
from support.links.engine_link import EngineLink
from support.links.far import FarCluster, FarLink, running

pytestmark = pytest.mark.broker

OFTEN = {"strait.engine.foreign_stretches:ROUND_SECONDS": 0.5, "strait.engine.slot:CHECKPOINT_SECONDS": 0.5}


@pytest.fixture
def active(tmp_path: Path) -> Iterator[FarCluster]:
    """It forgets producers within a second, so that each look-up has to prove from the log that nothing was added."""
    cluster = FarCluster(tmp_path / "active", properties=FORGETFUL)
    with running(cluster):
        yield cluster


def write(cluster: Cluster, topic: str, values: range, *, each_bytes: int = 0) -> None:
    producer = Producer(cluster.client_properties)
    for value in values:
        producer.produce(topic, b"%d" % value, key=bytes(each_bytes), partition=0)
    assert producer.flush(60) == 0


def marked_to(link: EngineLink, topic: str) -> int:
    """The destination offset before which the map says that no further record of the link is."""
    runs = link.runs(topic, 0)
    checkpoint = max(run.sequence_end for run in runs)
    return destination_offset(covering(runs, checkpoint), checkpoint)


@pytest.mark.parametrize("copied", [0, pytest.param(5, marks=pytest.mark.core)])
def test_what_others_wrote_is_not_read_at_the_next_start(
    active: FarCluster, topic_name: str, tmp_path: Path, request: pytest.FixtureRequest, copied: int
) -> None:
    source = request.getfixturevalue("clusters").source
    link = FarLink("link", source, active, tmp_path, {topic_name: 1})
    link.policy = TopicPolicy(on_foreign="expect")
    link.make_topics()
    link.publish()
    write(source, topic_name, range(copied))
    try:
        slot = link.start_slot(changed=OFTEN)
        link.until_copied(copied)
        write(active, topic_name, range(1000, 1100), each_bytes=100_000)
        end = ends(active, topic_name, 1)[0]
        eventually(lambda: marked_to(link, topic_name) == end, what=lambda: f"{link.runs(topic_name, 0)} {link.log()}")
        link.kill(slot)
        until_forgotten(link, topic_name)
        before = active.proxy.passed("reply", client="").bytes
        link.start_slot(changed=OFTEN)
        link.until_seen()
        write(source, topic_name, range(copied, copied + 5))
        link.until_copied(end + 5)
        assert active.proxy.passed("reply", client="").bytes - before < 1_000_000
        ours = [int(record.value or b"") for record in read_all(active, topic_name, 1)[0]]
        assert [value for value in ours if value < 1000] == list(range(copied + 5))
    finally:
        link.stop()


def test_two_instances_never_pass_over_each_others_records(
    active: FarCluster, topic_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Records of two days ago: the broker has forgotten each a moment after it was appended."""
    source = request.getfixturevalue("clusters").source
    link = FarLink("link", source, active, tmp_path, {topic_name: 1})
    link.policy = TopicPolicy(on_foreign="expect")
    link.make_topics()
    link.publish()
    try:
        slots = [link.start_slot(changed=OFTEN) for _ in range(2)]
        producer = Producer(source.client_properties)
        for at in range(20):
            producer.produce(topic_name, b"%d" % at, partition=0, timestamp=1_700_000_000_000)
            assert producer.flush(60) == 0
            write(active, topic_name, range(1000, 1020))
            if at % 7 == 6:
                link.kill(slots.pop(0))
                slots.append(link.start_slot(changed=OFTEN))
            end = ends(active, topic_name, 1)[0]
            eventually(lambda: marked_to(link, topic_name) >= end - 20, what=lambda: link.log())  # noqa: B023
        eventually(
            lambda: (
                [
                    int(record.value or b"")
                    for record in read_all(active, topic_name, 1)[0]
                    if len(record.value or b"") < 4
                ]
                == list(range(20))
            ),
            what=lambda: f"each once: {link.waiting()}",
        )
    finally:
        link.stop()
