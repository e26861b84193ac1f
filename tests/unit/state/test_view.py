"""State records: what is written is read back, and what cannot be read harms nothing."""

import json
from array import array
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config.route_names import route_name
from strait.state import runs as runs_module
from strait.state.codec import decode, encode, encode_key, run_key
from strait.state.packed_gaps import Gaps, pack
from strait.state.plain_runs import is_plain
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


@given(
    st.builds(
        run,
        topic=st.sampled_from(["t", route_name("customers", "customers_big")]),
        sequence_base=st.integers(0, 1 << 50),
        partition=st.integers(0, 99),
        source_epoch=st.integers(-1, 9),
        shared=st.booleans(),
        gaps=st.sampled_from(["", "eJxjYAQAAAMAAg=="]),
        transform=st.sampled_from(["", "0123456789abcdef"]),
    )
)
def test_a_run_as_this_version_writes_it_needs_no_look_before_it_is_asked_for(written: OffsetMapping) -> None:
    assert is_plain(encode(written)[1])


@pytest.mark.parametrize(
    ("changed", "into"),
    [
        (b'"gaps":"', b'"gaps":"\\"'),
        (b'"gaps":"', b'"gaps":"","gaps":"'),
        (b'"gaps":', b'"holes":'),
        (b',"checkpoint_at_ms":0', b',"checkpoint_at_ms":0,"colour":"red"'),
        (b',"checkpoint_at_ms":0}', b',"checkpoint_at_ms":0'),
        (b',"checkpoint_at_ms":0}', b',"checkpoint_at_ms":0}}'),
        (b'"topic":"t"', b'"topic":"\xff"'),
        (b'"v":1', b'"v":2'),
    ],
)
def test_a_run_in_another_form_is_parsed_before_it_replaces_one(changed: bytes, into: bytes) -> None:
    plain = encode(run(gaps="eJxjYAQAAAMAAg=="))[1]
    assert is_plain(plain)
    assert changed in plain
    assert not is_plain(plain.replace(changed, into))


@given(
    st.builds(
        run,
        destination=st.sampled_from(["t", route_name("customers", "customers_big")]),
        source_base=st.integers(0, 1 << 50),
        destination_base=st.integers(0, 1 << 50),
        gaps=st.sampled_from(["", "eJxjYAQAAAMAAg==", pack(Gaps(array("q", [1]), array("q", [2])), bits=True)]),
    )
)
def test_a_key_has_the_checksum_by_which_earlier_versions_accept_it(made: OffsetMapping) -> None:
    said = (made.destination, made.source_id, made.destination_id, made.source_base, made.destination_base, made.gaps)
    assert run_key(made).check == crc32(json.dumps(said).encode())


def test_of_many_checkpoints_and_partitions_only_what_is_asked_for_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []

    def counted(kind: Any, raw_key: Any, raw_value: Any) -> Any:
        decoded.append(raw_value)
        return decode(kind, raw_key, raw_value)

    monkeypatch.setattr(runs_module, "decode", counted)
    view = StateView("l")
    for end in range(1000):
        write(view, run(0, partition=end % 10, sequence_end=end))
    assert view.runs["t", 3] == (run(0, partition=3, sequence_end=993),)
    assert view.runs["t", 3] == view.runs["t", 3]
    assert len(decoded) == 1
    assert len(view.runs) == 10
    view.runs.decode_all()
    assert len(decoded) == 10
    write(view, run(0, partition=4, sequence_end=1000))
    view.runs.decode_all()
    assert (len(decoded), view.runs["t", 4]) == (11, (run(0, partition=4, sequence_end=1000),))


@pytest.mark.parametrize("read_before", [True, False])
@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"v": 2}, "it has v 2"),
        ({"colour": "red"}, "value.colour: Extra inputs are not permitted"),
        ({"sequence_end": -1}, "value.sequence_end: Input should be greater than or equal to 0"),
    ],
)
def test_a_run_that_another_version_writes_leaves_the_last_good_one(
    fields: dict[str, Any], what: str, read_before: bool
) -> None:
    view = StateView("l")
    write(view, run(0))
    assert not read_before or view.runs["t", 0]
    key, value = encode(run(0))
    view.apply("map", key, json.dumps(json.loads(value) | fields, separators=(",", ":")).encode(), PLACE)
    assert view.runs["t", 0] == (run(0),)
    trouble = view.trouble("map")
    assert trouble is not None
    assert what in trouble.message
    write(view, run(0, sequence_end=5))
    assert view.trouble("map") is None
    assert view.runs["t", 0] == (run(0, sequence_end=5),)


def test_gaps_that_are_broken_are_trouble_of_whoever_asks_for_them() -> None:
    """They alone, and a value under another run's key, show only when they are decoded."""
    view = StateView("l")
    write(view, run(0))
    key, value = encode(run(0, partition=1, gaps="eJxjYAQAAAMAAg=="))
    view.apply("map", key, value.replace(b"eJxj", b"eJxk"), PLACE)
    view.apply("map", encode(run(0, partition=2))[0], encode(run(0))[1], PLACE)
    view.runs.decode_all()
    assert dict(view.runs) == {("t", 0): (run(0),)}
    trouble = view.trouble("map")
    assert trouble is not None
    assert "topic strait.l.map partition 0 offset 42 cannot be read: value.gaps: " in trouble.message
    for broken in (key, encode(run(0, partition=2))[0]):
        view.apply("map", broken, None, PLACE)
    assert view.trouble("map") is None


def test_a_key_that_is_written_otherwise_hides_no_run() -> None:
    view = StateView("l")
    write(view, run(0))
    key, value = encode(run(0))
    view.apply("map", key.replace(b'"topic":', b'"topic": '), value, PLACE)
    assert view.runs["t", 0] == (run(0),)
    assert view.trouble("map") is not None
