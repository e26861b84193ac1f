"""Records that somebody else has written into a state topic: they change nothing, whatever is in them, and no reader
fails or works for long because of them."""

import base64
import contextlib
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strait.planning.status.status import status_of
from strait.state.codec import AnyValue, Unreadable, decode, encode
from strait.state.group_sync_records import GroupSyncReport
from strait.state.offset_map import Gap, gaps_of, pack
from strait.state.packed_gaps import MOST_GAPS
from strait.state.report_changes import FailureReport, HistoryPoint, ReportChanges, TrafficReport
from strait.state.report_records import PartitionReport, Report, ZoneTraffic
from strait.state.schema import Loss, OffsetMapping, Pause, Plan, PlannedTopic, Registration, Waiting
from strait.state.view import Kind, Place, StateView
from support.model.reports import plain_report, plain_run

ROW = PartitionReport(
    topic="t", partition=0, state="copying", position=1, end=2, lag_records=1, lag_seconds=1.0, records=1, bytes=1
)
PLAN = Plan(
    link="l",
    group="default",
    version=1,
    producer_id=1,
    slots=1,
    topics=(PlannedTopic(source="t", destination="t", source_id="s", destination_id="d", slots=(0, None)),),
    waiting=(Waiting(topic="t", partitions=(1,), reason="paused", detail="by somebody"),),
    pauses=(Pause(topic="t", partition=1, by="somebody", at_ms=1),),
    published_at_ms=1,
)
RUN = plain_run(gaps=pack([Gap(5, 7)], sequence_base=0, source_base=0))
LOSS = Loss(
    link="l", topic="t", partition=0, side="source", cause="source_truncated", from_offset=0, to_offset=1, at_ms=1,
    action="continued", detail="",
)  # fmt: skip
GROUPS = GroupSyncReport(
    link="l", application="1", at_ms=1, seconds=0.1, interval_seconds=5, groups=1, in_sync=1, offsets={"in_sync": 1},
    committed=0, rereads=0,
)  # fmt: skip
CHANGES = ReportChanges(group="default", slot=0, application="1", at_ms=1, started_at_ms=1, partitions=(ROW,))
TRAFFIC = TrafficReport(
    group="default", slot=0, application="1", at_ms=1, started_at_ms=1,
    traffic=(ZoneTraffic(cluster="source", from_zone="a", to_zone="b", bytes=1),),
)  # fmt: skip
FAILURE = FailureReport(
    group="default", slot=0, application="1", at_ms=1, failure="ValueError: poisoned", restart_seconds=1.0
)
GOOD: list[tuple[Kind, AnyValue]] = [
    ("plan", PLAN),
    ("map", RUN),
    ("reports", plain_report(partitions=(ROW,))),
    ("reports", CHANGES),
    ("reports", TRAFFIC),
    ("reports", FAILURE),
    ("reports", GROUPS),
    ("losses", LOSS),
]
OTHERS: list[AnyValue] = [
    HistoryPoint(group="default", slot=0, span="minute", at_ms=1, seconds=1.0),
    Registration(producer_id=1, link="l", source="s", destination="d"),
]
DEEP = b"[" * 200_000
HOSTILE = [
    b"",
    b"\0",
    b"\xff\xfe",
    DEEP,
    b'{"v":' + DEEP,
    b'{"v":1,"link":' + DEEP,
    b'{"v":1' + b"0" * 5000 + b"}",
    b'{"v":NaN}',
    b'{"v":"' + b"x" * 100_000 + b'"}',
    b'{"v":1,"' + b"k" * 100_000 + b'":1}',
    b'"\\ud800"',
    b"null",
    b"[]",
]
numbers = st.one_of(
    st.integers(min_value=-(1 << 80), max_value=1 << 80),
    st.sampled_from([10**4000, 1 << 63, -(1 << 63) - 1, (1 << 63) - 1, 253_402_300_800_000]),
    st.floats(),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, st.text(), st.just("x" * 10_000), st.just("\x1b]0;pwned\x07"))
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


def looked_at(view: StateView) -> None:
    """All that is done with a view where something fails if a number or a time cannot be what it says."""
    for group, plan in view.plans.items():
        status = status_of("l", group, plan, view.reports, 1_000_000)
        json.dumps(status.as_data())
        datetime.fromtimestamp(plan.published_at_ms / 1000, UTC)
        for pause in plan.pauses:
            datetime.fromtimestamp(pause.at_ms / 1000, UTC)
    for runs in view.runs.values():
        for run in runs:
            gaps_of(run)
    str(view.losses.newest), str(view.group_sync), view.trouble("plan", "map", "reports", "losses")


def taken(kind: Kind, key: bytes | None, value: bytes) -> StateView:
    view = StateView("l")
    for good_kind, good in GOOD:
        view.apply(good_kind, *encode(good), Place("topic", 0, 0))
    view.apply(kind, key, value, Place("topic", 0, 1))
    looked_at(view)
    return view


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*path, key))


