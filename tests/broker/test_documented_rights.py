"""A link needs exactly the rights that docs/reference/permissions.md lists, on brokers that grant nothing else."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic, ResourceType

from strait.config import links
from strait.config.naming import history_topic, ledger_topic, map_topic, plan_topic
from strait.control.link_rights import link_rights
from strait.control.plane import Control
from strait.control.registration import register
from strait.embedded.kafka import Cluster
from strait.errors import NotAuthorized
from strait.kafka.admin import Admin
from strait.kafka.reading import read_topic
from strait.reasons import Reason
from strait.state.codec import encode
from strait.state.feed import StateFeed
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.schema import Plan, Registration
from support.fixtures.waiting import eventually
from support.kafka.acls import Right, decided, documented, grant, withdraw
from support.kafka.log_ends import ends
from support.kafka.records import assert_equal, read_all
from support.kafka.topics import create
from support.security.secured import Secured, SecuredLink, produce

pytestmark = pytest.mark.broker
PARTITIONS = 2


@dataclass
class Copy:
    """A link between principals of their own, known by their certificates, with the documented rights."""

    link: SecuredLink
    control: Control
    topic: str
    copy: str
    file: links.LinksFile

    def lacking(self) -> tuple[str, ...]:
        """As `strait doctor` shows it."""
        return link_rights(ConfiguredLink.of(self.file, self.link.name)).lacking

    def until_equal(self) -> None:
        wanted = sum(ends(self.link.source, self.topic, PARTITIONS))
        eventually(lambda: sum(ends(self.link.destination, self.copy, PARTITIONS)) == wanted, what=f"{wanted} copied")

    def until_all_wait(self, reason: Reason) -> None:
        def look() -> bool:
            rows = self.control.status().partitions
            return len(rows) == PARTITIONS and all(row.reason == reason for row in rows)

        eventually(look, what=lambda: f"{reason}; last {self.control.status().partitions}")

    def until_caught_up(self) -> None:
        def look() -> bool:
            rows = self.control.status().partitions
            return len(rows) == PARTITIONS and all(row.state == "caught_up" for row in rows)

        eventually(look, what=lambda: f"caught up; last {self.control.status().partitions}")

    def assert_equal(self) -> None:
        assert_equal(
            read_all(self.link.source, self.topic, PARTITIONS), read_all(self.link.destination, self.copy, PARTITIONS)
        )


@contextmanager
def running(secured: Secured, folder: Path, topic: str) -> Iterator[Copy]:
    """As a control plane and a slot run it; the principals are called as the link's ends are."""
    name, copy = f"rights-{topic[-8:]}", f"copy.{topic}"
    ends_of: dict[str, tuple[Cluster, str]] = {
        "source": (secured.source, topic), "destination": (secured.destination, copy),
    }  # fmt: skip
    admin = AdminClient(secured.source.client_properties)
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1)], request_timeout=30).values():
        future.result()
    properties = {}
    for end, (cluster, its_topic) in ends_of.items():
        grant(cluster, user_of(name, end), documented(end, name, its_topic))
        properties[end] = secured.tls(cluster, secured.authority.issue(user_of(name, end)))
    file = links.parse(
        {
            "clusters": properties,
            "links": {
                name: {
                    "source": "source",
                    "destination": "destination",
                    "topics": {"include": [topic]},
                    "naming": {"policy": "prefix", "prefix": "copy."},
                }
            },
        },
        where="test",
    )
    link = SecuredLink(
        name=name,
        source=secured.source,
        destination=secured.destination,
        folder=folder,
        topics={topic: PARTITIONS},
        source_properties=properties["source"],
        destination_properties=properties["destination"],
    )
    with Control(file, name) as control:
        assert control.apply().plan.waiting == ()
        with link.slot_thread():
            yield Copy(link, control, topic, copy, file)


def user_of(link: str, end: str) -> str:
    return f"{link}-{end}"


@pytest.fixture
def topic() -> str:
    return f"orders.{uuid.uuid4().hex[:8]}"


@pytest.mark.core
def test_a_link_copies_with_the_documented_rights_and_uses_each_of_them(
    secured: Secured, tmp_path: Path, topic: str
) -> None:
    others = Registration(producer_id=1 << 40, link="others", source="elsewhere", destination="here")
    register(Admin(secured.source.client_properties, "it"), others, None)
    with running(secured, tmp_path, topic) as it:
        with_an_id = Producer(it.link.source.client_properties | {"enable.idempotence": True})
        produce(it.link, topic, 1000, with_an_id)
        it.until_equal()
        it.until_caught_up()
        name, properties = it.link.name, it.link.destination_properties
    # The driver of an application reads the one, to write the replication ledger; the page reads the other.
    assert list(read_topic(properties, "destination", ledger_topic(name)))
    list(read_topic(properties, "destination", history_topic(name)))
    for end, cluster, its_topic in (("source", secured.source, topic), ("destination", secured.destination, it.copy)):
        allowed, denied = decided(cluster, user_of(name, end))
        assert {right for right in denied if not _harmless(right, name)} == set()
        granted = documented(end, name, its_topic)
        assert [right for right in granted if right not in allowed and not _for_bad_days(right, name)] == []


