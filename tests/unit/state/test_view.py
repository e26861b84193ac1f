"""State records: what is written is read back, and what cannot be read harms nothing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.state.codec import encode, encode_key, run_key
from strait.state.schema import OffsetMapping, Plan
from strait.state.view import Kind, Place, StateView

PLACE = Place("strait.l.plan", 0, 42)


def plan(version: int = 1, **fields: Any) -> Plan:
    base: dict[str, Any] = {"link": "l", "group": "default", "producer_id": 1, "slots": 1, "published_at_ms": 0}
    return Plan(**base | {"version": version} | fields)


def run(sequence_base: int = 0, partition: int = 0, **fields: Any) -> OffsetMapping:
    base: dict[str, Any] = {
        "topic": "t",
        "destination": "t",
        "source_id": "s",
        "destination_id": "d",
        "source_base": 0,
        "destination_base": 0,
        "sequence_end": sequence_base,
        "checkpoint_at_ms": 0,
    }
    return OffsetMapping(**base | {"partition": partition, "sequence_base": sequence_base} | fields)


def kind_of(value: Plan | OffsetMapping) -> Kind:
    return "plan" if isinstance(value, Plan) else "map"


def write(view: StateView, value: Plan | OffsetMapping) -> bool:
    return view.apply(kind_of(value), *encode(value), PLACE)


def test_the_last_plan_of_a_group_is_in_force() -> None:
    view = StateView("l")
    assert write(view, plan(1))
    assert write(view, plan(2))
    assert view.plans["default"].version == 2


@given(st.permutations([run(0), run(10), run(20), run(0, partition=1), run(10, sequence_end=15)]))
def test_runs_are_in_order_of_sequences_whatever_order_they_came_in(runs: list[OffsetMapping]) -> None:
    view = StateView("l")
    for item in runs:
        write(view, item)
    assert [item.sequence_base for item in view.runs["t", 0]] == [0, 10, 20]
    last = [item for item in runs if (item.partition, item.sequence_base) == (0, 10)][-1]
    assert view.runs["t", 0][1] == last
    assert len(view.runs["t", 1]) == 1


def test_a_tombstone_takes_one_run_away() -> None:
    view = StateView("l")
    write(view, run(0))
    write(view, run(10))
    assert view.apply("map", encode_key(run_key(run(0))), None, PLACE)
    assert [item.sequence_base for item in view.runs["t", 0]] == [10]


def altered(**fields: Any) -> bytes:
    return json.dumps(json.loads(plan().model_dump_json()) | fields).encode()


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (b"garbage", "value: Invalid JSON"),
        (b"\xff\xfe", "value: Invalid JSON"),
        (b"[]", "value: "),
        (altered(v=2), "it has v 2, and this version of Strait reads v 1"),
        (altered(colour="red"), "value.colour: Extra inputs are not permitted"),
        (altered(slots="1"), "value.slots: Input should be a valid integer"),
        (altered(link="other"), "it is a plan of link 'other'"),
        (altered(group="gold"), "does not fit its value"),
    ],
)
def test_a_record_that_cannot_be_read_is_trouble_and_the_last_good_one_stays(value: bytes, what: str) -> None:
    view = StateView("l")
    key, good = encode(plan())
    view.apply("plan", key, good, PLACE)
    assert view.apply("plan", key, value, PLACE)
    trouble = view.trouble("plan")
    assert trouble is not None
    assert what in trouble.message
    assert "topic strait.l.plan partition 0 offset 42" in trouble.message
    assert view.plans["default"] == plan()
    view.apply("plan", key, encode(plan(2))[1], PLACE)
    assert view.trouble("plan") is None
    assert view.plans["default"].version == 2


@given(
    st.one_of(st.none(), st.binary(max_size=20)), st.binary(max_size=40), st.sampled_from(["plan", "map", "reports"])
)
def test_no_bytes_at_all_can_break_the_view(key: bytes | None, value: bytes, kind: Kind) -> None:
    view = StateView("l")
    view.apply(kind, key, value, PLACE)
    assert view.trouble(kind) is not None
    view.apply(kind, key, None, PLACE)
    assert view.trouble(kind) is None
    assert (view.plans, view.runs, view.reports) == ({}, {}, {})
