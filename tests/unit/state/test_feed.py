"""The feed of many links' state, from a consumer of our own: who joins again reads everything again, and nothing early."""

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError

from strait.config import naming
from strait.errors import NotAuthorized
from strait.state import feed_thread as module
from strait.state.codec import encode
from strait.state.feed import FollowedLink, StateFeed
from strait.state.schema import Plan
from support.fixtures.waiting import eventually

LOGS: dict[str, list[tuple[bytes, bytes | None]]] = {}
DENIED: set[str] = set()
"""Topics that may not be read."""


class Consumer:
    """Reads from LOGS. ``made``: all that were built."""

    made: ClassVar[list["Consumer"]] = []

    def __init__(self, *_: Any) -> None:
        self.at: dict[str, int] = {}
        self.told: set[str] = set()
        Consumer.made.append(self)

    def incremental_assign(self, places: list[Any]) -> None:
        for place in places:
            assert place.topic not in self.at, "librdkafka refuses what is assigned already"
            self.at[place.topic] = 0 if place.offset == OFFSET_BEGINNING else place.offset

    def incremental_unassign(self, places: list[Any]) -> None:
        for place in places:
            del self.at[place.topic]
            self.told.discard(place.topic)

    def poll(self, timeout: float) -> Any:
        for topic, offset in self.at.items():
            if topic in DENIED:
                if topic not in self.told:
                    self.told.add(topic)
                    return message(topic, offset, None, None, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
                continue
            if offset < len(LOGS[topic]):
                self.at[topic] = offset + 1
                self.told.discard(topic)
                return message(topic, offset, *LOGS[topic][offset])
            if topic not in self.told:
                self.told.add(topic)
                return message(topic, offset, None, None, KafkaError(KafkaError._PARTITION_EOF))
        time.sleep(min(timeout, 0.01))
        return None

    def consume(self, most: int, timeout: float) -> list[Any]:
        return [found for _ in range(most) if (found := self.poll(0)) is not None]

    def close(self) -> None:
        self.at.clear()


def message(topic: str, offset: int, key: bytes | None, value: bytes | None, error: Any = None) -> Any:
    fields = {
        "topic": topic,
        "offset": offset,
        "key": key,
        "value": value,
        "error": error,
        "partition": 0,
        "headers": None,
    }
    return SimpleNamespace(**{name: lambda found=found: found for name, found in fields.items()})


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Iterator[StateFeed]:
    monkeypatch.setattr(module, "state_consumer", Consumer)
    LOGS.clear()
    DENIED.clear()
    Consumer.made.clear()
    one = StateFeed({}, "b", "pool", lambda: None)
    yield one
    one.close()
    one._thread.join(5)
    assert not one._thread.is_alive()


def make(link: str, versions: int = 1) -> None:
    LOGS[naming.map_topic(link)] = []
    LOGS[naming.plan_topic(link)] = []
    for version in range(1, versions + 1):
        publish(link, version)


def publish(link: str, version: int, group: str = "default") -> None:
    plan = Plan(link=link, group=group, version=version, producer_id=7, slots=1, topics=(), published_at_ms=version)
    LOGS[naming.plan_topic(link)].append(encode(plan))


def until(feed: StateFeed, look: Any, what: str) -> None:
    def delivered() -> Any:
        feed.deliver()
        return look()

    eventually(delivered, what=what)


def version(followed: FollowedLink, group: str = "default") -> int:
    return followed.plans[group].version if group in followed.plans else 0


def test_links_are_read_to_their_ends_and_followed(feed: StateFeed) -> None:
    make("one", 3)
    make("two")
    changes: list[str] = []
    one, two = (feed.follow(link, lambda link=link: changes.append(link)) for link in ("one", "two"))  # type: ignore[misc]
    assert (one.caught_up, version(one)) == (False, 0)
    until(feed, lambda: one.caught_up and two.caught_up, "both are read")
    assert (version(one), version(two)) == (3, 1)
    assert one.poll()
    assert not one.poll()
    changes.clear()
    publish("two", 2)
    until(feed, lambda: version(two) == 2, "the new plan")
    assert set(changes) == {"two"}
    assert len(Consumer.made) == 1


def test_a_topic_that_may_not_be_read_is_the_trouble_of_its_link_until_it_may(feed: StateFeed) -> None:
    """librdkafka retries it like an outage; the link's slots would wait without a word."""
    make("one")
    make("two")
    topic = naming.plan_topic("one")
    DENIED.add(topic)
    one, two = (feed.follow(link, lambda: None) for link in ("one", "two"))
    until(feed, lambda: two.caught_up and one.trouble, "it is refused")
    assert isinstance(one.trouble, NotAuthorized)
    assert f"cluster b: reading {topic}: TOPIC_AUTHORIZATION_FAILED" in one.trouble.message
    assert one.trouble.hint == f"grant READ on topic {topic}"
    assert (one.caught_up, two.trouble) == (False, None)
    DENIED.clear()
    until(feed, lambda: one.caught_up, "it is read")
    assert one.trouble is None


def test_a_link_that_joins_again_at_once_is_read_from_its_start(feed: StateFeed) -> None:
    make("one")
    publish("one", 1, "other")
    make("two")
    first, two = feed.follow("one", lambda: None), feed.follow("two", lambda: None)
    until(feed, lambda: first.caught_up and two.caught_up, "both are read")
    publish("one", 2)
    first.close()
    again = feed.follow("one", lambda: None)
    assert (again.caught_up, version(again)) == (False, 0)
    until(feed, lambda: again.caught_up, "it is read")
    assert (version(again), version(again, "other")) == (2, 1), "caught up means that nothing is missing"
    assert version(two) == 1


def test_a_second_slot_of_a_link_shares_what_is_read(feed: StateFeed) -> None:
    make("one", 2)
    first = feed.follow("one", lambda: None)
    until(feed, lambda: first.caught_up, "it is read")
    second = feed.follow("one", lambda: None)
    assert second.caught_up
    first.close()
    publish("one", 3)
    until(feed, lambda: version(second) == 3, "the other slot is still told")


def test_a_link_that_was_created_again_forgets_what_it_was(feed: StateFeed) -> None:
    make("one", 2)
    publish("one", 1, "gone")
    one = feed.follow("one", lambda: None)
    until(feed, lambda: one.caught_up, "it is read")
    LOGS[naming.plan_topic("one")].clear()
    publish("one", 1)
    one.read_from_start()
    assert not one.caught_up
    until(feed, lambda: one.caught_up, "it is read again")
    assert dict(one.plans).keys() == {"default"}
    assert version(one) == 1
