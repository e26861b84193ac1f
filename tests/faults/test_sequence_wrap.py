"""Sequences on the wire are 31 bits wide: a link's later records begin at 0 again, and every count goes on."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.state.offset_map import SEQUENCE_MODULUS
from strait.state.writer import StateWriter
from support.fixtures.waiting import eventually
from support.kafka.producers import until_forgotten
from support.kafka.records import read_all
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
CHECKPOINT_SECONDS = "strait.engine.slot:CHECKPOINT_SECONDS"
BEFORE = 50
"""Records that the link writes before its sequences begin again."""


def write(cluster: Cluster, topic: str, numbers: range) -> None:
    """In batches of seven, one of which holds the last sequence and the first."""
    producer = Producer(cluster.client_properties | {"compression.type": "lz4"})
    for number in numbers:
        producer.produce(topic, b"%d" % number, partition=0)
        if number % 7 == 6:
            assert producer.flush(60) == 0
    assert producer.flush(60) == 0


def begin_at(link: EngineLink, topic: str, sequence: int) -> None:
    """As if the link had written that many records already."""
    (first,) = link.runs(topic, 0)
    properties = link.destination.client_properties
    said: list[object] = []
    writer = StateWriter(properties, "destination", link.name)
    writer.forget_run(first)
    writer.write_run(first.model_copy(update={"sequence_base": sequence, "sequence_end": sequence}), said.append)
    writer.flush(30.0)
    assert said == [None]


def confirmed(link: EngineLink, topic: str) -> int:
    return max(run.sequence_end for run in link.runs(topic, 0))


@pytest.mark.parametrize("forgets", [False, pytest.param(True, marks=pytest.mark.core)])
def test_sequences_that_begin_again_cost_no_record(
    make_link: MakeLink, topic_name: str, forgetful: Cluster, request: pytest.FixtureRequest, forgets: bool
) -> None:
    """Killed just before, within and just after, with checkpoints before the place where they begin again and behind
    it."""
    clusters = request.getfixturevalue("clusters")
    destination = forgetful if forgets else clusters.destination
    link = make_link(topics={topic_name: 1}, source=clusters.source, destination=destination)
    link.make_topics()
    link.publish()
    first = SEQUENCE_MODULUS - BEFORE
    begin_at(link, topic_name, first)
    written = 0
    for end in (BEFORE - 1, BEFORE, BEFORE + 1, BEFORE + 30, BEFORE + 31, BEFORE + 200):
        slot = link.start_slot(changed={CHECKPOINT_SECONDS: 0.2 if end == BEFORE + 30 else 60})
        write(link.source, topic_name, range(written, end))
        written = end
        link.until_copied(end)
        if end == BEFORE + 30:
            eventually(
                lambda at=end: confirmed(link, topic_name) == first + at, what=lambda: f"confirmed: {link.log()}"
            )
        link.kill(slot)
        if forgets:
            until_forgotten(link, topic_name)
    link.start_slot()
    write(link.source, topic_name, range(written, written + 10))
    link.until_copied(written + 10)
    assert [int(record.value or b"") for record in read_all(destination, topic_name, 1)[0]] == list(range(written + 10))
    assert link.losses() == ()
