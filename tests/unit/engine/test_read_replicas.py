"""From which replica a partition is fetched (KIP-392), and what of a follower's word counts."""

import pytest

from strait.engine.read_replicas import CHECK_SECONDS, REFUSED_SECONDS, UNKNOWN_SECONDS
from strait.net.known_topics import Leader
from strait.wire import error_codes
from support.model.replicated import EXPIRE_SECONDS, Topic


@pytest.fixture
def topic() -> Topic:
    """Read from broker 2, which its leader, broker 1, has named."""
    topic = Topic()
    topic.replicas[1].prefers = 2
    topic.write(10, 1, 2, 3)
    topic.run(2.0)
    assert topic.given() == {2: 10}
    return topic


def test_records_come_from_the_follower_that_the_leader_names(topic: Topic) -> None:
    assert topic.replicas[1].requests[0].rack_id == "south"
    for _ in range(5):
        topic.write(10, 1, 2, 3)
        topic.run(1.0)
    assert topic.given() == {2: 50}
    assert topic.partition.cursor.offset == 60


def test_a_slot_without_a_rack_asks_leaders_alone() -> None:
    topic = Topic(rack="")
    topic.replicas[1].prefers = 2
    topic.write(10, 1, 2, 3)
    topic.run(2.0)
    assert topic.given() == {1: 10}
    assert {request.rack_id for request in topic.replicas[1].requests} == {""}


@pytest.mark.parametrize(
    "code", [error_codes.OFFSET_OUT_OF_RANGE, error_codes.UNKNOWN_LEADER_EPOCH, error_codes.KAFKA_STORAGE_ERROR]
)
def test_no_error_of_a_follower_counts(topic: Topic, code: int) -> None:
    """Its leader is asked, and must not refer to the follower again."""
    topic.replicas[2].error = code
    topic.write(10, 1)
    topic.run(2.0)
    assert topic.given() == {1: 10}
    assert topic.partition.reason is None
    assert not topic.out_of_range and not topic.diverged
    topic.replicas[2].error = 0
    topic.write(10, 1)
    topic.write(20, 2)
    topic.run(REFUSED_SECONDS)
    topic.given()
    topic.write(10, 1, 2)
    topic.run(2.0)
    assert topic.given() == {2: 10}, "it may be read again"


def test_the_leader_says_whether_records_are_gone(topic: Topic) -> None:
    topic.replicas[2].error = topic.replicas[1].error = error_codes.OFFSET_OUT_OF_RANGE
    topic.replicas[1].prefers = -1
    topic.run(1.0)
    assert topic.out_of_range[0] is topic.partition
    assert topic.replicas[1].requests[-1].rack_id == ""


def test_a_follower_that_has_less_than_was_fetched_proves_no_truncation(topic: Topic) -> None:
    """It answers with a divergence, as a log does that has lost records."""
    topic.replicas[2].end = 4
    topic.write(10, 1)
    topic.run(2.0)
    assert not topic.diverged
    assert topic.given() == {1: 10}
    topic.replicas[1].end = 15
    topic.run(2.0)
    assert topic.diverged[0] == 15, "its leader does"


def test_a_follower_that_is_not_there_is_given_up_and_read_again_later(topic: Topic) -> None:
    topic.replicas[2].runs = False
    topic.write(10, 1, 3)
    topic.run(2.0)
    assert topic.given() == {1: 10}
    assert topic.partition.reason is None
    topic.replicas[2].runs = True
    topic.write(10, 2)
    topic.run(REFUSED_SECONDS)
    topic.write(10, 1, 2, 3)
    topic.run(2.0)
    assert topic.given() == {2: 10}


def test_a_follower_that_answers_nothing_but_an_error_is_left(topic: Topic) -> None:
    topic.replicas[2].request_error = error_codes.UNKNOWN_SERVER_ERROR
    topic.write(10, 1)
    topic.run(2.0)
    assert topic.given() == {1: 10}


def test_a_follower_that_lags_hides_no_lag_and_is_left(topic: Topic) -> None:
    topic.write(10, 1)
    topic.run(CHECK_SECONDS + 1.0)
    assert (topic.partition.cursor.end, topic.partition.caught_up) == (20, False)
    topic.run(CHECK_SECONDS)
    assert topic.given() == {1: 10}
    assert topic.partition.cursor.offset == 20


def test_a_follower_moves_no_end_backwards(topic: Topic) -> None:
    cursor = topic.partition.cursor
    cursor.leader_ends(50)
    topic.write(10, 1, 2)
    topic.replicas[2].log_start = 7
    topic.run(1.0)
    assert (cursor.offset, cursor.known) == (20, (50, 50, 0))


def test_a_choice_expires(topic: Topic) -> None:
    topic.replicas[1].prefers = 3
    topic.run(EXPIRE_SECONDS + 2 * CHECK_SECONDS)
    topic.write(10, 1, 2, 3)
    topic.run(1.0)
    assert topic.given() == {3: 10}


def test_a_new_leader_is_asked_itself(topic: Topic) -> None:
    topic.leader = Leader(3, 1)
    topic.learn()
    topic.run(1.0)  # what was asked for before is answered
    topic.write(10, 1, 2, 3)
    topic.run(1.0)
    assert topic.given() == {3: 10}
    assert not topic.partition.cursor.from_follower
    topic.replicas[3].prefers = 2
    topic.run(1.0)
    topic.known = (1, 3)
    topic.learn()
    assert not topic.partition.cursor.from_follower, "the follower is in the cluster no more"


def test_a_follower_that_metadata_do_not_have_yet_is_not_waited_for(topic: Topic) -> None:
    topic.known = (1, 3)
    topic.learn()
    before = topic.cluster.refreshed
    topic.run(0.6)  # what was asked for before is answered
    topic.write(10, 1, 2, 3)
    topic.run(1.0)
    assert topic.given() == {1: 10}
    assert topic.cluster.refreshed > before
    topic.known = (1, 2, 3)
    topic.run(2 * UNKNOWN_SECONDS)
    topic.write(10, 1, 2, 3)
    topic.run(1.0)
    assert topic.given() == {2: 10}
