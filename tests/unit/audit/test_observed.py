"""What an audit observes of the destination's producers, if it may not read some of the topics."""

from collections.abc import Collection

import pytest

from strait.audit import observed as subject
from strait.audit.link_state import Ends
from strait.errors import NotAuthorized, UnsupportedRequest
from strait.model import TopicPartition
from strait.net.producers import ActiveProducer

ENDS = Ends("a", {}, "b", {})
PLACES = [TopicPartition(topic, number) for topic in ("orders", "pay") for number in range(2)]


def test_producers_of_topics_that_may_be_read_are_known_if_others_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def active(
        _: object, cluster: str, places: Collection[TopicPartition]
    ) -> dict[TopicPartition, list[ActiveProducer]]:
        if any(one.topic == "orders" for one in places):
            raise NotAuthorized(cluster, "describing the producers of orders-0: TOPIC_AUTHORIZATION_FAILED")
        return {one: [] for one in places}

    monkeypatch.setattr(subject, "active_producers", active)
    assert subject._producers(ENDS, PLACES) == {one: [] for one in PLACES[2:]}
    assert subject._producers(ENDS, PLACES[:2]) == {}


def test_brokers_without_the_request_show_no_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    def active(*_: object) -> None:
        raise UnsupportedRequest("the broker does not serve it")

    monkeypatch.setattr(subject, "active_producers", active)
    assert subject._producers(ENDS, PLACES) == {}
