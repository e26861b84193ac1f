"""The destination's broker has forgotten the link's producer ID, here within a second instead of a day: what its log
still shows must then prove how much was copied, or nothing may be copied past it."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from strait.config import naming
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from support.fixtures.waiting import eventually
from support.kafka.administration import asleep, elect_preferred, in_sync, leaders, reassign, replicas
from support.kafka.log_ends import ends
from support.kafka.producers import FORGETFUL, until_forgotten
from support.kafka.records import read_all
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


@pytest.fixture
def link(make_link: MakeLink, topic_name: str, forgetful: Cluster, request: pytest.FixtureRequest) -> EngineLink:
    source = request.getfixturevalue("clusters").source
    return make_link(topics={topic_name: 1}, source=source, destination=forgetful)


def write(cluster: Cluster, topic: str, values: range, *, at_ms: int = 0, **settings: object) -> None:
    """One record for each number, the same key for every tenth."""
    producer = Producer(cluster.client_properties | settings)
    for value in values:
        producer.produce(topic, b"%d" % value, key=b"%d" % (value % 10), partition=0, timestamp=at_ms)
    assert producer.flush(60) == 0


def values(cluster: Cluster, topic: str) -> list[int]:
    return [int(record.value or b"-1") for record in read_all(cluster, topic, 1)[0]]


def delete_all(cluster: Cluster, topic: str) -> None:
    """Empty the log, as retention does."""
    (end,) = ends(cluster, topic, 1)
    client = AdminClient(cluster.client_properties)  # kept until the answer is there: without it none comes
    for future in client.delete_records([TopicPartition(topic, 0, end)]).values():
        future.result(30)


def end_cleanly(link: EngineLink, process: subprocess.Popen[bytes]) -> None:
    """With a checkpoint of all that was copied."""
    link.publish(stopped=True)
    process.wait(30)
    link.publish()


def copy_some(link: EngineLink, topic: str, records: int = 100) -> None:
    """That many records, and a checkpoint of them all."""
    write(link.source, topic, range(records))
    slot = link.start_slot()
    link.until_copied(records)
    end_cleanly(link, slot)
    assert max(run.sequence_end for run in link.runs(topic, 0)) == records


def test_an_emptied_log_does_not_count_others_records_as_ours(link: EngineLink, topic_name: str) -> None:
    """Five foreign records moved the log's end; then all was deleted, and the broker forgot the link."""
    link.make_topics()
    link.publish()
    copy_some(link, topic_name)
    write(link.destination, topic_name, range(1000, 1005))
    delete_all(link.destination, topic_name)
    until_forgotten(link, topic_name)
    write(link.source, topic_name, range(100, 110))
    link.start_slot()
    row = link.until_waiting(topic_name, 0, Reason.POSITION_UNVERIFIED)
    assert "offsets 100 to 104" in row.detail
    assert values(link.destination, topic_name) == []
    link.policy = TopicPolicy(on_loss="restart")
    link.publish()
    link.until_copied(115)
    assert values(link.destination, topic_name) == list(range(100, 110))
    (loss,) = link.losses()
    assert (loss.cause, loss.from_offset, loss.to_offset) == (Reason.POSITION_UNVERIFIED, 100, 105)


def test_a_foreign_writer_is_still_one_after_the_broker_forgot(link: EngineLink, topic_name: str) -> None:
    link.make_topics()
    link.publish()
    copy_some(link, topic_name)
    write(link.destination, topic_name, range(1000, 1005))
    until_forgotten(link, topic_name)
    write(link.source, topic_name, range(100, 110))
    link.start_slot()
    link.until_waiting(topic_name, 0, Reason.FOREIGN_WRITER)
    delete_all(link.destination, topic_name)
    link.until_waiting(topic_name, 0, Reason.POSITION_UNVERIFIED)
    assert values(link.destination, topic_name) == []


def test_an_emptied_log_of_ours_alone_goes_on(link: EngineLink, topic_name: str) -> None:
    """Its end is the checkpoint's own offset: nobody can have written since."""
    link.make_topics()
    link.publish()
    copy_some(link, topic_name)
    delete_all(link.destination, topic_name)
    until_forgotten(link, topic_name)
    write(link.source, topic_name, range(100, 110))
    link.start_slot()
    link.until_copied(110)
    assert values(link.destination, topic_name) == list(range(100, 110))
    assert link.losses() == ()


def test_records_deleted_under_a_running_slot(link: EngineLink, topic_name: str) -> None:
    """Retention on the destination takes what was copied; it is not copied again, and nothing is missing behind it."""
    link.make_topics()
    link.publish()
    link.start_slot()
    for batch in range(5):
        write(link.source, topic_name, range(batch * 50, batch * 50 + 50))
        link.until_copied(batch * 50 + 50)
        delete_all(link.destination, topic_name)
        time.sleep(1.5)  # it forgets the link in between
    write(link.source, topic_name, range(250, 300))
    link.until_copied(300)
    assert values(link.destination, topic_name) == list(range(250, 300))
    assert link.losses() == ()


