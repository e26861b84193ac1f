"""What `strait.producers` says, record after record."""

import json

import pytest

from strait.state.codec import encode
from strait.state.moved_copies import MovedCopies
from strait.state.producer_registry import Registrations
from strait.state.schema import Registration

ONE = Registration(producer_id=7, link="a-to-b", source="cluster-a", destination="cluster-b")
MOVED = MovedCopies(moved_in="t", topic_id="x", link="a-to-b", source="cluster-a", ends=(800, 0))
TWO = Registration(producer_id=8, link="c-to-b", source="cluster-c", destination="cluster-b")


def test_the_last_word_under_a_key_counts_and_a_tombstone_takes_it_back() -> None:
    known = Registrations()
    for offset, registration in enumerate((ONE, TWO, ONE)):
        known.apply(*encode(registration), offset)
    assert sorted(known.all(), key=lambda one: one.producer_id) == [ONE, TWO]
    known.apply(encode(ONE)[0], None, 3)
    assert list(known.all()) == [TWO]
    assert known.trouble == ""


def test_copies_of_another_tool_are_kept_beside_the_producers() -> None:
    known = Registrations()
    later = MOVED.model_copy(update={"ends": (900,)})
    for offset, entry in enumerate((ONE, MOVED, later)):
        known.apply(*encode(entry), offset)
    assert (list(known.all()), list(known.moved_in()), known.trouble) == ([ONE], [later], "")
    known.apply(encode(MOVED)[0], None, 3)
    assert not known.moved_in()


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        (encode(MOVED)[0], json.dumps(MOVED.model_dump() | {"ends": [-1]}).encode(), "value.ends.0"),
        (encode(MOVED)[0], encode(ONE)[1], "value.moved_in"),
        (encode(ONE)[0], b"not JSON", "Invalid JSON"),
        (encode(ONE)[0], json.dumps(ONE.model_dump() | {"v": 2}).encode(), "it has v 2"),
        (encode(ONE)[0], json.dumps(ONE.model_dump() | {"more": 1}).encode(), "value.more"),
        (encode(TWO)[0], encode(ONE)[1], "does not fit its value"),
        (b"garbage", encode(ONE)[1], "does not fit its value"),
        (None, encode(ONE)[1], "does not fit its value"),
    ],
)
def test_what_cannot_be_read_is_trouble_until_its_key_gets_a_good_word(
    key: bytes | None, value: bytes, says: str
) -> None:
    known = Registrations()
    known.apply(*encode(TWO), 0)
    known.apply(key, value, 5)
    assert says in known.trouble
    assert "offset 5" in known.trouble
    assert list(known.all()) == [TWO]
    known.apply(key, None, 6)
    assert known.trouble == ""
