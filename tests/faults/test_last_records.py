"""The last record that was copied is held against its source, whose leader may not show it, for more than one
reason."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.engine.partition.partition import Partition
from strait.engine.recovery.verification import Unreadable, Verdict, Verified, compare, read_copied
from strait.kafka.admin import Admin, NewTopic
from strait.model import topic_id_bytes
from strait.net.addresses import parse_addresses
from strait.net.buffers import BufferPool
from strait.net.channel import Channel
from strait.net.event_loop import Loop
from strait.net.handshake import dial
from strait.net.security import Security
from strait.net.tasks import run
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from strait.wire.batch import restamp, split_batches
from strait.wire.records import Record, build_batch
from support.fixtures.waiting import eventually
from support.kafka.administration import elect_preferred, in_sync, leaders, reassign
from support.kafka.raw import RawClient

pytestmark = pytest.mark.broker

LEADER, FOLLOWER = 1, 2
TIMESTAMP_MS = 1_700_000_000_000
KEPT = {"retention.ms": "-1"}  # records here have old timestamps


def write(cluster: Cluster, topic: str, numbers: range, acks: str) -> None:
    leader = cluster.bootstrap.split(",")[LEADER - 1]  # another one may be asleep
    producer = Producer(cluster.client_properties | {"acks": acks, "bootstrap.servers": leader})
    for number in numbers:
        producer.produce(topic, b"%d" % number, partition=0, timestamp=TIMESTAMP_MS + number)
    assert producer.flush(60) == 0


PRODUCER_ID = 4711


def append_as_the_link(cluster: Cluster, topic: str, numbers: range) -> None:
    """One batch with the producer id and the sequences that a link would give it."""
    found = [Record(0, TIMESTAMP_MS + number, None, b"%d" % number, ()) for number in numbers]
    data = build_batch(found, 0)
    (batch,) = split_batches(memoryview(data))
    restamp(batch, PRODUCER_ID, numbers.start)
    with RawClient(cluster) as client:
        assert client.append(client.topic_id(topic), 0, data).error == 0


def verdict(cluster: Cluster, partition: Partition, copied_at: int, source_at: int) -> Verdict | tuple[Reason, str]:
    """What is found, or why nothing could be: the reason code and the cause."""
    said: list[Verdict | tuple[Reason, str]] = []
    lost: list[str] = []

    async def work(loop: Loop, channel: Channel) -> None:
        producer = PRODUCER_ID, copied_at
        try:
            copied = await read_copied(loop, channel, partition, producer, copied_at, search=False)
            verified = (
                copied if isinstance(copied, Verified) else await compare(loop, channel, partition, copied, source_at)
            )
        except Unreadable as trouble:
            said.append((trouble.answer.reason, trouble.cause))
        else:
            said.append(verified.verdict)

    with closing(Loop()) as loop:
        address = parse_addresses("it", cluster.bootstrap)[LEADER - 1]
        connection = dial("it", address, Security("it", cluster.client_properties))
        channel = Channel(loop, BufferPool(1 << 20), connection, lost.append)
        run(work(loop, channel))
        while not said:
            assert not lost, lost
            loop.run_once(1.0)
            channel.expire()
        channel.close("done")
    return said[0]


@contextmanager
def asleep(cluster: Cluster, broker: int) -> Iterator[None]:
    pid = cluster.pid(broker)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_what_a_leader_does_not_show_yet_is_not_called_lost(three_brokers: Cluster, topic_name: str) -> None:
    """A leader shows nothing that a follower may lack, though it holds it. What lies behind its log's end it
    refuses."""
    copy = f"{topic_name}.copy"
    two = {"min.insync.replicas": "2"}  # with fewer in sync no record is shown, however long that lasts
    admin = Admin(three_brokers.client_properties, "it")
    admin.create([NewTopic(topic_name, 1, 2, KEPT | two), NewTopic(copy, 1, 1, KEPT)])
    reassign(three_brokers, topic_name, [[LEADER, FOLLOWER]])
    reassign(three_brokers, copy, [[LEADER]])
    eventually(lambda: in_sync(three_brokers, topic_name) == [{LEADER, FOLLOWER}], what="two replicas")
    eventually(lambda: in_sync(three_brokers, copy) == [{LEADER}], what="one replica")
    elect_preferred(three_brokers, topic_name)
    eventually(lambda: leaders(three_brokers, topic_name) == [LEADER], what="the preferred leader leads")
    known = admin.observe({topic_name, copy}.__contains__).topics
    source_id, copy_id = (topic_id_bytes(known[name].topic_id) for name in (topic_name, copy))
    partition = Partition(topic_name, 0, copy, source_id, copy_id, TopicPolicy())
    write(three_brokers, topic_name, range(10), "all")
    append_as_the_link(three_brokers, copy, range(11))
    assert verdict(three_brokers, partition, 9, 9) is Verdict.SAME
    assert verdict(three_brokers, partition, 9, 8) is Verdict.DIFFERENT
    assert verdict(three_brokers, partition, 10, 10) is Verdict.GONE
    with asleep(three_brokers, FOLLOWER):
        write(three_brokers, topic_name, range(10, 11), "1")
        not_yet = Reason.SOURCE_UNREACHABLE, "the source does not show offset 10 yet"
        assert verdict(three_brokers, partition, 10, 10) == not_yet
    eventually(lambda: verdict(three_brokers, partition, 10, 10) is Verdict.SAME, what="the follower has it")
