"""What is lost on either side, or written there by others: told in reports and once in the ledger, and dealt with by
policy."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.reasons import Reason
from strait.state.codec import key_of
from strait.state.offset_map import covering, destination_offset
from strait.state.schema import Loss, TopicPolicy
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import Record, read_all
from support.kafka.transactions import Transactions
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


def write(cluster: Cluster, topic: str, first: int, behind: int) -> None:
    """Records whose values are these numbers."""
    producer = Producer(cluster.client_properties | {"linger.ms": 20})
    for number in range(first, behind):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=1_700_000_000_000 + number)
    assert producer.flush(60) == 0


def delete_before(cluster: Cluster, topic: str, offset: int) -> None:
    admin = AdminClient(cluster.client_properties)
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result()


def recreate(cluster: Cluster, topic: str) -> None:
    admin = AdminClient(cluster.client_properties)
    for future in admin.delete_topics([topic], operation_timeout=30).values():
        future.result()
    anew = [NewTopic(topic, 1, 1, {"retention.ms": "-1"})]
    eventually(lambda: topic in Admin(cluster.client_properties, "it").create(anew), what="it is there again")


def copied_numbers(link: EngineLink, topic: str) -> list[int]:
    return [int(record.value or b"") for record in read_all(link.destination, topic, 1)[0]]


def entries(link: EngineLink) -> list[Loss]:
    """The ledger, each loss once whoever told it."""
    return list({key_of(loss): loss for loss in link.losses()}.values())


def told(losses: Sequence[Loss]) -> list[tuple[Any, ...]]:
    return [(loss.side, loss.cause, loss.from_offset, loss.to_offset, loss.action) for loss in losses]


def halfway(make_link: MakeLink, topic: str, policy: TopicPolicy) -> EngineLink:
    """A link that has copied numbers 0 to 99; its slot was killed."""
    link = make_link(topics={topic: 1}, policy=policy)
    link.make_topics()
    link.publish()
    write(link.source, topic, 0, 100)
    slot = link.start_slot()
    link.until_copied()
    link.kill(slot)
    return link


@pytest.mark.parametrize("on_loss", ["halt", pytest.param("continue", marks=pytest.mark.core), "restart"])
def test_retention_that_overtakes_the_copy(make_link: MakeLink, topic_name: str, on_loss: Any) -> None:
    link = halfway(make_link, topic_name, TopicPolicy(on_loss=on_loss))
    write(link.source, topic_name, 100, 300)
    delete_before(link.source, topic_name, 250)
    for _ in range(2):  # who finds it again after a crash tells no new loss
        slot = link.start_slot()
        if on_loss == "halt":
            assert "100 to 249" in link.until_waiting(topic_name, 0, Reason.SOURCE_DATA_LOST).detail
        else:
            link.until_copied(150)
        link.kill(slot)
    kept = [] if on_loss == "halt" else list(range(250, 300))
    assert copied_numbers(link, topic_name) == [*range(100), *kept]
    action = "halted" if on_loss == "halt" else "continued"
    assert told(entries(link)) == [("source", str(Reason.SOURCE_DATA_LOST), 100, 250, action)]
    if on_loss != "halt":
        write(link.source, topic_name, 300, 310)
        link.start_slot()
        link.until_copied(160)
        assert copied_numbers(link, topic_name) == [*range(100), *range(250, 310)]


def test_a_halted_partition_goes_on_once_the_policy_lets_it(make_link: MakeLink, topic_name: str) -> None:
    link = halfway(make_link, topic_name, TopicPolicy())
    write(link.source, topic_name, 100, 300)
    delete_before(link.source, topic_name, 250)
    link.start_slot()
    link.until_waiting(topic_name, 0, Reason.SOURCE_DATA_LOST)
    link.policy = TopicPolicy(on_loss="continue")
    link.publish()
    link.until_copied(150)
    assert copied_numbers(link, topic_name) == [*range(100), *range(250, 300)]


def test_a_source_made_anew_is_copied_behind_what_was_copied_of_the_old_one(
    make_link: MakeLink, topic_name: str
) -> None:
    """With `restart`, once the plan names the new topic; and on from there after a crash. The second time is another
    entry."""
    link = halfway(make_link, topic_name, TopicPolicy(on_loss="restart"))
    recreate(link.source, topic_name)
    write(link.source, topic_name, 1_000, 1_040)
    slot = link.start_slot()
    link.until_waiting(topic_name, 0, Reason.SOURCE_RECREATED)
    link.publish()
    link.until_copied(140)
    link.kill(slot)
    write(link.source, topic_name, 1_040, 1_050)
    link.start_slot()
    link.until_copied(150)
    assert copied_numbers(link, topic_name) == [*range(100), *range(1_000, 1_050)]
    entry = ("source", str(Reason.SOURCE_RECREATED), 0, 0, "restarted")
    assert told(link.losses()) == [entry]
    recreate(link.source, topic_name)
    write(link.source, topic_name, 2_000, 2_005)
    link.publish()
    link.until_copied(155)
    assert copied_numbers(link, topic_name) == [*range(100), *range(1_000, 1_050), *range(2_000, 2_005)]
    assert told(link.losses()) == [entry, entry]


def test_among_foreign_records_the_copy_stays_whole_and_the_map_exact(make_link: MakeLink, topic_name: str) -> None:
    """With `on_foreign: continue`, whether they write while the slot runs or not, and behind gaps of the source."""
    link = halfway(make_link, topic_name, TopicPolicy(on_foreign="continue"))
    write(link.destination, topic_name, 9_000, 9_003)
    transactions = Transactions(link.source, topic_name, topic_name, 1)
    slot = link.start_slot()
    for turn in range(3):
        transactions.begin()
        transactions.write(5)
        transactions.end(turn != 1)
        write(link.source, topic_name, 100 + turn, 101 + turn)
        link.until_seen()
        write(link.destination, topic_name, 9_010 + turn, 9_011 + turn)
    link.kill(slot)
    write(link.source, topic_name, 103, 110)
    link.start_slot()
    link.until_seen()
    written, found = read_all(link.source, topic_name, 1)[0], read_all(link.destination, topic_name, 1)[0]
    copied = [record for record in found if not is_a_strangers(record)]
    assert [record[1:] for record in copied] == [record[1:] for record in written]
    runs = link.runs(topic_name, 0)
    for sequence, record in enumerate(copied):
        assert destination_offset(covering(runs, sequence), sequence) == record.offset, runs
    strangers = [record.offset for record in found if is_a_strangers(record)]
    lost = [(loss.from_offset, loss.to_offset, loss.action) for loss in entries(link)]
    assert lost == [
        (strangers[0], strangers[0] + 3, "continued"),
        *((offset, offset + 1, "continued") for offset in strangers[3:]),
    ]
    assert {loss.cause for loss in entries(link)} == {str(Reason.FOREIGN_WRITER)}


def test_among_foreign_records_by_design_nothing_is_noted_and_nothing_repeated(
    make_link: MakeLink, topic_name: str
) -> None:
    """With `on_foreign: expect`. Since the source is compacted, a crashed copy looks for its last record, wherever
    strangers have moved it to since the checkpoint."""
    link = halfway(make_link, topic_name, TopicPolicy(on_foreign="expect", source_compacted=True))
    slot = link.start_slot()
    for turn in range(1, 16):
        write(link.destination, topic_name, 9_000 + 2 * turn, 9_000 + 2 * turn + turn % 3)
        write(link.source, topic_name, 100 + turn - 1, 100 + turn)
        if turn % 5 == 0:
            link.until_seen()
            link.kill(slot)
            write(link.destination, topic_name, 9_500 + turn, 9_501 + turn)
            slot = link.start_slot()
    write(link.source, topic_name, 115, 116)
    link.until_seen()
    found = read_all(link.destination, topic_name, 1)[0]
    assert [int(record.value or b"") for record in found if not is_a_strangers(record)] == list(range(116))
    assert link.losses() == ()
    assert len(link.runs(topic_name, 0)) <= 2
    link.publish(stopped=True)
    slot.wait(60)
    last = max((record for record in found if not is_a_strangers(record)), key=lambda record: record.offset)
    assert destination_offset(covering(link.runs(topic_name, 0), 115), 115) == last.offset


def is_a_strangers(record: Record) -> bool:
    return (record.value or b"").startswith(b"9") and len(record.value or b"") == 4


def test_a_stranger_halts_the_copy_by_default(make_link: MakeLink, topic_name: str) -> None:
    link = halfway(make_link, topic_name, TopicPolicy())
    write(link.destination, topic_name, 9_000, 9_001)
    write(link.source, topic_name, 100, 110)
    link.start_slot()
    link.until_waiting(topic_name, 0, Reason.FOREIGN_WRITER)
    assert ends(link.destination, topic_name, 1) == [101]
