"""Another copy has written other records under our numbers: what a broker takes for a repetition, comparing numbers
only."""

import random
import signal
import time
from collections.abc import Callable
from typing import Literal

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from strait.wire.batch import restamp, split_batches
from strait.wire.records import Record, build_batch
from support.fixtures.waiting import eventually
from support.kafka.raw import RawClient
from support.kafka.records import read_all
from support.links.engine_link import EngineLink
from support.links.far import FarCluster
from support.proxy.proxy import Proxy

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
OnLoss = Literal["halt", "restart"]
LARGE = 20_000


def records(keys: str) -> list[Record]:
    return [Record(0, 1_700_000_000_000, key.encode(), b"value", ()) for key in keys]


def append(cluster: Cluster, topic: str, keys: str, producer_id: int = -1) -> None:
    """One batch; with a producer id as that one's first."""
    data = bytearray(build_batch(records(keys), 0))
    if producer_id >= 0:
        (batch,) = split_batches(memoryview(data))
        restamp(batch, producer_id, 0)
    with RawClient(cluster) as client:
        assert client.append(client.topic_id(topic), 0, data).error == 0


def overtaken(link: EngineLink, topic: str, proxy: Proxy, others: str) -> None:
    """A slot has looked its position up and read ``bc``; before its batch arrives another copy writes ``others``, as
    many records under the same numbers."""
    link.make_topics()
    plan = link.publish()
    link.start_slot()
    with link.reports() as newest:
        eventually(
            lambda: (row := newest(topic, 0)) and row.state == "caught_up",
            what=lambda: f"it is ready: {link.log()}",
        )
    proxy.stall()
    append(link.source, topic, "bc")
    time.sleep(1.0)  # it is read and sent, and waited for
    append(link.destination, topic, others, plan.producer_id)
    proxy.calm()


@pytest.mark.parametrize(("others", "in_the_copy"), [("ab", "abbc"), ("bc", "bc")])
def test_of_a_compacted_source_other_records_are_not_taken_for_ours(
    make_link: MakeLink,
    topic_name: str,
    far_source: FarCluster,
    far_destination: FarCluster,
    others: str,
    in_the_copy: str,
) -> None:
    """The other copy read the source when ``a`` was still there. Both must be in the copy, in their order."""
    compacted = TopicPolicy(source_compacted=True)
    link = make_link(source=far_source, destination=far_destination, topics={topic_name: 1}, policy=compacted)
    overtaken(link, topic_name, far_destination.proxy, others)
    link.until_seen()
    (copy,) = read_all(far_destination, topic_name, 1)
    assert "".join((record.key or b"").decode() for record in copy) == in_the_copy
    with link.reports() as newest:
        row = newest(topic_name, 0)
        assert row is not None
        assert row.recopied == len(in_the_copy) - len("bc")


def test_the_same_records_under_the_same_numbers_are_there_once(
    make_link: MakeLink, topic_name: str, far_source: FarCluster, far_destination: FarCluster
) -> None:
    link = make_link(source=far_source, destination=far_destination, topics={topic_name: 1})
    overtaken(link, topic_name, far_destination.proxy, "bc")
    append(far_source, topic_name, "d")
    link.until_seen()
    link.assert_equal()


@pytest.mark.parametrize(("on_loss", "in_the_copy"), [("halt", "ab"), ("continue", "abbcd"), ("restart", "abbcd")])
def test_other_records_under_the_same_numbers_are_never_taken_for_ours(
    make_link: MakeLink,
    topic_name: str,
    far_source: FarCluster,
    far_destination: FarCluster,
    on_loss: OnLoss,
    in_the_copy: str,
) -> None:
    """A copy under another policy, whose words in the map are lost: the last record there is not the source's. The
    ledger has it once somebody has decided to go on."""
    policy = TopicPolicy(on_loss=on_loss)
    link = make_link(source=far_source, destination=far_destination, topics={topic_name: 1}, policy=policy)
    overtaken(link, topic_name, far_destination.proxy, "ab")
    append(far_source, topic_name, "d")
    if on_loss == "halt":
        link.until_waiting(topic_name, 0, Reason.COPY_DIFFERS)
    else:
        link.until_seen()
    (copy,) = read_all(far_destination, topic_name, 1)
    assert "".join((record.key or b"").decode() for record in copy) == in_the_copy
    assert {loss.cause for loss in link.losses()} == (set() if on_loss == "halt" else {Reason.COPY_DIFFERS})


@pytest.mark.parametrize("seed", [7])
def test_copies_under_different_policies_lose_nothing_and_double_nothing(
    make_link: MakeLink, topic_name: str, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """Two copies at once, of which one sleeps while the plan changes, and wakes with what it had read under the one
    before: that waits at records that are too large, this puts them aside and makes batches in another way."""
    source, destination = far_source, far_destination
    plans = (
        TopicPolicy(max_message_bytes=LARGE, compression="gzip"),
        TopicPolicy(max_message_bytes=LARGE, on_refused="quarantine"),
    )
    link = make_link(source=source, destination=destination, topics={topic_name: 1}, policy=plans[0])
    link.make_topics(destination_configs={"max.message.bytes": str(LARGE)})
    link.publish()
    copies = [link.start_slot(), link.start_slot()]
    chance = random.Random(seed)
    producer = Producer(source.client_properties | {"linger.ms": 5})
    count = 0
    for turn in range(1, 17):
        sleeper = chance.choice(copies)
        for _ in range(chance.randrange(20, 200)):
            filler = chance.randbytes(2 * LARGE) if chance.random() < 0.01 else b""
            producer.produce(topic_name, filler, b"%d" % count, partition=0)
            count += 1
        if chance.random() < 0.5:
            assert producer.flush(60) == 0
        sleeper.send_signal(signal.SIGSTOP)
        link.policy = plans[turn % 2]
        link.publish()
        assert producer.flush(60) == 0
        time.sleep(chance.random())
        sleeper.send_signal(signal.SIGCONT)
    link.policy = plans[1]
    link.publish()
    link.until_seen()
    (written,), (copied,) = read_all(source, topic_name, 1), read_all(destination, topic_name, 1)
    small = [record.key for record in written if len(record.value or b"") < LARGE]
    assert len(small) < len(written) == count
    assert [record.key for record in copied] == small
    assert link.losses() == ()
