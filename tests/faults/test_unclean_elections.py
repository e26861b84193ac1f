"""A replica that lacks records becomes the leader, and the log that was copied, or the copy, is not what it was."""

import signal
from collections.abc import Callable, Sequence

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from support.fixtures.waiting import eventually
from support.kafka.administration import elect_preferred, elect_unclean, in_sync, leaders, put_on, reassign
from support.kafka.log_ends import ends
from support.kafka.records import read, read_all
from support.kafka.transactions import Transactions
from support.links.engine_link import EngineLink
from support.links.far import FarCluster

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
LAGGING, AHEAD = 1, 2


def write(cluster: Cluster, topic: str, partitions: int, numbers: Sequence[int]) -> None:
    """Records whose values are these numbers, the same into each partition."""
    # Idempotent: an election makes it send again, and what it sends again must be there once and in order.
    settings = {"linger.ms": 20, "message.timeout.ms": 120_000, "enable.idempotence": True}
    producer = Producer(cluster.client_properties | settings)
    for number in numbers:
        for partition in range(partitions):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(120) == 0


def spans(cluster: Cluster, topic: str, partitions: int) -> list[list[tuple[int, int]]]:
    """Of each partition the numbers that follow one another, as first and last."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(partitions)]
    for partition, record in read(cluster, topic, partitions):
        number, one = int(record.value or b""), found[partition]
        if one and one[-1][1] + 1 == number:
            one[-1] = (one[-1][0], number)
        else:
            one.append((number, number))
    return found


def put_on_two(cluster: Cluster, topic: str, partitions: int) -> None:
    """On the broker that will have all records, which leads, and the one that will lack some."""
    put_on(cluster, topic, [AHEAD, LAGGING], partitions)


def lose(cluster: Cluster, partitions: dict[str, int], left: int) -> None:
    """The broker that has all dies, and the other one leads, with ``left`` records in each partition."""
    cluster.kill(AHEAD)
    cluster.start_broker(LAGGING)
    for topic, count in partitions.items():
        for number in range(count):
            elect_unclean(cluster, topic, number, LAGGING)
        eventually(lambda t=topic, n=count: ends(cluster, t, n) == [left] * n, what="the new leader's log")


def test_a_source_truncated_by_an_unclean_election_is_never_copied_over(
    make_long_link: MakeLink, topic_name: str, three_brokers: Cluster
) -> None:
    """The records up to the truncation stay equal; what the source has lost stays on the destination."""
    link = make_long_link("source", 1)
    put_on_two(three_brokers, topic_name, 1)
    link.start_slot()
    write(link.source, topic_name, 1, range(1_000))
    link.until_copied()
    three_brokers.kill(LAGGING)
    write(link.source, topic_name, 1, range(1_000, 2_000))
    link.until_copied(2_000)
    lose(three_brokers, link.topics, 1_000)
    row = link.until_waiting(topic_name, 0, Reason.SOURCE_TRUNCATED)
    assert row.position == 2_000
    (left,), (copied,) = read_all(link.source, topic_name, 1), read_all(link.destination, topic_name, 1)
    assert copied[:1_000] == left
    assert len(copied) == 2_000


def test_a_truncated_source_is_copied_again_from_its_beginning_where_the_rule_says_so(
    make_long_link: MakeLink, topic_name: str, three_brokers: Cluster
) -> None:
    """``restart``: behind what is in the copy comes all that the source has, once, also if the slot dies at once."""
    link = make_long_link("source", 1)
    link.policy = TopicPolicy(on_loss="restart")
    link.publish()
    put_on_two(three_brokers, topic_name, 1)
    slot = link.start_slot()
    write(link.source, topic_name, 1, range(1_000))
    link.until_copied()
    three_brokers.kill(LAGGING)
    write(link.source, topic_name, 1, range(1_000, 2_000))
    link.until_copied(2_000)
    lose(three_brokers, link.topics, 1_000)
    eventually(lambda: link.copied() > 2_000, what=lambda: f"it begins again: {link.log()}")
    link.kill(slot)
    link.start_slot()
    write(link.source, topic_name, 1, range(10_000, 10_500))
    link.until_copied(3_500)
    assert spans(link.source, topic_name, 1) == [[(0, 999), (10_000, 10_499)]]
    assert spans(link.destination, topic_name, 1) == [[(0, 1_999), (0, 999), (10_000, 10_499)]], link.log()
    (loss,) = link.losses()
    assert (loss.cause, loss.from_offset, loss.to_offset, loss.action) == (
        Reason.SOURCE_TRUNCATED, 1_000, 2_000, "restarted",
    )  # fmt: skip


def test_a_source_truncated_and_grown_again_beyond_our_position_is_noticed(
    make_long_link: MakeLink, topic_name: str, three_brokers: Cluster, far_destination: FarCluster
) -> None:
    """Only leader epochs tell: the offset that is asked for next is there, in another log. By a slot that slept
    meanwhile, and by one that was killed and started again, and has to look at the copy, far away, to know."""
    link = make_long_link("source", 2)
    link.slots, link.policy = 2, TopicPolicy(on_loss="continue")
    link.publish()
    put_on_two(three_brokers, topic_name, 2)
    sleeping, killed = (
        link.start_slot(slot, changed={"strait.engine.slot:CHECKPOINT_SECONDS": 0.5}) for slot in (0, 1)
    )
    write(link.source, topic_name, 2, range(500))
    link.until_copied()
    three_brokers.kill(LAGGING)
    write(link.source, topic_name, 2, range(500, 1_000))
    link.until_copied(2_000)
    eventually(lambda: confirmed(link, topic_name) == [1_000, 1_000], what="checkpoints")
    sleeping.send_signal(signal.SIGSTOP)
    link.kill(killed)
    lose(three_brokers, link.topics, 500)
    write(link.source, topic_name, 2, range(10_000, 11_000))
    far_destination.proxy.delay(0.3)
    sleeping.send_signal(signal.SIGCONT)
    link.start_slot(1)
    link.until_copied(4_000)
    written, copied = (spans(cluster, topic_name, 2) for cluster in (link.source, link.destination))
    assert written == [[(0, 499), (10_000, 10_999)]] * 2
    assert copied == [[(0, 999), (10_000, 10_999)]] * 2, link.log()
    assert sorted(
        (loss.partition, loss.cause, loss.from_offset, loss.to_offset, loss.action) for loss in link.losses()
    ) == [(number, str(Reason.SOURCE_TRUNCATED), 500, 1_000, "continued") for number in (0, 1)]


def test_another_leader_where_nothing_is_to_copy_is_no_truncation(
    make_long_link: MakeLink, topic_name: str, three_brokers: Cluster
) -> None:
    """The position has passed over aborted records, through an election in good order. The last record's leader epoch
    then ends far before the position, and nothing was lost."""
    link = make_long_link("source", 1)
    put_on_two(three_brokers, topic_name, 1)
    writer = Transactions(three_brokers, topic_name, topic_name, 1)

    def transaction(records: int, *, commit: bool) -> None:
        writer.begin()
        writer.write(records)
        writer.end(commit)

    slot = link.start_slot()
    transaction(10, commit=True)
    transaction(150, commit=False)
    reassign(three_brokers, topic_name, [[LAGGING, AHEAD]])
    elect_preferred(three_brokers, topic_name)
    eventually(lambda: leaders(three_brokers, topic_name) == [LAGGING], what="the other replica leads")
    transaction(150, commit=False)
    link.until_seen()
    link.publish(stopped=True)
    slot.wait(60)
    link.publish()
    for _ in range(2):  # once where the newest checkpoint is exact, once where records follow it
        slot = link.start_slot()
        transaction(10, commit=True)
        link.until_seen()
        link.kill(slot)
    link.start_slot()
    link.until_seen()
    link.assert_same_records()
    assert link.losses() == ()


def confirmed(link: EngineLink, topic: str) -> list[int]:
    """How many records of each partition the newest checkpoint confirms."""
    return [max(run.sequence_end for run in link.runs(topic, number)) for number in range(link.topics[topic])]


def test_a_destination_truncated_by_an_unclean_election_is_made_whole_again(
    make_long_link: MakeLink, topic_name: str, three_brokers: Cluster
) -> None:
    """Whatever the policy says of losses of the source. That it was acknowledged is known before any checkpoint says
    so."""
    link = make_long_link("destination", 1)
    policies = {f"{topic_name}.{on_loss}": TopicPolicy(on_loss=on_loss) for on_loss in ("halt", "continue", "restart")}
    link.topics = dict.fromkeys(policies, 1)
    link.make_topics()
    link.publish(policies=policies)
    for topic in policies:
        put_on_two(three_brokers, topic, 1)
    link.start_slot()
    for topic in policies:
        write(link.source, topic, 1, range(500))
    link.until_copied()
    three_brokers.kill(LAGGING)
    for topic in policies:  # until then nothing is acknowledged
        eventually(lambda topic=topic: in_sync(three_brokers, topic) == [{AHEAD}], what=f"{topic} has one replica")
        write(link.source, topic, 1, range(500, 1_000))
    link.until_seen()  # acknowledged, too: what is lost with its acknowledgement is copied again without a word
    lose(three_brokers, link.topics, 500)
    link.until_copied()
    for topic in policies:
        write(link.source, topic, 1, range(1_000, 1_010))
    link.until_copied()
    link.assert_equal()
    assert sorted(
        (loss.topic, loss.side, loss.cause, loss.from_offset, loss.to_offset, loss.action) for loss in link.losses()
    ) == [
        (topic, "destination", str(Reason.DESTINATION_TRUNCATED), 500, 1_000, "restarted") for topic in sorted(policies)
    ]
