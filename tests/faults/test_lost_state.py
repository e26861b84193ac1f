"""The link's own topics are lost, in part or whole, under a running slot: what they said is then not guessed."""

from collections.abc import Callable

import pytest

from strait.config import naming
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from strait.state.topics import ensure_state_topics
from support.fixtures.waiting import eventually
from support.kafka.administration import elect_unclean, in_sync, put_on
from support.kafka.log_ends import ends
from support.kafka.records import assert_same_records, read_all
from support.kafka.topics import alter, delete
from support.kafka.transactions import Transactions
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
LAGGING, AHEAD, APART = 1, 2, 3


def in_transactions(writer: Transactions, count: int) -> None:
    """Every other one aborted, so that source and copy have other offsets and only the map tells them."""
    for number in range(count):
        writer.begin()
        writer.write(5)
        writer.end(number % 2 == 0)


def test_a_map_that_lost_its_last_words_is_not_believed(
    make_long_link: MakeLink, topic_name: str, three_brokers: Cluster
) -> None:
    """An unclean election takes away what the slot had written ahead. Whoever comes next finds the records in the copy
    and no word of where they came from: the old words name other source records, which the comparison shows."""
    link = make_long_link("destination", 1)
    map_topic = naming.map_topic(link.name)
    put_on(three_brokers, topic_name, [APART])
    for topic in (naming.plan_topic(link.name), naming.reports_topic(link.name), naming.losses_topic(link.name)):
        put_on(three_brokers, topic, [APART])
        alter(three_brokers, topic, min_insync_replicas="1")
    put_on(three_brokers, map_topic, [AHEAD, LAGGING])
    alter(three_brokers, map_topic, min_insync_replicas="1")
    slot = link.start_slot()
    writer = Transactions(link.source, topic_name, topic_name, 1)
    in_transactions(writer, 4)
    link.until_seen()
    before = ends(three_brokers, map_topic, 1)
    three_brokers.kill(LAGGING)
    eventually(lambda: in_sync(three_brokers, map_topic) == [{AHEAD}], what="the map has one replica")
    in_transactions(writer, 20)
    link.until_seen()
    assert ends(three_brokers, map_topic, 1) > before
    link.kill(slot)
    three_brokers.kill(AHEAD)
    three_brokers.start_broker(LAGGING)
    elect_unclean(three_brokers, map_topic, 0, LAGGING)
    eventually(lambda: ends(three_brokers, map_topic, 1) == before, what="the map lacks its last words")
    in_transactions(writer, 4)
    link.start_slot()
    link.until_waiting(topic_name, 0, Reason.COPY_DIFFERS)
    link.policy = TopicPolicy(on_loss="restart")
    link.publish()
    link.until_seen()
    (written,), (copied,) = read_all(link.source, topic_name, 1), read_all(link.destination, topic_name, 1)
    tail = copied[len(copied) - 10 :]
    assert [record.key for record in tail] == [record.key for record in written[len(written) - 10 :]]
    assert {record.key for record in copied} == {record.key for record in written}
    assert {loss.cause for loss in link.losses()} == {Reason.COPY_DIFFERS}


def test_without_its_map_nothing_is_copied_by_guess(make_long_link: MakeLink, topic_name: str) -> None:
    """The map is deleted under a running slot, and comes back empty."""
    link = make_long_link("destination", 1)
    slot = link.start_slot()
    writer = Transactions(link.source, topic_name, topic_name, 1)
    in_transactions(writer, 4)
    link.until_seen()
    delete(link.destination, naming.map_topic(link.name))
    in_transactions(writer, 4)
    with link.reports() as newest:
        eventually(
            lambda: (row := newest(topic_name, 0)) and row.state == "waiting",
            what=lambda: f"it waits: {newest(topic_name, 0)} {link.log()}",
        )
    copied = link.copied()
    link.kill(slot)
    ensure_state_topics(Admin(link.destination.client_properties, "destination"), link.name, 3)
    link.start_slot()
    row = link.until_waiting(topic_name, 0, Reason.MAP_RUN_MISSING)
    assert row.records == 0
    assert link.copied() == copied
    written, found = (read_all(cluster, topic_name, 1) for cluster in (link.source, link.destination))
    assert_same_records([written[0][: len(found[0])]], found)