def test_the_last_number_of_a_compacted_batch_is_the_one_it_was_written_with(link: EngineLink, topic_name: str) -> None:
    """The cleaner lowers a batch's number of records and leaves its last offset; whoever adds the former to its first
    sequence copies again what is there."""
    compacted = {
        "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0", "segment.ms": "100", "max.compaction.lag.ms": "100",
    }  # fmt: skip
    link.policy = TopicPolicy(on_foreign="expect")
    link.make_topics(destination_configs=compacted)
    link.publish()
    write(link.source, topic_name, range(10))
    slot = link.start_slot()
    link.until_copied(10)
    end_cleanly(link, slot)
    slot = link.start_slot()
    write(link.source, topic_name, range(10, 100), **{"linger.ms": 200})
    link.until_copied(100)
    link.kill(slot)  # its last checkpoint is at record 10
    write(link.destination, topic_name, range(1000, 1010))  # takes away the ten that were left, but for their batch
    eventually(
        lambda: len(values(link.destination, topic_name)) <= 20,
        what=lambda: f"it is compacted: {values(link.destination, topic_name)}",
    )
    until_forgotten(link, topic_name)
    write(link.source, topic_name, range(100, 110))
    link.start_slot()
    eventually(lambda: ends(link.destination, topic_name, 1)[0] >= 120, what=lambda: f"ten more: {link.log()}")
    time.sleep(1.0)
    assert ends(link.destination, topic_name, 1) == [120]
    assert values(link.destination, topic_name)[-10:] == list(range(100, 110))


def test_what_lies_between_a_checkpoint_and_others_records_is_read_once(link: EngineLink, topic_name: str) -> None:
    """A direction that writes little, among much of others: what was read without finding anything is not read
    again."""
    link.policy = TopicPolicy(on_foreign="expect")
    link.make_topics()
    link.publish()
    copy_some(link, topic_name, 10)
    write(link.destination, topic_name, range(1000, 31_000), **{"queue.buffering.max.messages": 100_000})
    until_forgotten(link, topic_name)
    slot = link.start_slot()
    eventually(
        lambda: any(run.destination_base == 30_010 and run.sequence_base == 10 for run in link.runs(topic_name, 0)),
        what=lambda: f"the map says so: {link.runs(topic_name, 0)} {link.log()}",
    )
    write(link.source, topic_name, range(10, 20))
    eventually(lambda: ends(link.destination, topic_name, 1) == [30_020], what=lambda: f"ten more: {link.log()}")
    end_cleanly(link, slot)
    until_forgotten(link, topic_name)
    write(link.source, topic_name, range(20, 30))
    link.start_slot()
    eventually(lambda: ends(link.destination, topic_name, 1)[0] >= 30_030, what=lambda: f"ten more: {link.log()}")
    ours = [value for value in values(link.destination, topic_name) if value < 1000]
    assert ours == list(range(30))


def test_a_tail_that_no_follower_has_yet_is_not_sent_again(
    make_link: MakeLink, topic_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A follower stalls; the leader appends what is sent, and forgets the link before the follower has it. Whoever
    looks up to the high watermark alone sends all of it again, and a leader without state takes it."""
    patient = {"broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "60000"}
    with Cluster(tmp_path / "forgetful-three", 3, properties=FORGETFUL | patient) as destination:
        source = request.getfixturevalue("clusters").source
        link = make_link(topics={topic_name: 1}, source=source, destination=destination)
        link.make_topics()
        state = state_topics(link)
        for state_topic in state:
            reassign(destination, state_topic, [[1]])
        reassign(destination, topic_name, [[1, 2]])
        for topic in (topic_name, *state):
            wanted = {1, 2} if topic == topic_name else {1}
            eventually(
                lambda t=topic, w=wanted: in_sync(destination, t) == [w],
                what=lambda t=topic: f"{t} is moved: {replicas(destination, t)}, in sync {in_sync(destination, t)}",
            )
        elect_preferred(destination, topic_name)
        eventually(lambda: leaders(destination, topic_name) == [1], what="the preferred leader leads")
        link.publish()
        link.start_slot()
        old_ms = int(time.time() * 1000) - 2 * 3_600_000
        write(source, topic_name, range(100), at_ms=old_ms)
        link.until_copied(100)
        with asleep(destination, 2):
            write(source, topic_name, range(100, 110), at_ms=old_ms)
            link.until_waiting(topic_name, 0, Reason.LOOKING_UP)
            time.sleep(5.0)
        write(source, topic_name, range(110, 120), at_ms=old_ms)
        link.until_copied(120)
        time.sleep(1.0)
        assert values(destination, topic_name) == list(range(120))


def state_topics(link: EngineLink) -> list[str]:
    """All of them, once every broker knows of the one that was created last."""
    admin = Admin(link.destination.client_properties, "it")

    def known() -> list[str]:
        found = sorted(admin.observe(lambda name: name.startswith(f"strait.{link.name}.")).topics)
        return found if naming.history_topic(link.name) in found else []

    return eventually(known, what="all state topics are known")
