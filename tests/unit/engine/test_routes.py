"""Several routes of one topic in one slot: each reads the same partition of the source from a position of its own."""

from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest

from strait.engine.leadership import Leadership
from strait.engine.partition.partition import Partition
from strait.engine.recovery.topic_problems import source_problem
from strait.model import NO_TOPIC_ID
from strait.net.combined_reads import CombinedReads
from strait.net.event_loop import Loop
from strait.net.known_topics import Leader
from strait.state.schema import TopicPolicy
from strait.wire.fetch import Fetched

SOURCE_ID = bytes([1]) * 16


def route(name: str, number: int = 0) -> Partition:
    return Partition(f"customers→{name}", number, name, SOURCE_ID, bytes([2]) * 16, TopicPolicy())


class Fetchers:
    """The fetcher of each connection, by broker and number, and what is fetched over it."""

    def __init__(self) -> None:
        self.over: dict[tuple[int, int], set[str]] = defaultdict(set)

    def make(self, node: int, line: int) -> Any:
        held = self.over[node, line]
        return SimpleNamespace(
            add=lambda partition: held.add(str(partition)),
            remove=lambda partition: held.discard(str(partition)),
            fit=lambda _: None,
            used=True,
        )

    @property
    def now(self) -> dict[tuple[int, int], set[str]]:
        return {way: held for way, held in self.over.items() if held}


class Cluster:
    def __init__(self) -> None:
        self.interest: set[str] = set()
        self.leaders = {("customers", number): Leader(1, 0) for number in range(2)}
        self.topic_errors: dict[str, int] = {}
        self.topic_ids = {"customers": SOURCE_ID}
        self.on_metadata: Callable[[set[str]], None] = lambda _: None

    def leader(self, topic: str, partition: int) -> Leader:
        return self.leaders.get((topic, partition), Leader(-1, -1))

    def refresh(self, *_: object) -> None: ...
    def look_again(self, *_: object) -> None: ...


@pytest.fixture
def fetchers() -> Fetchers:
    return Fetchers()


@pytest.fixture
def source() -> Cluster:
    return Cluster()


@pytest.fixture
def leadership(source: Cluster, fetchers: Fetchers) -> Leadership:
    replicas: Any = SimpleNamespace(node=lambda _, leader: leader.node, forget=lambda _: None)
    nowhere: Any = Cluster()
    nowhere.leaders = {}
    return Leadership(
        source,  # type: ignore[arg-type]
        nowhere,
        "map",
        NotImplemented,
        replicas,
        make_fetcher=fetchers.make,
        make_sender=NotImplemented,
    )


def test_a_fetch_session_has_each_partition_of_the_source_once(
    leadership: Leadership, source: Cluster, fetchers: Fetchers
) -> None:
    big, rest, other = route("big"), route("rest"), route("big", 1)
    leadership.follow([big, rest, other], ())
    assert source.interest == {"customers"}, "its name on the source"
    source.on_metadata({"customers"})
    assert fetchers.now == {(1, 0): {"customers→big-0", "customers→big-1"}, (1, 2): {"customers→rest-0"}}
    source.leaders["customers", 0] = Leader(2, 1)
    source.on_metadata({"customers"})
    assert fetchers.now == {
        (1, 0): {"customers→big-1"},
        (2, 0): {"customers→big-0"},
        (2, 2): {"customers→rest-0"},
    }
    third = route("third")
    leadership.follow([third], [big])
    source.on_metadata({"customers"})
    assert fetchers.now[2, 0] == {"customers→third-0"} and fetchers.now[2, 2] == {"customers→rest-0"}
    leadership.follow([], [third, rest, other])
    assert not fetchers.now and not source.interest


def test_what_is_wrong_with_the_source_topic_shows_on_each_route(source: Cluster) -> None:
    assert source_problem(source, route("big")) is None  # type: ignore[arg-type]
    source.topic_ids["customers"] = bytes([9]) * 16
    problem = source_problem(source, route("big"))  # type: ignore[arg-type]
    assert problem is not None and "topic customers is not the one" in problem[1]


class Channel:
    def __init__(self) -> None:
        self.offsets: list[list[int]] = []

    def version(self, *_: object) -> int:
        return 12

    def send(self, _: int, version: int, body: list[bytes], **__: object) -> None:
        request = FetchRequest.decode(b"".join(body), version=version)
        self.offsets.append([item.fetch_offset for topic in request.topics for item in topic.partitions])


def test_a_request_reads_each_partition_of_the_source_at_one_offset() -> None:
    """Two routes verify their positions in one turn of the loop."""
    loop, channel = Loop(), Channel()
    reads = CombinedReads(loop)
    take: Callable[[int, Fetched | None], None] = lambda *_: None  # noqa: E731
    for topic, offset in (("customers", 5), ("orders", 7), ("customers", 9)):
        reads.read(channel, topic, NO_TOPIC_ID, 0, offset, take)  # type: ignore[arg-type]
    loop.run_once(0.01)
    assert channel.offsets == [[5, 7], [9]]
