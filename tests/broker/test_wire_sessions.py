"""Fetch sessions as a real broker keeps them."""

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.wire import fetch
from strait.wire.batch import split_batches
from strait.wire.error_codes import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from strait.wire.fetch_session import FetchSession, Key
from support.fixtures.waiting import eventually
from support.kafka.raw import RawClient

pytestmark = pytest.mark.broker

PARTITIONS = 20


@pytest.fixture
def topic(cluster: Cluster, raw: RawClient, topic_name: str) -> str:
    Admin(cluster.client_properties, "it").create([NewTopic(topic_name, PARTITIONS, 1, {"retention.ms": "-1"})])
    positions = list(wanted(raw.topic_id(topic_name), range(PARTITIONS)).values())

    def served() -> bool:
        _, _, fetched = raw.fetch_many([(raw.topic_id(topic_name), positions)])
        return not any(part.error for part in fetched)

    eventually(served, what="every partition is led")
    return topic_name


def wanted(topic_id: bytes, numbers: range) -> dict[Key, fetch.FetchPosition]:
    return {(topic_id, number): fetch.FetchPosition(number, -1, 0, 1 << 20) for number in numbers}


def ask(raw: RawClient, session: FetchSession, positions: dict[Key, fetch.FetchPosition]) -> tuple[int, dict[int, int]]:
    """(error, records by partition that the reply names)."""
    for key in set(session._wanted) - positions.keys():
        session.leave(key)
    for key, position in positions.items():
        session.want(key, position)
    request = session.next_request()
    error, session_id, fetched = raw.fetch_many(request.topics, session=request.session, forgotten=request.forgotten)
    session.took(session_id, error)
    assert all(part.error == 0 for part in fetched)
    return error, {part.partition: sum(batch.records for batch in split_batches(part.records)) for part in fetched}


@pytest.mark.core
def test_a_session_answers_with_news_alone(cluster: Cluster, raw: RawClient, topic: str) -> None:
    session, positions = FetchSession(), wanted(raw.topic_id(topic), range(PARTITIONS))
    assert ask(raw, session, positions) == (0, dict.fromkeys(range(PARTITIONS), 0))
    assert session.established
    assert ask(raw, session, positions) == (0, {})
    producer = Producer(cluster.client_properties)
    producer.produce(topic, b"news", partition=3)
    producer.produce(topic, b"news", partition=4)
    assert producer.flush(30) == 0
    del positions[raw.topic_id(topic), 4]
    assert ask(raw, session, positions) == (0, {3: 1})
    assert ask(raw, session, positions) == (0, {3: 1})  # not moved on yet
    positions[raw.topic_id(topic), 3] = fetch.FetchPosition(3, -1, 1, 1 << 20)
    assert ask(raw, session, positions) == (0, {})
    positions |= wanted(raw.topic_id(topic), range(4, 5))
    assert ask(raw, session, positions) == (0, {4: 1})


@pytest.mark.core
def test_a_session_out_of_step_begins_anew(raw: RawClient, topic: str) -> None:
    session, positions = FetchSession(), wanted(raw.topic_id(topic), range(PARTITIONS))
    ask(raw, session, positions)
    session._epoch += 1  # as after a request of which it is not known whether it arrived
    assert ask(raw, session, positions)[0] == INVALID_FETCH_SESSION_EPOCH
    assert ask(raw, session, positions) == (0, dict.fromkeys(range(PARTITIONS), 0))
    assert ask(raw, session, positions) == (0, {})
    old = session.next_request().session
    session.lost()
    assert ask(raw, session, positions) == (0, dict.fromkeys(range(PARTITIONS), 0))
    error, _, _ = raw.fetch_many([], session=old)  # ended by the request that began anew, so it takes no room there
    assert error == FETCH_SESSION_ID_NOT_FOUND
    assert ask(raw, session, positions) == (0, {})
