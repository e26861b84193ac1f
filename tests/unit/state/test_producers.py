"""What `strait.producers` says, record after record."""

import json

import pytest

from strait.state.codec import encode
from strait.state.producer_registry import Registrations
from strait.state.schema import Registration

ONE = Registration(producer_id=7, link="a-to-b", source="cluster-a", destination="cluster-b")
TWO = Registration(producer_id=8, link="c-to-b", source="cluster-c", destination="cluster-b")


def test_the_last_word_under_a_key_counts_and_a_tombstone_takes_it_back() -> None:
    known = Registrations()
    for offset, registration in enumerate((ONE, TWO, ONE)):
        known.apply(*encode(registration), offset)
    assert sorted(known.all(), key=lambda one: one.producer_id) == [ONE, TWO]
    known.apply(encode(ONE)[0], None, 3)
    assert list(known.all()) == [TWO]
    assert known.trouble == ""


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
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
