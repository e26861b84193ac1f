"""What becomes of a partition whose topics are not the ones it was copied from and to."""

from typing import Any

import pytest

from strait.model import NO_TOPIC_ID, TopicFacts, topic_id_text
from strait.planning.topic_sync.creation import Pair
from strait.planning.topics.identity import Change, Halted, New, Unchanged, judge
from strait.planning.topics.start_offsets import Resume
from strait.reasons import Reason
from strait.state.schema import OffsetMapping, TopicPolicy


def pair(source_id: str = "s1", destination_id: str = "d1", destination: str = "orders") -> Pair:
    return Pair(TopicFacts("orders", source_id, 1), TopicFacts(destination, destination_id, 1))


def run(source_id: str = "s1", destination_id: str = "d1", at_ms: int = 1, **said: Any) -> OffsetMapping:
    bases = {"source_base": 100, "destination_base": 7, "sequence_base": 0, "sequence_end": 50}
    return OffsetMapping(
        topic="orders",
        partition=0,
        destination="orders",
        source_id=source_id,
        destination_id=destination_id,
        checkpoint_at_ms=at_ms,
        **bases | said,
    )


def judged(now: Pair, *past: OffsetMapping, on_loss: Any = "halt") -> Unchanged | New | Halted:
    return judge(now, past, "latest", TopicPolicy(on_loss=on_loss))


@pytest.mark.parametrize("on_loss", ["halt", "continue", "restart"])
def test_what_was_never_copied_begins_as_told_and_what_is_as_it_was_goes_on(on_loss: str) -> None:
    assert judged(pair(), on_loss=on_loss) == New("latest")
    assert judged(pair(), run(), on_loss=on_loss) == Unchanged()


def test_a_topic_that_gets_an_id_is_what_it_was_and_its_successor_is_not() -> None:
    none = topic_id_text(NO_TOPIC_ID)
    assert judged(pair(none, none), run(none, none)) == Unchanged()
    assert judged(pair(), run(none, none)) == Unchanged()
    found = judged(pair("s2"), run(none, none), run("s1", sequence_base=50))
    assert isinstance(found, Halted) and found.change.reason is Reason.SOURCE_RECREATED


@pytest.mark.parametrize(
    ("now", "reason", "side", "lost"),
    [
        (pair(source_id="s2"), Reason.SOURCE_RECREATED, "source", (150, 150)),
        (pair(destination_id="d2"), Reason.DESTINATION_RECREATED, "destination", (7, 57)),
        (pair("s2", "d2"), Reason.SOURCE_RECREATED, "source", (150, 150)),
    ],
)
def test_another_topic_under_the_old_name_halts(now: Pair, reason: Reason, side: str, lost: tuple[int, int]) -> None:
    found = judged(now, run())
    assert isinstance(found, Halted)
    assert (found.change.reason, found.change.side, found.change.lost) == (reason, side, lost)
    assert found.change.is_loss


@pytest.mark.parametrize("on_loss", ["continue", "restart"])
def test_another_source_topic_is_left_to_the_slot_where_the_policy_allows_it(on_loss: str) -> None:
    assert judged(pair(source_id="s2"), run(), on_loss=on_loss) == Unchanged()
    begun = run("s2", at_ms=2, sequence_base=50, sequence_end=60, source_base=0, destination_base=57)
    assert judged(pair(source_id="s2"), run(), begun) == Unchanged(), "once it is begun, no policy can take it back"


def test_another_destination_topic_is_filled_from_the_first_record_or_from_where_the_copy_was() -> None:
    found = judged(pair(destination_id="d2"), run(), on_loss="restart")
    assert isinstance(found, New)
    assert (found.begin, found.action) == ("earliest", "restarted")
    found = judged(pair(destination_id="d2"), run(), on_loss="continue")
    assert isinstance(found, New)
    assert (found.begin, found.action) == (Resume(150), "continued")
    assert isinstance(found.change, Change)
    assert found.change.loss("l", "orders", 3, found.action, 9).model_dump() == {
        "v": 1,
        "link": "l",
        "topic": "orders",
        "partition": 3,
        "side": "destination",
        "cause": "destination_recreated",
        "from_offset": 7,
        "to_offset": 57,
        "at_ms": 9,
        "action": "continued",
        "detail": "topic orders was deleted and created again on the destination: the link copied into ID d1, the present one "
        "is d2; the 50 records copied into the former one are gone with it",
    }


def test_where_both_are_others_there_is_no_position_to_go_on_from() -> None:
    found = judged(pair("s2", "d2"), run(), on_loss="continue")
    assert isinstance(found, New)
    assert (found.begin, found.action) == ("earliest", "restarted")


def test_the_position_is_that_of_the_newest_copy_with_all_its_gaps() -> None:
    older = run(destination_id="d0", at_ms=1, sequence_end=9000)
    first = run(at_ms=5)
    second = run(at_ms=6, sequence_base=50, sequence_end=60, source_base=170, destination_base=57)
    found = judged(pair(destination_id="d2"), first, second, older, on_loss="continue")
    assert isinstance(found, New)
    assert found.begin == Resume(180)
    assert found.change is not None
    assert found.change.lost == (7, 67)


@pytest.mark.parametrize("on_loss", ["halt", "continue", "restart"])
def test_another_name_is_no_loss_and_waits_whatever_the_policy(on_loss: str) -> None:
    found = judged(pair(destination="x.orders", destination_id="d9"), run(), on_loss=on_loss)
    assert isinstance(found, Halted)
    assert found.change.reason is Reason.NAMING_CHANGED
    assert not found.change.is_loss
