"""Other producers write into the destination topic too, by design: its log's end then proves nothing, and what is lost
between their records must be found all the same."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from support.fixtures.background import background
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.producers import FORGETFUL, until_forgotten
from support.kafka.records import read_all
from support.links.engine_link import EngineLink
from support.links.far import FarCluster, FarLink, running

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
OTHERS = 1_000_000
"""Their values begin here."""
HOUR_MS = 3_600_000


def write(cluster: Cluster, topic: str, values: range, *, age_ms: int = 0) -> None:
    producer = Producer(cluster.client_properties)
    at_ms = time.time_ns() // 1_000_000 - age_ms
    for value in values:
        producer.produce(topic, b"%d" % value, partition=0, timestamp=at_ms)
    assert producer.flush(60) == 0


def ours(cluster: Cluster, topic: str) -> list[int]:
    """The link's records in the copy, in order."""
    found = [int(record.value or b"-1") for record in read_all(cluster, topic, 1)[0]]
    return [value for value in found if value < OTHERS]


def cut_log(folder: Path, topic: str, offset: int) -> None:
    """Take away every batch from this offset on, as a host does that crashes before it has written them to its disk."""
    (log,) = folder.rglob(f"{topic}-0/00000000000000000000.log")
    data, at = log.read_bytes(), 0
    while int.from_bytes(data[at : at + 8], "big") < offset:
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    os.truncate(log, at)
    for file in log.parent.iterdir():
        if file.suffix in (".snapshot", ".index", ".timeindex"):
            file.unlink()


@pytest.mark.parametrize(("on_loss", "age_ms"), [("halt", 0), ("continue", 2 * HOUR_MS)])
def test_acknowledged_records_that_the_destination_lost_are_copied_again(
    make_link: MakeLink, topic_name: str, tmp_path: Path, request: pytest.FixtureRequest, on_loss: str, age_ms: int
) -> None:
    """A checkpoint confirms them, others wrote where they were, and the broker forgot the link."""
    source = request.getfixturevalue("clusters").source
    with Cluster(tmp_path / "destination", properties=FORGETFUL) as destination:
        link = make_link(topics={topic_name: 1}, source=source, destination=destination)
        link.policy = TopicPolicy.model_validate({"on_foreign": "expect", "on_loss": on_loss})
        link.make_topics()
        link.publish()
        slot = link.start_slot()
        for at in range(0, 100, 10):
            write(source, topic_name, range(at, at + 10), age_ms=age_ms)
            link.until_copied(at + 10)
        link.publish(stopped=True)
        slot.wait(30)
        link.publish()
        assert max(run.sequence_end for run in link.runs(topic_name, 0)) == 100

        destination.kill(1)
        cut_log(tmp_path / "destination", topic_name, 60)
        destination.start_broker(1)
        assert ends(destination, topic_name, 1) == [60]
        write(destination, topic_name, range(OTHERS, OTHERS + 100))
        until_forgotten(link, topic_name)

        write(source, topic_name, range(100, 110), age_ms=age_ms)
        link.start_slot()
        eventually(lambda: ours(destination, topic_name)[-1:] == [109], what=lambda: f"all: {link.log()}")
        assert ours(destination, topic_name) == list(range(110))
        (loss,) = link.losses()
        assert (loss.cause, loss.from_offset, loss.to_offset) == (Reason.DESTINATION_TRUNCATED, 60, 100)
        link.stop()


def test_a_loss_from_before_the_packed_offset_segments_is_copied_again(
    make_link: MakeLink, topic_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each record is followed by two of others, so a packed segment's destination offset fits its end alone. The broker
    still knows the link."""
    source = request.getfixturevalue("clusters").source
    often = {"strait.engine.packing:PACK_RUNS": 3, "strait.engine.slot:CHECKPOINT_SECONDS": 0.3}
    with Cluster(tmp_path / "destination") as destination:
        link = make_link(topics={topic_name: 1}, source=source, destination=destination)
        link.policy = TopicPolicy(on_foreign="expect")
        link.make_topics()
        link.publish()
        slot = link.start_slot(changed=often)
        for at in range(14):
            write(source, topic_name, range(at, at + 1))
            link.until_copied(3 * at + 1)
            confirmed = at + 1
            eventually(
                lambda: max(run.sequence_end for run in link.runs(topic_name, 0)) >= confirmed,  # noqa: B023
                what=lambda: f"a checkpoint: {link.log()}",
            )
            for number in (OTHERS, OTHERS + 1):  # each in a batch of its own
                write(destination, topic_name, range(number, number + 1))
        assert len(link.runs(topic_name, 0)) < 5, "packed"
        link.kill(slot)

        destination.kill(1)
        cut_log(tmp_path / "destination", topic_name, 35)  # behind record 11 of the link, at offset 33, and another
        destination.start_broker(1)
        assert ends(destination, topic_name, 1) == [35]

        link.start_slot(changed=often)
        eventually(lambda: ours(destination, topic_name) == list(range(14)), what=lambda: f"all: {link.waiting()}")
        assert {loss.cause for loss in link.losses()} == {Reason.DESTINATION_TRUNCATED}
        assert [(loss.from_offset, loss.to_offset) for loss in link.losses()] == [(34, 40)]
        write(source, topic_name, range(14, 20))
        eventually(lambda: ours(destination, topic_name) == list(range(20)), what=lambda: f"all: {link.waiting()}")
        link.stop()


def test_a_refused_batch_of_old_records_loses_none_of_those_after_it(
    topic_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The broker forgets the link between the refusal and what would be under way behind it, and takes any sequence
    then."""
    source = request.getfixturevalue("clusters").source
    destination = FarCluster(tmp_path / "destination", properties=FORGETFUL)
    with running(destination):
        link = FarLink("link", source, destination, tmp_path, {topic_name: 1})
        link.policy = TopicPolicy(on_foreign="expect", on_refused="quarantine")
        link.make_topics(destination_configs={"message.timestamp.before.max.ms": str(5 * HOUR_MS)})
        link.publish()
        now_ms = time.time_ns() // 1_000_000
        good, refused = now_ms - 2 * HOUR_MS, now_ms - 10 * HOUR_MS
        producer = Producer(source.client_properties | {"batch.size": 1_000_000})
        wanted = []
        for batch in range(120):
            for number in range(batch * 5, batch * 5 + 5):
                is_bad = batch % 12 == 7 and number % 5 == 2
                at_ms, key = refused if is_bad else good, os.urandom(16_000)
                producer.produce(topic_name, b"%d" % number, key=key, partition=0, timestamp=at_ms)
                if not is_bad:
                    wanted.append(number)
            assert producer.flush(60) == 0
        destination.proxy.delay(0.15)

        copied = threading.Event()

        def others(stop: threading.Event) -> None:
            at = OTHERS
            while not (copied.wait(0.1) or stop.is_set()):
                write(destination, topic_name, range(at, at + 100))
                at += 100

        try:
            with background(others):
                link.start_slot()
                link.until_seen()
                copied.set()
            destination.proxy.calm()
            assert ours(destination, topic_name) == wanted
            assert link.losses() == ()
        finally:
            link.stop()