def _harmless(right: Right, link: str) -> bool:
    """Asked for by librdkafka, and not needed: it looks for the coordinators of groups that nobody uses."""
    return right.kind is ResourceType.GROUP and right.name.startswith(f"strait.{link}.")


def _for_bad_days(right: Right, link: str) -> bool:
    """Used only when something is lost or set aside."""
    return right.name in (f"strait.{link}.losses", f"strait.{link}.quarantine") and right.operation in ("READ", "WRITE")


@pytest.mark.parametrize(
    ("end", "operation", "reason", "lacks"),
    [
        ("source", "READ", Reason.SOURCE_DENIED, "{topic} (source), which does not exist or needs DESCRIBE"),
        ("destination", "WRITE", Reason.DESTINATION_DENIED, "WRITE on {topic} (destination)"),
    ],
)
def test_copying_goes_on_when_a_right_that_was_withdrawn_is_given_back(
    secured: Secured, tmp_path: Path, topic: str, end: str, operation: str, reason: Reason, lacks: str
) -> None:
    with running(secured, tmp_path, topic) as it:
        produce(it.link, topic, 300)
        it.until_equal()
        cluster = secured.source if end == "source" else secured.destination
        right = Right(ResourceType.TOPIC, topic if end == "source" else it.copy, operation)
        for _ in range(2):
            withdraw(cluster, user_of(it.link.name, end), [right])
            produce(it.link, topic, 300)
            it.until_all_wait(reason)
            eventually(lambda: it.lacking() == (lacks.format(topic=right.name),), what=lambda: f"{it.lacking()}")
            if end == "destination":  # what the source holds can still be seen, and what of it is missing
                assert [row.lag_records for row in it.control.status().partitions] == [150, 150]
            grant(cluster, user_of(it.link.name, end), [right])
            it.until_equal()
            it.until_caught_up()
            eventually(lambda: it.lacking() == (), what=lambda: f"{it.lacking()}")
    it.assert_equal()


_LONG_SECONDS = 3600.0  # a reader that waits for a right as it does for a broker that starts does not end within a test


def test_a_state_topic_that_may_not_be_read_is_named_at_once_with_the_right_by_each_reader(tmp_path: Path) -> None:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root;User:ANONYMOUS",
    }
    with Cluster(tmp_path / "cluster", properties=settings, users={"root": "r", "reader": "x"}) as cluster:
        name = plan_topic("l")
        for topic in (name, map_topic("l")):
            create(cluster, topic)
        plan = Plan(link="l", group="default", version=1, producer_id=7, slots=1, topics=(), published_at_ms=1)
        key, value = encode(plan)
        producer = Producer(cluster.client_properties)
        producer.produce(name, value, key)
        assert producer.flush(60) == 0
        there = cluster.client_properties | {"sasl.username": "reader", "sasl.password": "x"}, "b"
        read = Right(ResourceType.TOPIC, name, "READ")
        grant(cluster, "reader", [read._replace(operation="DESCRIBE"), read._replace(name=map_topic("l"))])
        feed = StateFeed(*there, "pool", lambda: None)
        with StateReader(*there, "l") as state:
            until_denied(name, lambda: state.catch_up(_LONG_SECONDS))
            until_denied(name, lambda: list(read_topic(*there, name)))
            followed = feed.follow("l", lambda: None)
            eventually(lambda: followed.trouble, what="a pool's reader names it")
            assert f"{name}: TOPIC_AUTHORIZATION_FAILED" in str(followed.trouble)

            grant(cluster, "reader", [read])
            eventually(lambda: denial(lambda: state.catch_up(_LONG_SECONDS)) is None, what="it is read")
            eventually(lambda: followed.trouble is None, what="a pool reads it")
            assert (list(state.plans), state.trouble) == (["default"], None)

            withdraw(cluster, "reader", [read])
            eventually(lambda: (state.poll(0.2), state.trouble)[1], what="a reader that runs names it")
            assert list(state.plans) == ["default"], "the last plan stays in force"
        feed.close()


def denial(read: Callable[[], object]) -> NotAuthorized | None:
    try:
        read()
    except NotAuthorized as error:
        return error
    return None


def until_denied(topic: str, read: Callable[[], object]) -> None:
    """A right is withdrawn a moment after the request for that was answered."""
    error = eventually(lambda: denial(read), what=f"{topic} is denied")
    assert f"{topic}: TOPIC_AUTHORIZATION_FAILED" in error.message
    assert error.hint == f"grant READ on topic {topic}"