def altered(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    head, *rest = path
    if isinstance(value, dict):
        return value | {head: altered(value[head], tuple(rest), new)}
    return [altered(each, tuple(rest), new) if at == head else each for at, each in enumerate(value)]


@pytest.mark.parametrize("raw", HOSTILE, ids=lambda raw: repr(raw[:12]))
def test_what_is_no_record_at_all_is_named_and_the_last_good_one_stays(raw: bytes) -> None:
    for kind, good in GOOD:
        key, _ = encode(good)
        view = taken(kind, key, raw)
        assert view.plans["default"] == PLAN
        assert view.runs["t", 0] == (RUN,)
        trouble = view.trouble("plan", "map", "reports", "losses")
        assert trouble is not None
        assert len(str(trouble)) < 1_000
        taken(kind, raw, raw)
        taken(kind, None, raw)


@given(st.sampled_from(GOOD), st.data())
def test_whatever_somebody_puts_in_the_place_of_a_value_no_reader_fails(good: tuple[Kind, AnyValue], data: Any) -> None:
    kind, value = good
    key, raw = encode(value)
    decoded = json.loads(raw)
    path = data.draw(st.sampled_from(list(places(decoded))))
    changed = json.dumps(altered(decoded, path, data.draw(values))).encode()
    taken(kind, key, changed)


@given(st.sampled_from([value for _, value in GOOD] + OTHERS), st.binary(max_size=100), st.integers(0, 200))
@example(RUN, b"\x80" * 20, 0)
def test_bytes_changed_anywhere_are_read_or_unreadable(value: AnyValue, noise: bytes, at: int) -> None:
    key, raw = encode(value)
    for one, other in ((key, raw[:at] + noise + raw[at + len(noise) :]), (noise, raw), (key, noise)):
        with contextlib.suppress(Unreadable):
            decode(type(value), one, other)


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


@pytest.mark.parametrize(
    "make",
    [
        lambda: RUN.model_copy(update={"gaps": packed(b"\xff" * 400_000 + b"\1")}),
        lambda: RUN.model_copy(update={"gaps": packed(b"\1" * (32 << 20))}),
        lambda: RUN.model_copy(update={"gaps": packed(b"\xff" * 8 + b"\x7f" + b"\1")}),
        lambda: RUN.model_copy(update={"gaps": packed((b"\xff" * 8 + b"\x7f") * 9)}),
        lambda: PLAN.model_copy(update={"slots": 10**6}),
        lambda: PLAN.model_copy(update={"slots": 10**18}),
        lambda: plain_report(partitions=(ROW,)).model_copy(update={"pid": 10**4000}),
    ],
    ids=["a long number", "many numbers", "beyond 63 bits", "a sum beyond 63 bits", "slots", "more slots", "digits"],
)
def test_a_small_record_costs_little(make: Callable[[], AnyValue]) -> None:
    value = make()
    key, raw = encode(value)
    kind: Kind = {OffsetMapping: "map", Plan: "plan", Report: "reports"}[type(value)]  # type: ignore[assignment]
    tracemalloc.start()
    began = time.process_time()
    view = taken(kind, key, raw)
    spent, (_, most) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert view.trouble(kind) is not None
    assert most < 16 << 20
    assert spent < 5, "not a bound but a sign: seconds are what it would take unbounded"


def test_a_plan_with_a_schema_that_cannot_be_read_leaves_the_last_one_in_force() -> None:
    avro = {"schema_text": '{"type": "record", "name": "A", "fields": []}', "schema_id": 1}
    topic = PLAN.topics[0].model_dump() | {"policy": {"transform": {"where": "true", "avro": avro}}}
    key, value = encode(Plan.model_validate_json(json.dumps(PLAN.model_dump() | {"topics": [topic]})))
    assert decode(Plan, key, value).transforms
    with pytest.raises(Unreadable):
        decode(Plan, key, value.replace(b"record", b"rekord"))


def test_a_run_holds_as_many_gaps_as_can_be_read_again_and_no_more() -> None:
    far = (1 << 62) // (2 * MOST_GAPS)
    gaps = [Gap(number * far, 2 * number * far) for number in range(1, MOST_GAPS + 1)]
    run = plain_run(gaps=pack(gaps, sequence_base=0, source_base=0))
    assert decode(OffsetMapping, *encode(run)) == run
    dense = [Gap(2 * number, 3 * number) for number in range(1, MOST_GAPS + 1)]
    run = plain_run(gaps=pack(dense, sequence_base=0, source_base=0))
    assert decode(OffsetMapping, *encode(run)) == run
    with pytest.raises(ValueError, match="could not be read"):
        pack([Gap(number << 20, number << 21) for number in range(1, 300_000)], sequence_base=0, source_base=0)


def test_nothing_that_is_told_moves_a_terminals_cursor() -> None:
    escape = "\x1b]0;title\x07\r\n\x1b[2J" + "x" * 5_000
    row = ROW.model_dump() | {"state": "waiting", "reason": "paused", "detail": escape}
    report = plain_report(partitions=(ROW,)).model_dump() | {"host": escape, "application": escape, "partitions": [row]}
    pause = PLAN.pauses[0].model_dump() | {"by": escape, "reason": escape}
    plan = PLAN.model_dump() | {"pauses": [pause]}
    view = StateView("l")
    for kind, value, model in (("plan", plan, Plan), ("reports", report, Report)):
        found = model.model_validate_json(json.dumps(value))
        assert view.apply(kind, *encode(found), Place("topic", 0, 0))  # type: ignore[arg-type, type-var]
    (status,) = (status_of("l", group, plan, view.reports, 1) for group, plan in view.plans.items())
    told = [view.plans["default"].pauses[0].reason, status.partitions[0].detail, status.slots[0].host]
    assert all(text.isprintable() and len(text) < 3_000 for text in told), told
