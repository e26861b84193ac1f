"""Rights on copies, and the rights that a link needs for following its source, on brokers that grant nothing else."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ResourceType

from strait.config import links, naming
from strait.control.outcome import Outcome
from strait.control.plane import Control
from strait.control.registration import writing_links
from strait.kafka.admin import Admin
from strait.model import TopicAcl
from strait.planning.topic_sync.actions import allowed
from strait.state.codec import encode_key
from strait.state.keys import ProducerKey
from strait.state.reader import StateReader
from support.fixtures.waiting import eventually
from support.kafka.acls import Right, decided, documented, grant, withdraw
from support.kafka.topics import alter, create, delete, exists, grow, look
from support.security.secured import Secured

pytestmark = pytest.mark.broker


@pytest.fixture
def link() -> str:
    return f"acls-{uuid.uuid4().hex[:8]}"


def control_of(secured: Secured, link: str, topics: Any, properties: Any = None, **settings: Any) -> Control:
    clusters = properties or {"a": secured.source.client_properties, "b": secured.destination.client_properties}
    naming = {"policy": "prefix", "prefix": "copy."}
    block = {"source": "a", "destination": "b", "topics": topics, "naming": naming, **settings}
    raw = {"clusters": {name: dict(found) for name, found in clusters.items()}, "links": {link: block}}
    return Control(links.parse(raw, where="test"), link)


def acl(name: str, user: str, operation: str, permission: str = "ALLOW", pattern: str = "LITERAL") -> TopicAcl:
    return TopicAcl(name, pattern, f"User:{user}", "*", operation, permission)


@pytest.fixture
def admins(secured: Secured, link: str) -> Iterator[tuple[Admin, Admin]]:
    """Of source and destination. Afterwards no rule of the test is left."""
    both = Admin(secured.source.client_properties, "a"), Admin(secured.destination.client_properties, "b")
    yield both
    for admin in both:
        admin.remove_acls_each([one for one in admin.acls() if link in one.name]).or_raise()


def of_link(admin: Admin, link: str) -> set[TopicAcl]:
    return {one for one in admin.acls() if link in one.name}


def told(outcome: Outcome) -> list[str]:
    return [action.done_line for action in outcome.done]


def test_rights_on_topics_become_rights_on_copies_but_never_to_write(
    secured: Secured, admins: tuple[Admin, Admin], link: str
) -> None:
    source, destination = admins
    topic = f"{link}.orders"
    create(secured.source, topic)
    create(secured.source, f"{link}.private")
    given = [
        acl(topic, "ann", "READ"),
        acl(topic, "bob", "ALL"),
        acl(topic, "carl", "WRITE"),
        acl(topic, "dora", "WRITE", "DENY"),
        acl(f"{link}.", "eve", "READ", pattern="PREFIXED"),
        acl(f"{link}.private", "ann", "READ"),
    ]
    source.add_acls_each(given).or_raise()
    by_hand = acl(f"copy.{topic}", "zoe", "WRITE")
    destination.add_acls_each([by_hand]).or_raise()
    wanted = {
        by_hand,
        acl(f"copy.{topic}", "ann", "READ"),
        acl(f"copy.{topic}", "bob", "READ"),
        acl(f"copy.{topic}", "dora", "WRITE", "DENY"),
        acl(f"copy.{link}.", "eve", "READ", pattern="PREFIXED"),
    }
    topics = {"include": [topic]}
    with control_of(secured, link, topics, acls={"sync": True}) as control:
        control.apply()
        control.apply()  # the copy is there now
        eventually(lambda: of_link(destination, link) == wanted, what=lambda: f"not {of_link(destination, link)}")
        again = control.apply()
        assert (again.done, again.published) == ((), False)
        source.remove_acls_each(given[:1]).or_raise()
        destination.remove_acls_each([acl(f"copy.{topic}", "bob", "READ")]).or_raise()
        eventually(lambda: given[0] not in source.acls(), what="one rule fewer")
        assert told(control.apply()) == [f"allowed   copy.{topic}: ALLOW READ on topic copy.{topic} to User:bob"]
        eventually(lambda: of_link(destination, link) == wanted, what="that nothing else has changed")
    with control_of(secured, link, topics, acls={"sync": True, "remove": True}) as control:
        eventually(lambda: allowed(control.propose().actions) == (), what="that all is known")
        assert told(control.apply()) == [f"withdrew  copy.{topic}: ALLOW READ on topic copy.{topic} to User:ann"]
        left = wanted - {acl(f"copy.{topic}", "ann", "READ")}
        eventually(lambda: of_link(destination, link) == left, what=lambda: f"not {of_link(destination, link)}")


@pytest.fixture
def both_ways(secured: Secured, link: str) -> Iterator[tuple[Control, Control]]:
    """A link from a to b and one back, under equal names, which keep rights and configurations of copies; both sides have
    the topic."""
    for cluster in (secured.source, secured.destination):
        create(cluster, f"{link}.orders")
    clusters = {"a": dict(secured.source.client_properties), "b": dict(secured.destination.client_properties)}
    block = {
        "topics": {"include": [f"{link}.orders"], "rules": [{"match": ".*", "on_foreign": "expect"}]},
        "acls": {"sync": True, "remove": True},
        "configs": {"sync": True},
    }
    blocks = {f"{link}-there": {"source": "a", "destination": "b"}, f"{link}-back": {"source": "b", "destination": "a"}}
    file = links.parse(
        {"clusters": clusters, "links": {name: ends | block for name, ends in blocks.items()}}, where="test"
    )
    with Control(file, f"{link}-there") as there, Control(file, f"{link}-back") as back:
        plans = [there.apply().plan, back.apply().plan]
        yield there, back
    for plan, end in zip(plans, ("b", "a"), strict=True):  # whose plans other tests' links may not read
        producer = Producer(dict(file.clusters[end]))
        producer.produce(naming.PRODUCERS_TOPIC, None, encode_key(ProducerKey(producer_id=plan.producer_id)))
        assert producer.flush(30) == 0


def test_a_right_that_is_revoked_where_it_was_granted_does_not_come_back_by_the_other_link(
    secured: Secured, admins: tuple[Admin, Admin], link: str, both_ways: tuple[Control, Control]
) -> None:
    source, destination = admins
    there, back = both_ways
    reads, does_all = acl(f"{link}.orders", "reader", "READ"), acl(f"{link}.orders", "app", "ALL")
    source.add_acls_each([reads, does_all]).or_raise()
    eventually(lambda: {reads, does_all} <= of_link(source, link), what="the rights are there")
    carried = {reads, acl(f"{link}.orders", "app", "READ")}
    eventually(lambda: there.apply() and carried <= of_link(destination, link), what="and on the copy")
    for _ in range(2):
        assert back.apply().done == (), "what the link there has given is not the destination's own"
    source.remove_acls_each([reads, does_all]).or_raise()
    eventually(lambda: not of_link(source, link), what="they are revoked")
    assert back.apply().done == ()
    source.add_acls_each([other := acl(f"{link}.orders", "other", "DESCRIBE")]).or_raise()  # it has some rule
    eventually(lambda: there.apply() and not carried & of_link(destination, link), what="there too")
    back.apply()
    assert of_link(source, link) == {other}


def test_what_is_configured_on_one_side_of_a_topic_that_is_copied_both_ways_is_not_taken_back(
    secured: Secured, link: str, both_ways: tuple[Control, Control]
) -> None:
    there, back = both_ways
    alter(secured.source, f"{link}.orders", retention_ms="31536000000")
    for control in (back, there, back):
        assert control.apply().done == ()
    with StateReader(secured.destination.client_properties, "b", f"{link}-there", follow=("plan",)) as state:
        state.catch_up()
        assert state.plans["default"].topics
    assert look(secured.source, f"{link}.orders").topic_configs["retention.ms"] == "31536000000"


def test_no_right_is_given_unless_the_link_is_told_to(secured: Secured, admins: tuple[Admin, Admin], link: str) -> None:
    source, destination = admins
    create(secured.source, f"{link}.orders")
    source.add_acls_each([acl(f"{link}.orders", "ann", "READ")]).or_raise()
    with control_of(secured, link, {"include": [f"{link}.orders"]}) as control:
        control.apply()
        assert control.apply().done == ()
    assert of_link(destination, link) == set()


class Setup:
    """A link between principals of their own that is to do all that there is to do to copies."""

    def __init__(self, secured: Secured, link: str) -> None:
        self.secured, self.link, self.topic = secured, link, f"{link}.orders"
        self.users = {"source": f"{link}-source", "destination": f"{link}-destination"}
        self.names = {"source": self.topic, "destination": f"copy.{self.topic}"}
        self.clusters = {"source": secured.source, "destination": secured.destination}

    def rights(self, end: str, words: str) -> list[Right]:
        return documented(end, self.link, self.names[end], words)

    def grant(self, end: str, rights: list[Right]) -> None:
        grant(self.clusters[end], self.users[end], rights)

    def control(self) -> Control:
        properties = {
            name: self.secured.tls(self.clusters[end], self.secured.authority.issue(self.users[end]))
            for name, end in (("a", "source"), ("b", "destination"))
        }
        return control_of(
            self.secured,
            self.link,
            {"include": [self.topic]},
            properties,
            configs={"sync": True},
            acls={"sync": True},
            delete_copies_after_seconds=0,
        )


@pytest.fixture
def setup(secured: Secured, link: str) -> Iterator[Setup]:
    it = Setup(secured, link)
    create(secured.source, it.topic)
    for end in it.users:
        it.grant(end, it.rights(end, "On the"))
    yield it
    for end, cluster in it.clusters.items():
        admin = Admin(cluster.client_properties, end)
        admin.remove_acls_each([one for one in admin.acls() if link in one.name]).or_raise()


def change_all(it: Setup) -> None:
    alter(it.secured.source, it.topic, retention_ms="900000")
    grow(it.secured.source, it.topic, 2)


def test_without_the_rights_for_it_a_copy_stays_as_it_is_and_copying_goes_on(setup: Setup) -> None:
    copy = setup.names["destination"]
    with setup.control() as control:
        assert control.apply().created == (copy,)
        change_all(setup)
        outcome = control.apply()
        assert outcome.done == ()
        assert "TOPIC_AUTHORIZATION_FAILED" in outcome.refused[copy]
        assert "CLUSTER_AUTHORIZATION_FAILED" in outcome.refused["ACLs"]
        (waiting,) = outcome.plan.waiting
        assert (waiting.reason, waiting.partitions) == ("destination_has_fewer_partitions", (1,))
        assert "adding them: cluster b: adding partitions" in waiting.detail
        assert outcome.plan.topics[0].slots == (0, None)


@pytest.mark.core
def test_with_the_documented_rights_all_is_done_and_each_right_is_used(setup: Setup) -> None:
    for end in setup.users:
        setup.grant(end, setup.rights(end, "Also on the"))
    secured, topic, copy = setup.secured, setup.topic, setup.names["destination"]
    create(secured.source, f"{setup.link}.other")
    grant(secured.source, setup.users["source"], [Right(ResourceType.TOPIC, f"{setup.link}.other", "READ")])
    others = {one.link for one in writing_links(secured.destination.client_properties, "b")}  # of other tests
    for other in others - {setup.link}:
        setup.grant("destination", [Right(ResourceType.TOPIC, naming.plan_topic(other), "READ")])
    with setup.control() as control:
        control.apply()
        change_all(setup)
        outcome = control.apply()
        assert outcome.refused == {}
        verbs = {action.past for action in outcome.done}
        assert verbs == {"grew", "altered", "allowed"}, outcome.as_text()
        delete(secured.source, topic)
        eventually(lambda: _deleted(control.apply(), copy), what=lambda: control.apply().as_text())
        eventually(lambda: not exists(secured.destination, copy), what="no copy")
    for end, cluster in setup.clusters.items():
        allowed, denied = decided(cluster, setup.users[end])
        own = {right for right in denied if not any(f".{other}." in right.name for other in others - {setup.link})}
        assert {right for right in own if right.kind is not ResourceType.GROUP} == set()
        assert [right for right in setup.rights(end, "Also on the") if right not in allowed] == []


def _deleted(outcome: Outcome, copy: str) -> bool:
    return any(action.past == "deleted" and action.subject == copy for action in outcome.done)


def test_a_topic_that_the_link_may_not_see_any_more_is_not_taken_for_deleted(setup: Setup) -> None:
    for end in setup.users:
        setup.grant(end, setup.rights(end, "Also on the"))
    other = f"{setup.link}.other"
    create(setup.secured.source, other)
    grant(setup.secured.source, setup.users["source"], [Right(ResourceType.TOPIC, other, "READ")])
    with setup.control() as control:
        control.apply()
        withdraw(setup.secured.source, setup.users["source"], setup.rights("source", "On the"))

        def kept() -> bool:
            details = [item.detail for item in control.apply().plan.waiting if item.topic == setup.topic]
            return any("the source does not confirm that the topic is deleted" in detail for detail in details)

        eventually(kept, what=lambda: f"not {control.apply().plan.waiting}")
    assert exists(setup.secured.destination, setup.names["destination"])


def test_a_topic_whose_configurations_may_not_be_read_waits_unless_it_is_copied_already(setup: Setup) -> None:
    other = f"{setup.link}.other"
    create(setup.secured.source, other)
    grant(setup.secured.source, setup.users["source"], [Right(ResourceType.TOPIC, other, "READ")])
    file = {"include": [setup.topic, other]}
    with setup.control() as made:
        made.link = made.link.model_copy(update={"topics": made.link.topics.model_copy(update=file)})
        outcome = made.apply()
        waiting = {item.topic: item.reason for item in outcome.plan.waiting}
        assert waiting == {other: "source_denied"}
        assert [topic.source for topic in outcome.plan.topics] == [setup.topic]
        assert look(setup.secured.destination, setup.names["destination"]).partitions == 1
        right = Right(ResourceType.TOPIC, setup.topic, "DESCRIBE_CONFIGS")
        withdraw(setup.secured.source, setup.users["source"], [right])

        def denied() -> str:
            return made._source.observe(setup.topic.__eq__, ("retention.ms",)).topics[setup.topic].denied

        eventually(denied, what="that its configurations may not be read")
        assert not made.apply().published, "what is copied goes on by the plan in force"
