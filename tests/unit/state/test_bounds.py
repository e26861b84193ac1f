"""What a state record may cost whoever reads it: bytes, parts and errors are counted, since parsers of JSON take up to a
hundred times a text's size, and far more for errors."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from strait.state import bounds
from strait.state.audit_records import Audit, TopicResult
from strait.state.codec import AnyValue, Unreadable, decode, decode_key, encode
from strait.state.failover_records import Failover, SourceEnd
from strait.state.group_sync_records import GroupSyncReport
from strait.state.keys import PlanKey
from strait.state.ledger_records import LedgerMark, LedgerPart
from strait.state.moved_copies import MovedCopies
from strait.state.offset_map import Gap, pack
from strait.state.record import Record
from strait.state.report_changes import FailureReport, HistoryPoint, ReportChanges, TrafficReport
from strait.state.report_records import PartitionReport, Report, ZoneTraffic
from strait.state.schema import Loss, LossAcknowledgement, OffsetMapping, Plan, PlannedTopic, Registration, TopicPolicy
from strait.state.troubles import Troubles
from support.model.reports import plain_report, plain_run

MIB = 1 << 20
ROW = PartitionReport(
    topic="t", partition=0, state="copying", position=1, end=2, lag_records=1, lag_seconds=1.0, records=1, bytes=1
)
PLAN = Plan(link="l", group="default", version=1, producer_id=1, slots=1, published_at_ms=1)
CHANGES = ReportChanges(group="default", slot=0, application="1", at_ms=1, started_at_ms=1)
KINDS: list[type[BaseModel]] = [
    Plan, OffsetMapping, Report, ReportChanges, TrafficReport, FailureReport, HistoryPoint, GroupSyncReport, LedgerPart,
    LedgerMark, Loss, LossAcknowledgement, Registration, MovedCopies, Failover, Audit, TopicResult,
]  # fmt: skip
MOST_ERRORS = 150
"""Of any value: each field of the record with the most, and of those within it, once."""


def errors(kind: type[BaseModel], raw: bytes) -> int:
    """How many errors the parser finds and keeps in what is let through to it."""
    try:
        bounds.check_size(kind, raw)
        bounds.check_fields(kind, raw)
    except bounds.TooMuch:
        return 0
    try:
        kind.model_validate_json(raw)
    except ValidationError as error:
        return error.error_count()
    return 0


def list_fields(kind: type[BaseModel]) -> Iterator[str]:
    return (name for name, field in kind.model_fields.items() if "tuple" in str(field.annotation))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", ["0", "{}", "[]", '{"a":0}', '"x"', "null", "-1", '{"v":{}}'])
def test_wrong_values_of_any_number_are_one_error_for_each_field(kind: type[BaseModel], wrong: str) -> None:
    many = ",".join([wrong] * 4_000)
    keys = ",".join(f'"{number:x}":{wrong}' for number in range(2_000))
    assert errors(kind, f'{{"v":1,{keys}}}'.encode()) <= MOST_ERRORS
    for name in (*kind.model_fields, "unknown"):
        assert errors(kind, f'{{"v":1,"{name}":[{many}]}}'.encode()) <= MOST_ERRORS, name
        assert errors(kind, f'{{"v":1,"{name}":{{{keys}}}}}'.encode()) <= MOST_ERRORS, name


@given(
    st.sampled_from(KINDS),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=10)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["topic", "v", "a"]), inner),
        max_leaves=6,
    ),
    st.sampled_from([300, 3_000]),
    st.data(),
)
def test_whatever_is_repeated_wherever_it_is_found_once(
    kind: type[BaseModel], value: Any, times: int, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(["x", *kind.model_fields]))
    one = json.dumps(value)
    outer = data.draw(
        st.sampled_from(["[%s]", '{"topic":[%s]}', '[{"partitions":[%s]}]', "[[%s]]", '[{"policy":[%s]}]'])
    )
    assert errors(kind, f'{{"v":1,"{name}":{outer % ",".join([one] * times)}}}'.encode()) <= MOST_ERRORS


@pytest.mark.parametrize("kind", KINDS)
def test_no_more_is_parsed_than_such_a_record_may_have(kind: type[Any]) -> None:
    bound = bounds.bound_of(kind)
    too_long = b'{"v":1,"link":"' + b"x" * bound.bytes + b'"}'
    with pytest.raises(Unreadable, match=f"a {kind.__name__} has {bound.bytes:,} at most"):
        decode(kind, b"{}", too_long)
    nested = b'{"v":1,"link":[' + b"[]," * (bound.bytes // 4) + b"[]]}"
    with pytest.raises(Unreadable, match=r"objects and lists in|at most"):
        decode(kind, b"{}", nested)
    assert bound.bytes <= 32 * MIB


@pytest.mark.parametrize("kind", KINDS)
def test_each_list_of_every_record_ends_at_its_first_error(kind: type[BaseModel]) -> None:
    for name in list_fields(kind):
        raw = f'{{"{name}":[{",".join(["true"] * 1_000)}]}}'.encode()
        with pytest.raises(ValidationError) as caught:
            kind.model_validate_json(raw)
        assert sum(error["loc"][0] == name for error in caught.value.errors()) <= 1 + len(kind.model_fields), name


@pytest.mark.parametrize("kind", [kind for kind in KINDS if bounds.bound_of(kind).containers is not None])
def test_of_a_large_record_no_more_parts_are_parsed_than_honest_ones_have(kind: type[Any]) -> None:
    bound = bounds.bound_of(kind)
    assert bound.commas is not None and bound.containers is not None
    for one, most in (("0", bound.commas), ("{}", bound.containers)):
        raw = f'{{"v":1,"link":[{",".join([one] * (most + 2))}]}}'.encode()
        assert len(raw) < bound.bytes
        with pytest.raises(Unreadable, match=r"parts, and a|objects and lists in"):
            decode(kind, b"{}", raw)


def wide_plan() -> Plan:
    topics = tuple(
        PlannedTopic(
            source=f"team.orders.{number}", destination=f"team.orders.{number}", source_id="A" * 22,
            destination_id="B" * 22, slots=(0,) * 4, policy=TopicPolicy(on_loss="continue"), unbegun=(), lost=(),
        )
        for number in range(5_000)
    )  # fmt: skip
    return PLAN.model_copy(update={"topics": topics})


def widest_plan() -> Plan:
    """As many partitions as a plan may have."""
    topics = tuple(
        PlannedTopic(
            source=f"t{number}", destination=f"t{number}", source_id="A" * 22, destination_id="B" * 22, slots=(0,) * 20,
            unbegun=(), lost=(),
        )
        for number in range(40_000)
    )  # fmt: skip
    return PLAN.model_copy(update={"topics": topics})


def wide_failover() -> Failover:
    ends = tuple(SourceEnd(topic="t", partition=number, offset=number) for number in range(60_000))
    return Failover(
        id="1", link="l", source="a", destination="b", kind="planned", by="x", turn="1", strait_version="0",
        began_at_ms=1, ends=ends,
    )  # fmt: skip


MANY = 20_000
GAPS = [Gap(2 * number, 3 * number) for number in range(1, 50_001)]


@pytest.mark.parametrize(
    "make",
    [
        wide_plan,
        widest_plan,
        wide_failover,
        lambda: plain_run(gaps=pack(GAPS, sequence_base=0, source_base=0)),
        lambda: plain_report(partitions=(ROW,) * (MANY // 2)),
        lambda: CHANGES.model_copy(
            update={"partitions": tuple(ROW.model_copy(update={"partition": at}) for at in range(MANY))}
        ),
        lambda: CHANGES.model_copy(update={"left": tuple(("t", at) for at in range(MANY))}),
        lambda: TrafficReport(
            group="default", slot=0, application="1", at_ms=1, started_at_ms=1,
            traffic=(ZoneTraffic(cluster="source", from_zone="us-east-1a", to_zone="us-east-1b", bytes=1 << 60),) * 1_000,
        ),
        lambda: Loss(
            link="l", topic="t" * 249, partition=0, side="source", cause="source_truncated", from_offset=0, to_offset=1,
            at_ms=1, action="continued", detail=", [{" * 500,
        ),
        lambda: PLAN.model_copy(update={"waiting": (), "group": "g,[{" * 200}),
    ],
    ids=["plan", "widest plan", "failover", "gaps", "report", "changes", "left", "traffic", "loss", "odd text"],
)  # fmt: skip
def test_the_largest_records_that_are_written_can_be_read(make: Callable[[], AnyValue]) -> None:
    value = make()
    assert decode(type(value), *encode(value)) == value


def test_a_field_of_a_later_version_is_named_in_small_and_large_records() -> None:
    key, raw = encode(wide_plan())
    later = raw.replace(b'"slots":[', b'"later":1,"slots":[', 1)
    with pytest.raises(Unreadable, match=r"value\.topics.*\.later: Extra inputs are not permitted"):
        decode(Plan, key, later)
    key, raw = encode(PLAN)
    with pytest.raises(Unreadable, match=r"value\.later: Extra inputs are not permitted"):
        decode(Plan, key, raw.replace(b"{", b'{"later":1,', 1))


def test_every_record_that_holds_others_is_searched() -> None:
    assert {kind.__name__ for _, kind in bounds._fields(Plan).inner} >= {"PlannedTopic", "Waiting", "Budget", "Pause"}
    assert [kind.__name__ for _, kind in bounds._fields(PlannedTopic).inner] == ["TopicPolicy", "LostRuns"]
    for kind in [*KINDS, *Record.__subclasses__()]:
        names = [name for name, _ in bounds._fields(kind).inner]
        assert len(set(names)) == len(names), f"{kind}: a field with two kinds of records is checked for one alone"


def test_unreadable_records_are_counted_no_further_than_a_thousand_keys() -> None:
    troubles: Troubles[str] = Troubles()
    for number in range(5_000):
        troubles.add(b"%d" % number + b"x" * 100_000 * (number % 2), f"trouble {number}")
    assert sum(map(len, filter(None, troubles._of))) < MIB
    assert troubles.first == "trouble 0"
    assert troubles.end(b"0")
    assert troubles.first == "trouble 1"
    assert troubles.end(b"1" + b"x" * 100_000)
    assert not troubles.end(b"1")
    with pytest.raises(Unreadable, match=r"its key has 100,000 bytes"):
        decode_key(PlanKey, b"x" * 100_000)
