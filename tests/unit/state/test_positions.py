"""Positions as other tools store them."""

import pytest

from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.state.positions import (
    MM2_CONNECTOR,
    ConnectOffset,
    Position,
    as_csv,
    as_json,
    as_mirus_csv,
    as_mirus_json,
    connect_record,
    of_connector,
    read_connect,
    read_positions,
)

ORDERS = TopicPartition("orders", 0)
POSITIONS = [
    Position("orders", 0, 12, "a.orders", 10, "exact"),
    Position("orders", 1, None, "a.orders", 0, "not_replicated", "nothing, yet"),
]


def test_what_is_exported_can_be_imported() -> None:
    expected = {ORDERS: 12, TopicPartition("orders", 1): None}
    assert read_positions(as_csv(POSITIONS), "f") == expected
    import json

    assert read_positions(json.dumps(as_json("l", POSITIONS)), "f") == expected


def test_mirus_has_no_headings_and_only_what_is_known() -> None:
    assert as_mirus_csv("m", POSITIONS) == "m,orders,0,12\n"
    assert as_mirus_json("m", POSITIONS) == '{"connectorId":"m","topic":"orders","partition":0,"offset":12}\n'
    for text in (as_mirus_csv("m", POSITIONS), as_mirus_json("m", POSITIONS)):
        assert read_positions(text, "f") == {ORDERS: 12}


@pytest.mark.parametrize(
    "text",
    [
        "orders,0,12\n",
        "topic,partition,offset\norders,0,12\n",
        " offset ,partition,topic\n12,0,orders\n",
        "m,orders,0,12\n\n",
        '{"topic":"orders","partition":0,"offset":12}',
        '[{"topic":"orders","partition":0,"offset":12}]',
    ],
)
def test_many_forms_mean_the_same(text: str) -> None:
    assert read_positions(text, "f") == {ORDERS: 12}


def test_mirus_writes_an_empty_cell_for_a_deleted_position() -> None:
    assert read_positions("m,orders,0,\n", "f") == {ORDERS: None}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no position"),
        ("orders,x,12\n", "row 1: names no partition"),
        ("orders,0,-1\n", "row 1: offset '-1'"),
        ("orders,0,1\norders,0,2\n", "row 2: orders-0 was there before"),
        ('{"topic":', "neither JSON"),
        ("[1]", "row 1: expected an object"),
    ],
)
def test_what_is_no_position_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_positions(text, "f")


def test_mirror_maker_stores_the_last_record_and_mirus_the_next_one() -> None:
    key, value = connect_record(MM2_CONNECTOR, "a", ORDERS, 12)
    assert key == b'["MirrorSourceConnector",{"cluster":"a","partition":0,"topic":"orders"}]'
    assert value == b'{"offset":11}'
    assert read_connect(key, value) == ConnectOffset(MM2_CONNECTOR, "a", ORDERS, 12)
    key, value = connect_record("m", None, ORDERS, 12)
    assert (key, value) == (b'["m",{"partition":0,"topic":"orders"}]', b'{"offset":12}')
    assert read_connect(key, value) == ConnectOffset("m", None, ORDERS, 12)
    assert read_connect(key, None) == ConnectOffset("m", None, ORDERS, None)


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"x",
        b"[]",
        b'["c",{"consumerGroup":"g","topic":"t","partition":0}]',
        b'["c",{"filename":"x"}]',
        b'["c",3]',
    ],
)
def test_what_others_store_there_is_passed_over(key: bytes | None) -> None:
    assert read_connect(key, b'{"offset":1}') is None


def test_several_connectors_have_to_be_told_apart() -> None:
    entries = [
        ConnectOffset(MM2_CONNECTOR, "a", ORDERS, 12),
        ConnectOffset(MM2_CONNECTOR, "b", ORDERS, 5),
        ConnectOffset("m", None, ORDERS, 7),
    ]
    with pytest.raises(ConfigError, match="several connectors: --connector MirrorSourceConnector --cluster a"):
        of_connector(entries, "t", None, None)
    assert of_connector(entries, "t", None, "b") == {ORDERS: 5}
    assert of_connector(entries, "t", "m", None) == {ORDERS: 7}
    with pytest.raises(ConfigError, match="holds no position of a connector"):
        of_connector(entries, "t", "x", None)


@pytest.mark.parametrize(
    ("offset", "fit", "certain"),
    [
        (5, "exact", True),
        (5, "inexact", False),
        (None, "not_replicated", True),
        (None, "unknown", False),  # its topic was recreated, its leader is away, or the map was lost
    ],
)
def test_no_other_tool_continues_where_a_position_is_not_known(offset: int | None, fit: str, certain: bool) -> None:
    assert Position("t", 0, offset, "t", offset, fit).certain is certain
