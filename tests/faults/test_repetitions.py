"""Another copy has written other records under our numbers: what a broker takes for a repetition, comparing numbers only."""

import time
from collections.abc import Callable

import pytest

from strait.embedded.kafka import Cluster
from strait.state.schema import TopicPolicy
from strait.wire.batch import restamp, split_batches
from strait.wire.records import Record, build_batch
from support.engine import EngineLink
from support.far import FarCluster
from support.raw import RawClient
from support.records import read_all
from support.waiting import eventually

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


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


@pytest.mark.parametrize(("others", "in_the_copy"), [("ab", "abbc"), ("bc", "bc")])
def test_of_a_compacted_source_other_records_are_not_taken_for_ours(
    make_link: MakeLink,
    topic_name: str,
    far_source: FarCluster,
    far_destination: FarCluster,
    others: str,
    in_the_copy: str,
) -> None:
    """A slot has looked its position up and read ``bc``; before its batch arrives another one, which read the source when
    ``a`` was still there, writes as many records under the same numbers. Both must be in the copy, in their order."""
    compacted = TopicPolicy(source_compacted=True)
    link = make_link(source=far_source, destination=far_destination, topics={topic_name: 1}, policy=compacted)
    link.make_topics()
    plan = link.publish()
    link.start_slot()
    with link.reports() as newest:
        eventually(
            lambda: (row := newest(topic_name, 0)) and row.state == "caught_up",
            what=lambda: f"it is ready: {link.log()}",
        )
    far_destination.proxy.stall()
    append(far_source, topic_name, "bc")
    time.sleep(1.0)  # it is read and sent, and waited for four seconds
    append(far_destination, topic_name, others, plan.producer_id)
    far_destination.proxy.calm()
    link.until_seen()
    (copy,) = read_all(far_destination, topic_name, 1)
    assert "".join((record.key or b"").decode() for record in copy) == in_the_copy
    with link.reports() as newest:
        row = newest(topic_name, 0)
        assert row is not None
        assert row.recopied == len(in_the_copy) - len("bc")
