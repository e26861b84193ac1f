"""Files of other tools are read as they read them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.errors import ConfigError
from strait.importing.reading import properties_of


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=1\nb = 2\n c:3\nd 4\r\ne", {"a": "1", "b": "2", "c": "3", "d": "4", "e": ""}),
        ("# a=1\n  ! b=2\n\nc=#3", {"c": "#3"}),
        ("a = 1,\\\n    2,\\\n\t3\nb=x\\\\\nc=1", {"a": "1,2,3", "b": "x\\", "c": "1"}),
        (r"re = metrics\\..*", {"re": r"metrics\..*"}),
        ("x\\=y\\ z=\\u00e9\\tq", {"x=y z": "é\tq"}),
        (
            'jaas = Module required username="u" password="p=:\\\\";',
            {"jaas": 'Module required username="u" password="p=:\\";'},
        ),
        ("a=1\na=2", {"a": "2"}),
        ("A->B.topics = .*", {"A->B.topics": ".*"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, properties: dict[str, str]) -> None:
    assert properties_of(text, "x") == properties


@pytest.mark.parametrize(
    ("raw", "properties"),
    [
        ({"name": "n", "config": {"a": "1", "b": 2, "c": True}}, {"name": "n", "a": "1", "b": "2", "c": "true"}),
        ({"a": "1", "name": "n"}, {"a": "1", "name": "n"}),
    ],
)
def test_json_may_be_a_connector_or_its_configuration_alone(raw: object, properties: dict[str, str]) -> None:
    assert properties_of(json.dumps(raw), "x") == properties


@pytest.mark.parametrize("text", ['{"a": ', '{"config": []}', '{"a": {"b": 1}}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^file: "):
        properties_of(text, "file")


@given(st.text())
def test_whatever_a_file_holds_is_read_or_refused(text: str) -> None:
    try:
        found = properties_of(text, "x")
    except ConfigError:
        return
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in found.items())
