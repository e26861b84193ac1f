"""Fetch sessions against a model of the broker's side: what it looks at is what was wanted, through every kind of
loss."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.wire.error_codes import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    UNKNOWN_SERVER_ERROR,
)
from strait.wire.fetch import FetchPosition
from strait.wire.fetch_session import FetchSession, Key, Positions, Request

Wanted = dict[Key, FetchPosition]


@dataclass
class Broker:
    """FetchManager of Kafka: a request's (id, epoch) -> what it looks at, and the reply's (session id, error)."""

    room: int = 2
    sessions: dict[int, tuple[int, Wanted]] = field(default_factory=dict)
    made: int = 0

    def take(self, request: Request) -> tuple[Wanted, int, int]:
        (session, epoch), asked = request.session, dict(_flat(request))
        if epoch == 0:
            assert not request.forgotten
            self.sessions.pop(session, None)
            if not asked or len(self.sessions) >= self.room:
                return asked, 0, 0
            self.made += 1
            self.sessions[self.made] = (1, asked)
            return asked, self.made, 0
        if session not in self.sessions:
            return {}, 0, FETCH_SESSION_ID_NOT_FOUND
        expected, known = self.sessions[session]
        if epoch != expected:
            return {}, session, INVALID_FETCH_SESSION_EPOCH
        forgotten = {(topic, number) for topic, numbers in request.forgotten for number in numbers}
        assert forgotten <= known.keys()
        looked_at = {key: position for key, position in known.items() if key not in forgotten} | asked
        if not looked_at:  # a session of nothing is closed
            del self.sessions[session]
            return {}, 0, 0
        self.sessions[session] = (expected + 1, looked_at)
        return looked_at, session, 0


def _flat(request: Request) -> Mapping[Key, FetchPosition]:
    return {(topic, position.partition): position for topic, positions in request.topics for position in positions}


def next_request(session: FetchSession, wanted: Wanted, before: Wanted) -> Request:
    """The next request after ``wanted`` was told to a session that knew of ``before``."""
    for key in before.keys() - wanted.keys():
        session.leave(key)
    for key, position in wanted.items():
        session.want(key, position)
    return session.next_request()


wanted_sets = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 2)), st.tuples(st.integers(0, 2), st.integers(0, 2))
).map(lambda each: {key: FetchPosition(key[1], epoch, offset, 100) for key, (epoch, offset) in each.items()})
fates = st.sampled_from(
    ["good", "good", "good", "request lost", "reply lost", "evicted", "error", "topic id error", "no room", "room"]
)


@given(st.lists(st.tuples(wanted_sets, fates), max_size=30))
@settings(deadline=None)
def test_the_broker_looks_at_what_is_wanted_through_every_loss(steps: list[tuple[Wanted, str]]) -> None:
    broker, session = Broker(), FetchSession()
    before: Wanted = {}
    for wanted, fate in steps:
        if fate == "evicted":
            broker.sessions.clear()
        broker.room = {"no room": 0, "room": 2}.get(fate, broker.room)
        request, before = next_request(session, wanted, before), wanted
        if fate == "request lost":
            session.lost()
            continue
        if fate in ("error", "topic id error"):
            if (
                session.established
            ):  # the broker may have taken it; a session that it did not answer with, it did not make
                broker.take(request)
            session.took(0, UNKNOWN_SERVER_ERROR if fate == "error" else FETCH_SESSION_TOPIC_ID_ERROR)
            continue
        looked_at, session_id, error = broker.take(request)
        if fate == "reply lost":
            session.lost()
            broker.sessions.clear()  # the one that it may have made is never named again: its room is taken from others
            continue
        session.took(session_id, error)
        if error:
            assert fate == "evicted" and error == FETCH_SESSION_ID_NOT_FOUND
        else:
            assert looked_at == wanted
        assert session.established == (session_id in broker.sessions)
        assert len(broker.sessions) <= 1


def position(offset: int, number: int = 0) -> FetchPosition:
    return FetchPosition(number, 5, offset, 100)


def begun(wanted: Wanted) -> FetchSession:
    """A session that the broker has just made."""
    session = FetchSession()
    next_request(session, wanted, {})
    session.took(77, 0)
    return session


def test_only_what_changed_is_sent() -> None:
    session = FetchSession()
    wanted: Wanted = {("a", number): position(1, number) for number in range(1000)}
    request = next_request(session, wanted, {})
    assert request.session == (0, 0)
    assert sum(len(positions) for _, positions in request.topics) == 1000
    session.took(77, 0)
    assert session.next_request() == Request((77, 1), [], [])
    session.took(77, 0)
    session.want(("a", 3), position(2, 3))
    session.leave(("a", 4))
    session.want(("b", 0), position(0))
    changed: Positions = [("a", [position(2, 3)]), ("b", [position(0)])]
    assert session.next_request() == Request((77, 2), changed, [("a", [4])])


def test_what_changed_and_changed_back_is_not_sent() -> None:
    session = begun({("a", 0): position(1), ("a", 1): position(1, 1)})
    session.want(("a", 0), position(2))
    session.want(("a", 0), position(1))
    session.leave(("a", 1))
    session.want(("a", 1), position(1, 1))
    session.want(("a", 2), position(1, 2))
    session.leave(("a", 2))
    assert session.next_request() == Request((77, 1), [], [])


def test_a_full_request_begins_with_another_partition_each_time() -> None:
    """A broker that keeps no session fills its reply in the order asked."""
    session = FetchSession()
    first = [next_request(session, {("a", 0): position(1), ("b", 0): position(1)}, {}).topics[0][0]]
    for _ in range(3):
        session.took(0, 0)
        first.append(session.next_request().topics[0][0])
    assert first == ["a", "b", "a", "b"]


@pytest.mark.parametrize("error", [INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR, UNKNOWN_SERVER_ERROR])
def test_an_error_ends_the_session_and_everything_is_asked_for_again(error: int) -> None:
    session = begun({("a", 0): position(1)})
    session.next_request()
    session.took(0, error)
    assert not session.established
    assert session.next_request() == Request((77, 0), [("a", [position(1)])], [])


def test_a_session_that_the_broker_forgot_is_not_named_again() -> None:
    session = begun({("a", 0): position(1)})
    session.next_request()
    session.took(0, FETCH_SESSION_ID_NOT_FOUND)
    assert session.next_request().session == (0, 0)


def test_a_reply_of_another_session_is_not_trusted() -> None:
    session = begun({("a", 0): position(1)})
    session.next_request()
    session.took(78, 0)
    assert session.next_request().session == (77, 0)


def test_epochs_go_round_without_meeting_that_of_a_new_session() -> None:
    session = begun({("a", 0): position(1)})
    session._epoch = 2**31 - 1
    session.next_request()
    session.took(77, 0)
    assert session.next_request().session == (77, 1)
