"""Which values are one JSON object: for all that a parser accepts, what it says of their end."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.wire import json_values as subject
from strait.wire.columns import column

WAYS = [
    pytest.param(
        False, id="compiled", marks=pytest.mark.skipif(subject.columnar is None, reason="columnar was not compiled")
    ),
    pytest.param(True, id="plain"),
]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which it is done: in machine code, and without a compiler."""
    if request.param:
        monkeypatch.setattr(subject, "columnar", None)


def refused(*values: bytes | None) -> list[bool]:
    return list(subject.not_one_object(column(values), len(values)).tolist())


@pytest.mark.usefixtures("way")
def test_one_object_with_nothing_around_it_but_white_space() -> None:
    right = [
        b"{}",
        b' \n\t\r{"a": {"b": [1, {"c": "}"}]}}\r\n ',
        b"{'a': '\"}'}",
        b'{"a": "\\"}"}',
        b'{"\\\\": "x"}',
        None,
    ]
    right += [b'{"a": "NaN, Infinity \xff"}', b'{"N\\u0022": null, "b": [true, false, -1.5E+10]}']
    assert refused(*right) == [False] * len(right)


@pytest.mark.usefixtures("way")
def test_anything_before_and_behind_it_or_no_object_at_all() -> None:
    wrong = [
        b"",
        b" ",
        b"[]",
        b"1",
        b"null",
        b"[{}]",
        b'"{}"',
        b"{} {}",
        b"{},{}",
        b"{}]",
        b"{}\0",
        b"x{}",
        b"\xef\xbb\xbf{}",
    ]
    wrong += [b"{", b'{"a": [}', b'{"a', b'{"a\\"', b"{'a\\", b'{"a": NaN}', b'{"a": -Infinity}', b"\x0b{}", b"{}\x0b"]
    assert refused(*wrong) == [True] * len(wrong)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from("a\\\"'{}[],:NI \n\u20ac")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from("a\\\"'{}[]N")), inner),
)


@given(st.dictionaries(st.text(), VALUES), VALUES, st.booleans())
def test_the_end_is_where_a_parser_finds_it(one: dict[str, object], other: object, ascii_only: bool) -> None:
    text, behind = (json.dumps(each, ensure_ascii=ascii_only).encode() for each in (one, other))
    values = (text, b" " + text + b"\n", text + behind, text + b" " + behind, behind + text, text[:-1])
    expected = [False, False, True, True, True, True]
    assert refused(*values) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "columnar", None)
        assert refused(*values) == expected


@pytest.mark.skipif(subject.columnar is None, reason="columnar was not compiled")
def test_both_ways_agree_on_any_bytes() -> None:
    rng = random.Random(3)
    values = [b"{" + bytes(rng.choices(b"{}[]\"'\\a NI,:", k=rng.randrange(12))) + b"}" for _ in range(20_000)]
    compiled = refused(*values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "columnar", None)
        assert refused(*values) == compiled
    assert 0 < sum(compiled) < len(values)
