"""Which runs describe a topic that had no ID when they were written."""

import pytest

from strait.model import NO_TOPIC_ID, is_known_id, topic_id_text
from strait.state.adoption import adopted
from strait.state.schema import OffsetMapping

NONE = topic_id_text(NO_TOPIC_ID)


def run(source_id: str, destination_id: str = "d1", at: int = 0, destination: str = "orders") -> OffsetMapping:
    return OffsetMapping(
        topic="orders",
        partition=0,
        destination=destination,
        source_id=source_id,
        destination_id=destination_id,
        source_base=at,
        destination_base=at,
        sequence_base=at,
        sequence_end=at,
        checkpoint_at_ms=at,
    )


def ids(runs: list[OffsetMapping], source_id: str, destination_id: str = "d1") -> list[tuple[str, str]]:
    return [(one.source_id, one.destination_id) for one in adopted(runs, "orders", source_id, destination_id)]


def test_no_id_is_told_from_an_id() -> None:
    assert not is_known_id(NONE) and not is_known_id("") and is_known_id("AAAAAAAAAAAAAAAAAAAAAQ")


def test_where_all_are_known_nothing_changes() -> None:
    runs = [run("s1"), run("s2", at=5)]
    assert adopted(runs, "orders", "s2", "d1") is runs


@pytest.mark.parametrize("none", [NONE, ""])
def test_a_topic_that_gets_an_id_is_the_one_that_had_none(none: str) -> None:
    assert ids([run(none, none)], "s1", "d1") == [("s1", "d1")]
    assert ids([run(none), run("s1", at=5)], "s1") == [("s1", "d1"), ("s1", "d1")]


def test_a_successor_of_a_topic_that_got_an_id_is_another_one() -> None:
    assert ids([run(NONE), run("s1", at=5)], "s2") == [("s1", "d1"), ("s1", "d1")]


def test_while_a_topic_has_no_id_all_runs_are_its_own() -> None:
    assert ids([run("s1"), run(NONE, at=5)], NONE) == [(NONE, "d1"), (NONE, "d1")]


def test_a_run_into_another_topic_stays_as_it_is() -> None:
    other = run(NONE, NONE, destination="elsewhere")
    assert adopted([other], "orders", "s1", "d1") == (other,)
