"""The last record that was copied is held against its source, whose leader may not show it, for more than one reason."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.engine.buffers import BufferPool
from strait.engine.channel import Channel
from strait.engine.cluster import parse_addresses
from strait.engine.codes import Answer
from strait.engine.dial import dial
from strait.engine.loop import Loop
from strait.engine.partition import Partition
from strait.engine.security import Security
from strait.engine.verification import Verification
from strait.kafka.admin import Admin, NewTopic
from strait.model import topic_id_bytes
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from support.upkeep import elect_preferred, in_sync, leaders, reassign
from support.waiting import eventually

pytestmark = pytest.mark.broker

LEADER, FOLLOWER = 1, 2
KEPT = {"retention.ms": "-1"}  # records here have old timestamps


def write(cluster: Cluster, topic: str, numbers: range, acks: str) -> None:
    leader = cluster.bootstrap.split(",")[LEADER - 1]  # another one may be asleep
    producer = Producer(cluster.client_properties | {"acks": acks, "bootstrap.servers": leader})
    for number in numbers:
        producer.produce(topic, b"%d" % number, partition=0, timestamp=1_700_000_000_000 + number)
    assert producer.flush(60) == 0


def verdict(cluster: Cluster, partition: Partition, copied_at: int, source_at: int) -> int | tuple[Reason, str] | None:
    """What is decided, or why it could not be: the reason code and the cause."""
    said: list[int | tuple[Reason, str] | None] = []

    def failed(answer: Answer, cause: str) -> None:
        said.append((answer.reason, cause))

    with closing(Loop()) as loop:
        address = parse_addresses("it", cluster.bootstrap)[LEADER - 1]
        channel = Channel(
            loop, BufferPool(1 << 20), dial("it", address, Security("it", cluster.client_properties)), said.append
        )
        Verification(partition, copied_at, source_at, said.append, failed).start(channel, channel)
        while not said:
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
    """A leader shows nothing that a follower may lack, though it holds it. What lies behind its log's end it refuses."""
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
    ids = (topic_id_bytes(known[name].topic_id) for name in (topic_name, copy))
    partition = Partition(topic_name, 0, copy, *ids, TopicPolicy())
    write(three_brokers, topic_name, range(10), "all")
    write(three_brokers, copy, range(11), "all")
    assert isinstance(verdict(three_brokers, partition, 9, 9), int)
    assert verdict(three_brokers, partition, 9, 8) is None
    assert verdict(three_brokers, partition, 10, 10) is None
    with asleep(three_brokers, FOLLOWER):
        write(three_brokers, topic_name, range(10, 11), "1")
        not_yet = Reason.SOURCE_UNREACHABLE, "the source does not show offset 10 yet"
        assert verdict(three_brokers, partition, 10, 10) == not_yet
    eventually(lambda: isinstance(verdict(three_brokers, partition, 10, 10), int), what="the follower has it")
