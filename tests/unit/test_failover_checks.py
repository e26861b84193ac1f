"""The checks of a failover treat facts that cannot be read as unknown, never as absent."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, Self

import pytest
from confluent_kafka import ConsumerGroupState

from strait.config import links
from strait.control.failover import checks, observation
from strait.control.failover.observation import Observation
from strait.control.failover.turn import Settings
from strait.errors import ClusterUnavailable, NotAuthorized, StraitError, UnknownTopic
from strait.kafka.admin import Admin, GroupMember
from strait.kafka.clients import Watch
from strait.kafka.connection import Outcomes
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed, Group
from strait.planning.failover import Check, Verdict
from strait.planning.recovery_point import LastWord
from strait.state.link_handle import ConfiguredLink
from strait.wire.error_codes import GROUP_AUTHORIZATION_FAILED

CLUSTERS = {name: {"bootstrap.servers": f"{name}:1"} for name in "ab"}
ORDERS, MAIL = TopicPartition("orders", 0), TopicPartition("mail", 0)
LEADERLESS = ClusterUnavailable("b", "looking up the end offset of orders-0: LEADER_NOT_AVAILABLE")
HIDDEN = NotAuthorized("b", "looking up the end offset of orders-0: TOPIC_AUTHORIZATION_FAILED")


class Site:
    """Cluster b, with a link from cluster a and links in the opposite direction.

    Attributes:
        ends: of b's partitions; an error if one cannot be read.
        positions: link in the opposite direction -> its position in each of b's partitions; a link without an entry has
            no plan.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *opposites: str) -> None:
        self.ends: dict[TopicPartition, int | StraitError] = {}
        self.positions: dict[str, dict[TopicPartition, int]] = {}
        self.stopped: set[str] = set()
        self.moved: dict[str, set[str]] = {}
        made = {name: {"source": "b", "destination": "a"} for name in opposites}
        contents = {"clusters": CLUSTERS, "links": {"a-b": {"source": "a", "destination": "b"}, **made}}
        self.link = ConfiguredLink.of(links.parse(contents, where="test"), "a-b")
        self.look = Observation(self.link)
        self.look.__dict__["destination"] = self
        of_link = property(lambda look: frozenset(self.moved.get(look.link.name, ())))
        monkeypatch.setattr(Observation, "moved", of_link)
        monkeypatch.setattr(Observation, "opposite_failover", lambda _: None)
        monkeypatch.setattr(Observation, "plans", lambda look, link=None: self._plans(link or look.link.name))
        monkeypatch.setattr(observation, "read_last_words", lambda link, _: (self._words(link.name), None))
        monkeypatch.setattr(checks, "link_groups", self._status)

    def offsets_each(self, places: Iterable[TopicPartition], where: str) -> Outcomes[TopicPartition, int]:
        assert where == "end"
        found = {place: self.ends[place] for place in places}
        results = {place: end for place, end in found.items() if not isinstance(end, StraitError)}
        return Outcomes(results, {place: end for place, end in found.items() if isinstance(end, StraitError)})

    def tail(self, **settings: Any) -> Check:
        return checks.tail_of(self.look, Settings(by="a test", **settings))

    def _words(self, link: str) -> Mapping[TopicPartition, LastWord]:
        return {place: LastWord(position=at) for place, at in self.positions[link].items()}

    def _plans(self, link: str) -> Any:
        if link == "a-b":
            topics = [SimpleNamespace(source="orders", destination="orders")]
        elif link in self.positions:
            topics = [SimpleNamespace(source=place.topic, destination=place.topic) for place in self.positions[link]]
        else:
            return {}
        return {"default": SimpleNamespace(topics=topics, waiting=(), heartbeat=None)}

    def _status(self, link: ConfiguredLink) -> Any:
        return SimpleNamespace(pauses=(), stopped=link.name in self.stopped)


