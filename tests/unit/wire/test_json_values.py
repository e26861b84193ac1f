"""Which values are one JSON object: for all that a parser accepts, what it says of their end."""

import json
import random
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.wire import json_values as subject
from strait.wire.columns import column


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
    right += [b'{"a": "NaN, Infinity \xc3\xbf"}', b'{"N\\u0022": null, "b": [true, false, -1.5E+10]}']
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


def test_decimal_numbers_that_nobody_can_write_out() -> None:
    wrong = [
        b'{"a":1e2400000}',
        b'{"a": "1e2400000"}',
        b'{"a": [1, -1.5E+99999]}',
        b"{'a': ' 1E-00001'}",
        b'{"a": "1\\u00659999999"}',
        b'{"a": "\\u0031e9999999"}',
        b'{"a": "\\u096fe9999999"}',
        b'{"a": "1e-4,000,000"}',
        b'{"a": "1e4,000,000"}',
        b'{"a": ",1,E,+,4,0,0,0,"}',
        b'{"a": "1e\\u002d4000000"}',
        b'{"a": "1\\u002Ee\\u0034\\u0030\\u0030\\u002c\\u0030"}',
        b'{"a": "1.e1234"}',
        '{"a": "1e-\u0664\u0660\u0660\u0660\u0660\u0660\u0660"}'.encode(),
        '{"a": "\uff11\\u0045\uff14\uff10\uff10\uff10"}'.encode(),
        b'{"a": "1e\\u0664\\u0660\\u0660\\u0660"}',
        b'["x","1e9999"]',
        b'{"a": "%b"}' % (b"9" * (subject.MOST_DIGITS + 1)),
        b"{'a': '-%b.9'}" % (b"9,\\u0039" * (subject.MOST_DIGITS // 2)),
    ]
    right = [
        b'{"a": 1e999, "b": "3e1234f", "c": "deadbeef1e12345", "d": "x1e12345", "e": "\\u003c\\u00e9"}',
        b"{}",
        None,
        b'{"a": "1e-999", "b": "1,000e9,9,9", "c": "1e\\u0034\\u0030\\u0030", "d": "\\u0065, 2024", "e": "e1234", "f": ",e1234"}',
        '{"a": "e\\u00e9, 2024 M\u00fcller", "b": "1 e, 2,024", "c": "\u4e2de\u6587\u6587\u6587\u6587", "d": "1e\u00e9\u00e9\u00e9"}'.encode(),
        b'{"a": "\\u4e2de\\u6587\\u6587\\u6587\\u6587", "b": "12e-1234-5678", "c": "1e4000/2", "d": "1e\\\\u00344000"}',
        b'{"a": "%b"}' % (b"9" * subject.MOST_DIGITS),
        b'{"a": "%b", "b": [%b0]}' % (b"9" * subject.MOST_DIGITS + b"a", b"9," * subject.MOST_DIGITS),
    ]
    found = subject.immense_decimals(column([*wrong, *right]), len(wrong) + len(right))
    assert found.tolist() == [True] * len(wrong) + [False] * len(right)


PIECES = st.sampled_from(
    [
        *(b"\\u%04x" % number for number in (0x2D, 0x31, 0x65, 0xE9, 0x96F)),
        b"1",
        b"e",
        b"E+",
        b"-",
        b"12345",
        b'"',
        b":",
        b",",
        b"}",
        b"x",
        b" ",
        b".",
        b'"1',
        b'"1e',
        b'0000"',
        b"\xd9\xa4",
    ]
)
VALUES = st.one_of(st.none(), st.lists(PIECES, max_size=14).map(b"".join))


@given(st.lists(VALUES, min_size=1, max_size=30))
def test_decimal_numbers_are_found_in_all_values_at_once_as_in_each(values: list[bytes | None]) -> None:
    each = [value is not None and subject._has_immense(value) for value in values]
    assert subject.immense_decimals(column(values), len(values)).tolist() == each


@given(
    st.lists(st.lists(st.sampled_from([*"0123456789eE+-.,\u0664\uff11\u00e9x", "e1234", "e-1,234"])).map("".join)),
    st.randoms(),
)
def test_texts_that_spark_reads_as_immense_numbers_are_found_however_they_are_written(
    texts: list[str], rng: Any
) -> None:
    values, immense = [], []
    for text in texts:
        escaped = "".join(f"\\u{ord(one):04x}" if rng.random() < 0.2 else one for one in text)
        values.append(f'{{"a": "{escaped}"}}'.encode())
        immense.append(re.fullmatch(r"[-+]?[\d.]+[eE][-+]?\d{4,}", text.replace(",", "")) is not None)
    assert subject.immense_decimals(column(values), len(values)).tolist() == immense


def test_the_search_for_immense_numbers_takes_linear_time() -> None:
    pieces = (b"\\u0065", b"\\u00e9", b"e1234", b"1e9,", b'"1', b'"', b"'1e", b"9", b",1", b" ", b'":1.', b"\\")
    for piece in pieces:
        values = [b'{"a": "1e' + piece * ((1 << 20) // len(piece))]
        before = time.process_time()
        subject.immense_decimals(column(values), 1)
        assert time.process_time() - before < 5, piece


@pytest.mark.usefixtures("way")
def test_what_is_not_in_utf_8() -> None:
    """The borders of each length of characters, and what lies behind them."""
    texts = ["\x7f", "\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "\\\u00e9"]
    right = [b'{"a": "%b"}' % text.encode() for text in texts]
    assert refused(*right) == [False] * len(right)
    wrong = [
        b"\x80",
        b"\xbf",
        b"\xc1\xbf",
        b"\xc2",
        b"\xc3(",
        b"\xe0\x9f\xbf",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xe2(\xa1",
    ]
    wrong += [
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf0\x90\x80",
        b"\xf5\x80\x80\x80",
        b"\xff",
        b"\\\xff",
        b"Jos\xe9",
    ]
    made = (
        [b'{"a": "%b"}' % text for text in wrong] + [b"{%b}" % text for text in wrong] + [b'{"' + one for one in wrong]
    )
    assert refused(*made) == [True] * len(made)


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
    values = [
        b"{" + bytes(rng.choices(b"{}[]\"'\\a NI,:\xc3\xa9\xff", k=rng.randrange(12))) + b"}" for _ in range(20_000)
    ]
    compiled = refused(*values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "columnar", None)
        assert refused(*values) == compiled
    assert 0 < sum(compiled) < len(values)
