"""Lists of regular expressions: the first that matches, and an end to those that would try for ever."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config.patterns import FirstMatch
from strait.errors import ConfigError

# Plain ones are tried as one alternation, the others (flags, references, named groups) alone; order counts for both.
EXPRESSIONS = [
    "a",
    "a(b)(c)?",
    "(?i)B.*",
    r"(a|b)\1",
    "(?P<x>c)(?P=x)",
    "a|b|c",
    r"(?:(a)|b)+",
    "(?!a).*",
    ".*(?<=c)",
    r"[(?]\(?",
    "(?s)..",
    "",
    ".{3}",
]


@given(st.lists(st.sampled_from(EXPRESSIONS), max_size=8), st.text("abcB(?", max_size=4))
def test_the_first_that_matches_the_whole_name_is_found(patterns: list[str], name: str) -> None:
    expected = next((number for number, pattern in enumerate(patterns) if re.fullmatch(pattern, name)), None)
    matcher = FirstMatch("topics.regex.{}", tuple(patterns))
    assert matcher(name) == expected
    assert matcher(name) == expected, "remembered"


@pytest.mark.parametrize("others", [(), ("x", "(?i)y")])
@pytest.mark.parametrize(("endless", "name"), [("(a|aa)+b", "a" * 120), ("(.*?,){11}P", "a," * 100)])
def test_an_expression_that_would_try_for_ever_is_named_with_its_place(
    endless: str, name: str, others: tuple[str, ...]
) -> None:
    matcher = FirstMatch("topics.rules.{}.match", (*others, endless, "z"))
    with pytest.raises(ConfigError) as caught:
        matcher(name)
    assert str(caught.value).startswith(f"topics.rules.{len(others)}.match: the regular expression {endless!r} takes")


def test_expressions_that_are_slow_on_each_of_many_names_are_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strait.config.patterns._LIST_SECONDS", 0.0)
    matcher = FirstMatch("topics.regex.{}", ("ok", "(?:a|aa){1,20}b"))
    with pytest.raises(ConfigError, match=r"^topics\.regex\.1: the regular expression '\(\?:a\|aa\)\{1,20\}b' takes"):
        [matcher("a" * 20 + str(number)) for number in range(100_000)]