def test_an_end_offset_that_cannot_be_read_is_waited_for_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, "b-a")
    site.positions["b-a"] = {ORDERS: 7, MAIL: 5}
    site.ends = {ORDERS: LEADERLESS, MAIL: 5}
    found = site.tail()
    text = f"link b-a may not have copied 1 partition, whose end offset cannot be read: {LEADERLESS.message}"
    assert found == Check(Verdict.WAITING, text)
    assert site.tail(accept_tail=True) == Check(Verdict.WARNING, text)
    site.ends = {ORDERS: 9, MAIL: 6}  # mail's end is the one of the first call
    assert site.tail() == Check(Verdict.WAITING, "link b-a has not copied 2 offsets: orders-0 from 7 to 8")
    site.positions["b-a"] = {ORDERS: 9, MAIL: 5}
    assert site.tail() == Check(Verdict.DONE, "link b-a has copied all that the destination has")


def test_a_topic_that_does_not_exist_has_no_tail_and_one_that_is_denied_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(monkeypatch, "b-a")
    site.positions["b-a"] = {ORDERS: 7, MAIL: 5}
    site.ends = {ORDERS: HIDDEN, MAIL: UnknownTopic("b", "looking up the end offset of mail-0: UNKNOWN_TOPIC_OR_PART")}
    with pytest.raises(NotAuthorized, match="TOPIC_AUTHORIZATION_FAILED"):
        site.tail()
    site.ends[ORDERS] = 7
    assert site.tail().verdict is Verdict.DONE


def test_every_link_of_the_other_direction_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, "b-a-new", "b-a", "b-a-too")
    site.ends = {ORDERS: 9, MAIL: 5}
    assert site.tail() == Check(Verdict.DONE, "no link copies the other way")
    site.positions = {"b-a": {ORDERS: 9}, "b-a-too": {ORDERS: 9, MAIL: 3}}  # the first one of the file has no plan
    found = site.tail()
    assert found.verdict is Verdict.WAITING
    assert found.detail.startswith("link b-a-too has not copied 2 offsets: mail-0 from 3 to 4; link b-a has copied all")
    site.positions["b-a-too"][MAIL] = 5
    assert site.tail().verdict is Verdict.DONE
    site.moved["b-a-too"] = {"orders"}
    assert site.tail().verdict is Verdict.FAILED
    assert site.tail().detail.startswith("link b-a-too does not copy 1 of these topics since they moved: orders")


def test_a_stopped_link_of_the_other_direction_that_copies_other_topics_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site(monkeypatch, "b-a-mail", "b-a")
    site.ends, site.stopped = {ORDERS: 9, MAIL: 5}, {"b-a-mail"}
    site.positions = {"b-a-mail": {MAIL: 0}, "b-a": {ORDERS: 9}}
    assert site.tail() == Check(Verdict.DONE, "link b-a has copied all that the destination has")
    del site.positions["b-a"]  # names may differ between the directions, so it is not known what it is about
    assert site.tail().verdict is Verdict.FAILED


def test_every_link_of_the_other_direction_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, "b-a", "b-a-too")
    site.positions = {"b-a": {ORDERS: 9}}
    assert checks.reverse(site.look, ask=False).detail == "links b-a, b-a-too copy from b to a, once a is back"
    text = "links b-a, b-a-too copy from b to a; without a plan yet: b-a-too: run strait apply b-a-too"
    assert checks.reverse(site.look) == Check(Verdict.WARNING, text)
    site.positions["b-a-too"] = {MAIL: 9}
    assert checks.reverse(site.look) == Check(Verdict.DONE, "links b-a, b-a-too copy from b to a")


