"""Admin requests are cut into pieces that brokers accept, and what was done before a cluster goes away counts."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException
from confluent_kafka import admin as kafka_admin

from strait.errors import ClusterUnavailable, NotAuthorized
from strait.kafka.admin import Admin, NewTopic
from strait.kafka.alteration import ConfigChange
from strait.kafka.clients import Watch
from strait.kafka.connection import CHANGES_AT_ONCE, DESCRIBED_AT_ONCE, OFFSETS_AT_ONCE, Outcomes
from strait.model import TopicAcl, TopicPartition
from strait.pieces import pieces

KRAFT_LIMIT = 10_000
LITERAL = ("LITERAL", "User:a", "*", "READ", "ALLOW")


class Client:
    """Librdkafka's, without a cluster: notes each request. From the ``away_from``th on none is answered."""

    def __init__(self, away_from: int = 1_000_000, end: int = 5) -> None:
        self.requests: list[list[Any]] = []
        self.end = end
        self.refuses = False
        self._away_from = away_from

    def __getattr__(self, _: str) -> Callable[..., dict[Any, Future[Any]]]:
        return self._ask

    def poll(self, _: float) -> None: ...

    def list_offsets(self, items: Iterable[Any], **_: Any) -> dict[Any, Future[Any]]:
        return self._ask(items, SimpleNamespace(offset=self.end, timestamp=-1))

    def _ask(self, items: Iterable[Any], result: Any = None, **_: Any) -> dict[Any, Future[Any]]:
        self.requests.append(list(items))
        named = isinstance(self.requests[-1][0], (kafka_admin.NewTopic, kafka_admin.NewPartitions))
        return {item.topic if named else item: self._answer(result) for item in self.requests[-1]}

    def _answer(self, result: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if len(self.requests) >= self._away_from:
            future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        elif self.refuses:
            future.set_exception(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
        else:
            future.set_result(result)
        return future


def admin(client: Client) -> tuple[Admin, list[str]]:
    made, told = Admin.__new__(Admin), list[str]()
    made.cluster = "b"
    made._client, made._watch, made._progress = client, Watch("b"), told.append  # type: ignore[assignment]
    return made, told


def topics(count: int, partitions: int = 2) -> list[NewTopic]:
    return [NewTopic(f"t{number}", partitions, 1, {"a": "1", "b": "2"}) for number in range(count)]


@pytest.mark.parametrize(("count", "partitions"), [(4_000, 2), (101, 100), (3, 4_000), (1, 1)])
def test_no_request_makes_more_records_than_a_controller_takes(count: int, partitions: int) -> None:
    client = Client()
    made, told = admin(client)
    outcomes = made.create_each(topics(count, partitions))
    assert len(outcomes.results) == count and not outcomes.failures
    sizes = [sum(1 + topic.num_partitions + len(topic.config) for topic in request) for request in client.requests]
    assert (
        max([size for size, request in zip(sizes, client.requests, strict=True) if len(request) > 1], default=0)
        <= (CHANGES_AT_ONCE)
        < KRAFT_LIMIT
    )
    assert len(told) == len(client.requests) - 1
    if count == 4_000:
        assert (len(client.requests), told[-1]) == (20, "cluster b: creating topics: 3,800 of 4,000")


NAMES = [f"t{number}" for number in range(12_000)]
ACLS = [TopicAcl(name, *LITERAL) for name in NAMES]
PLACES = [TopicPartition(name, 0) for name in NAMES]
REQUESTS: list[tuple[Callable[[Admin], Outcomes[Any, Any]], int]] = [
    (lambda it: it.grow_each(dict.fromkeys(NAMES, 4)), CHANGES_AT_ONCE // 4),
    (lambda it: it.alter_each(dict.fromkeys(NAMES, ConfigChange({"a": "1"}, ["b"]))), CHANGES_AT_ONCE // 2),
    (lambda it: it.delete_each(NAMES), DESCRIBED_AT_ONCE),
    (lambda it: it.delete_groups_each(NAMES), DESCRIBED_AT_ONCE),
    (lambda it: it.add_acls_each(ACLS), CHANGES_AT_ONCE),
    (lambda it: it.remove_acls_each(ACLS), CHANGES_AT_ONCE),
    (lambda it: it.offsets_each(PLACES, "end"), OFFSETS_AT_ONCE),
]


@pytest.mark.parametrize(("call", "most"), REQUESTS)
def test_every_other_request_is_cut_too(call: Callable[[Admin], Outcomes[Any, Any]], most: int) -> None:
    client = Client()
    outcomes = call(admin(client)[0])
    assert len(outcomes.results) == len(NAMES) and not outcomes.failures
    assert max(map(len, client.requests)) == most


def test_what_was_created_before_the_cluster_went_away_counts() -> None:
    outcomes = admin(Client(away_from=3))[0].create_each(topics(1_000))
    assert (len(outcomes.results), len(outcomes.failures)) == (400, 600)
    assert all(isinstance(error, ClusterUnavailable) for error in outcomes.failures.values())
    with pytest.raises(ClusterUnavailable):
        admin(Client(away_from=1))[0].create_each(topics(1_000))


def test_what_was_refused_before_the_cluster_went_away_stays_refused() -> None:
    client = Client(away_from=3)
    client.refuses = True
    outcomes = admin(client)[0].create_each(topics(1_000))
    assert [type(error) for error in outcomes.failures.values()] == 400 * [NotAuthorized] + 600 * [ClusterUnavailable]


def test_pieces_keep_the_order_and_a_large_item_is_alone() -> None:
    assert list(pieces([1, 2, 9, 3, 3], 5, lambda item: item)) == [[1, 2], [9], [3], [3]]
    assert list(pieces([], 5)) == []


def test_an_offset_that_librdkafka_has_not_got_is_a_failure_and_no_number() -> None:
    place = TopicPartition("t", 0)
    outcomes = admin(Client(end=OFFSET_INVALID))[0].offsets_each([place], "end")
    assert not outcomes.results
    assert "no answer" in str(outcomes.failures[place])
    assert admin(Client(end=-1))[0].offsets_since_each({place: 1}).results == {place: -1}  # no record is that young


def test_routes_of_a_topic_are_its_partitions_on_the_source_asked_once() -> None:
    client = Client(end=5)
    places = [TopicPartition(name, 0) for name in ("t→a", "t→b", "u", "t")]
    outcomes = admin(client)[0].offsets_each(places, "end")
    assert outcomes.results == dict.fromkeys(places, 5)
    assert [[(item.topic, item.partition) for item in request] for request in client.requests] == [
        [("t", 0), ("u", 0)],
    ]
    times = {TopicPartition("t→a", 0): 1, TopicPartition("t→b", 0): 2}
    assert admin(client)[0].offsets_since_each(times).results == dict.fromkeys(times, 5)
    assert len(client.requests) == 3, "each has a time of its own"