class Coordinator:
    """The groups of cluster a, by name: their type and state, and their members; an error if they cannot be described."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.groups: dict[str, tuple[Group, list[GroupMember] | StraitError]] = {}
        self.committed_there: dict[str, Any] = {}
        monkeypatch.setattr(observation, "ConsumerGroups", lambda *_: self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def listed(self) -> dict[str, Group]:
        return {name: group for name, (group, _) in self.groups.items()}

    def committed(self, names: Iterable[str], *, last_stable: bool) -> dict[str, Any]:
        assert last_stable
        return {name: self.committed_there[name] for name in names}

    def members_each(self, names: Iterable[str]) -> Outcomes[str, list[GroupMember]]:
        found = {name: self.groups[name][1] for name in names}
        results = {name: members for name, members in found.items() if not isinstance(members, StraitError)}
        return Outcomes(results, {name: error for name, error in found.items() if isinstance(error, StraitError)})


def member(*topics: str, known: bool = True) -> GroupMember:
    return GroupMember("app", "/10.0.0.5", frozenset(topics) if known else None)


def test_groups_of_which_the_topics_are_unknown_count_as_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    site, there = Site(monkeypatch), Coordinator(monkeypatch)
    site.look.__dict__["source"] = there
    denied = NotAuthorized("a", "describing group denied: GROUP_AUTHORIZATION_FAILED")
    stable, joining = Group("classic", "Stable", "consumer"), Group("classic", "PreparingRebalance", "consumer")
    there.groups = {
        "at-work": (stable, [member("orders")]),
        "of-others": (stable, [member("mail"), member()]),
        "joining": (joining, [member("mail"), member(known=False)]),
        "settling-elsewhere": (joining, [member("mail")]),
        "ended": (joining, []),
        "empty": (stable._replace(state="Empty"), denied),
        "denied": (stable, denied),
        "streams": (Group("streams", "Stable", "streams"), denied),
        "shared": (Group("share", "Stable", "share"), denied),
    }
    found = site.look.attached([], {"orders"})
    assert {group: [each.client_id for each in found.members[group]] for group in found.members} == {
        "at-work": ["app"],
        "denied": [],
        "joining": ["app", "app"],
    }
    assert found.unknown == {
        "denied": f"the topics of its members are unknown: {denied.message}",
        "joining": "the group rebalances, so the topics of its members are unknown",
    }
    assert not found.all_unknown
    del there.groups["at-work"]
    assert site.look.attached([], {"orders"}).all_unknown


@pytest.mark.parametrize(
    ("state", "topics", "known"),
    [
        (ConsumerGroupState.STABLE, ["orders"], frozenset({"orders"})),
        (ConsumerGroupState.STABLE, [], frozenset()),
        (ConsumerGroupState.PREPARING_REBALANCING, [], None),
        (ConsumerGroupState.COMPLETING_REBALANCING, None, None),
        (ConsumerGroupState.PREPARING_REBALANCING, ["orders"], frozenset({"orders"})),
    ],
)
def test_a_member_without_an_assignment_has_no_topics_only_in_a_stable_group(
    state: ConsumerGroupState, topics: list[str] | None, known: frozenset[str] | None
) -> None:
    places = None if topics is None else SimpleNamespace(topic_partitions=[TopicPartition(name, 0) for name in topics])
    described: Future[Any] = Future()
    of_group = SimpleNamespace(client_id="app", host="/10.0.0.5", assignment=places)
    described.set_result(SimpleNamespace(state=state, members=[of_group]))
    admin: Any = Admin.__new__(Admin)
    admin.cluster, admin._watch = "a", Watch("a")
    client = SimpleNamespace(poll=lambda _: None, describe_consumer_groups=lambda *_, **__: {"g": described})
    admin._client = client
    assert admin.members_each(["g"]).results["g"] == [GroupMember("app", "/10.0.0.5", known)]


def test_groups_on_the_destination_whose_offsets_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    site, there = Site(monkeypatch), Coordinator(monkeypatch)
    empty, share = Group("classic", "Empty", "consumer"), Group("share", "Empty", "share")
    worker = Group("classic", "Stable", "connect")
    there.groups = {name: (empty, []) for name in ("billing", "mailing", "unstable", "denied", "strait.mine")}
    there.groups |= {"shared": (share, []), "workers": (worker, [])}
    there.committed_there = {
        "billing": {ORDERS: Committed(3, "")},
        "mailing": {MAIL: Committed(3, "", pending=True)},
        "unstable": {ORDERS: Committed(3, "", pending=True)},
        "denied": GROUP_AUTHORIZATION_FAILED,
    }
    errors = {"denied": "GROUP_AUTHORIZATION_FAILED", "unstable": "UNSTABLE_OFFSET_COMMIT"}
    assert site.look.groups_there() == (["billing"], errors)
