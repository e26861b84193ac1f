"""What the steps of a failover make of what was observed."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from strait.model import TopicAcl, TopicPartition
from strait.planning import failover, failover_groups, recovery_point
from strait.planning.consumer_groups import GroupOffset, GroupOnCluster, GroupStatus, OffsetState
from strait.planning.failover import Attached, Check, Member, Verdict, Writer
from strait.planning.recovery_point import LastWord
from strait.planning.status.rows import PartitionStatus
from strait.planning.waves import Wave
from strait.reasons import Reason
from strait.state.failover_records import MissingRecords
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Plan, PlannedTopic, TopicBound, TopicPolicy, Waiting
from strait.text import listed

ONE, TWO, THREE = (TopicPartition("t", number) for number in range(3))


def row(number: int, state: str = "caught_up", position: int = 100, reason: str = "") -> PartitionStatus:
    return PartitionStatus("t", number, "t", 0, state, reason, "", position, 100, 0, 0.0)


def group(
    name: str, state: OffsetState, fit: str = "exact", *, selected: bool = True, moved: bool = False, detail: str = ""
) -> GroupStatus:
    offset = GroupOffset("t", 0, 10, "t", 10, fit, 10, state, 0, detail)
    side = GroupOnCluster("classic", "Empty", "consumer")
    return GroupStatus(name, side, side, (offset,), selected=selected, moved=moved)


@pytest.mark.parametrize(
    ("rows", "stopped", "pending", "verdict", "word"),
    [
        ([row(0), row(1, "copying", 50)], False, [], Verdict.DONE, "2 partitions are copied"),
        ([row(0)], True, [], Verdict.FAILED, "strait start"),
        ([], False, [], Verdict.FAILED, "no plan"),
        ([row(0)], False, ["copies u"], Verdict.FAILED, "strait apply first, since the plan would change: copies u"),
        (
            [row(0), row(1, "waiting", 3, "paused")],
            False,
            [],
            Verdict.FAILED,
            "1 of 2 partitions are not copied: t-1 paused",
        ),
        ([row(0), row(1, "starting", -1)], False, [], Verdict.WAITING, "t-1 starting"),
        ([row(0), row(1, "waiting", 3, "slot_silent")], False, [], Verdict.FAILED, "t-1 slot_silent"),
        (
            [row(0, "waiting", 3, "paused"), row(1, "waiting", 3, "slot_silent")],
            False,
            [],
            Verdict.FAILED,
            "t-0 paused",
        ),
        (
            [row(0), replace(row(1, "waiting", reason="open_transaction"), held_back_records=7)],
            False,
            [],
            Verdict.WARNING,
            "open transactions hold records back in 1 of them: t-1 7",
        ),
    ],
)
def test_everything_must_be_copied_at_first(
    rows: list[PartitionStatus], stopped: bool, pending: list[str], verdict: Verdict, word: str
) -> None:
    check = failover.copying(rows, stopped=stopped, pending=pending)
    assert check.verdict is verdict
    assert word in check.detail


def test_topics_that_a_rule_transforms_are_named_since_their_copies_are_no_replacement() -> None:
    names = ["users", "customers"]
    refused, accepted = (failover.transformed(names, "b", accept=accept) for accept in (False, True))
    assert (refused.verdict, accepted.verdict) == (Verdict.FAILED, Verdict.WARNING)
    assert accepted.detail == "b has only what a rule's `transform` makes of customers, users"
    assert refused.detail.startswith(accepted.detail) and "--accept-transformed goes on" in refused.detail


def test_an_offset_that_several_routes_lack_is_missing_once() -> None:
    def lacks(topic: str, first: int, end: int, partition: int = 0) -> MissingRecords:
        return MissingRecords(topic=topic, partition=partition, from_offset=first, to_offset=end)

    routes = [lacks("orders→big", 10, 20), lacks("orders→rest", 5, 12), lacks("orders→more", 18, 25)]
    for order in permutations(routes):
        assert failover.records(order) == 20, "offsets 5 to 24"
    others = [lacks("orders→rest", 5, 12, 1), lacks("pay", 0, 5), lacks("pay", 7, 9)]
    assert failover.records([*routes, *others]) == 34


def test_of_a_wave_only_its_topics_must_be_copied() -> None:
    def copying(rows: list[PartitionStatus], **how: object) -> Check:
        return failover.copying(rows, stopped=False, pending=[], **how)  # type: ignore[arg-type]

    nothing = copying([], wave=Wave(("orders.*",)), moved={"orders1", "pay"})
    assert nothing == (
        Verdict.FAILED,
        "the link copies no topic for a wave of orders.* but those moved before: orders1",
    )
    assert copying([], wave=Wave(("x",))).detail == "the link copies no topic for a wave of x"
    assert copying([], moved={"t"}) == (Verdict.DONE, "waves have moved all that the link copies: t")


def test_a_silent_slot_is_waited_for_by_a_failover_alone() -> None:
    silent, paused = row(0, "waiting", 3, "slot_silent"), row(1, "waiting", 3, "paused")
    assert failover.copying([silent], stopped=False, pending=[], patient=True).verdict is Verdict.WAITING
    assert failover.copying([silent, paused], stopped=False, pending=[], patient=True).verdict is Verdict.FAILED


def test_a_log_that_changes_or_holds_an_open_transaction_still_has_producers() -> None:
    ends = {ONE: 10, TWO: 20}
    assert failover.still(ends, ends, {}, 0).verdict is Verdict.DONE
    grown = failover.still(ends, ends | {TWO: 25}, {TWO: [Writer(7, 4_000, -1), Writer(8, 9_000, -1)]}, 10_000)
    assert grown == Check(
        Verdict.WAITING, "producers still write to 1 partition: t-1 by 5 (producer id 8, last record 1 s old)"
    )
    assert failover.still(ends, ends | {TWO: 19}, {}, 0).verdict is Verdict.WAITING  # cut off: not still either
    assert failover.still({ONE: 10}, ends, {}, 0).verdict is Verdict.WAITING  # a partition that came meanwhile
    opened = failover.still(ends, ends, {ONE: [Writer(7, 0, 8)], TWO: [Writer(8, 0, -1)]}, 0)
    assert opened == Check(Verdict.WAITING, "1 transaction is open: t-0 from offset 8 by producer id 7")


def test_a_partition_that_nobody_plans_is_not_drained() -> None:
    ends = {ONE: 100, TWO: 100}
    assert failover.drained([row(0), row(1)], ends).verdict is Verdict.DONE
    assert "t-1 (not planned)" in failover.drained([row(0)], ends).detail
    behind = failover.drained([row(0), row(1, "copying", 40)], ends)
    assert behind == Check(Verdict.WAITING, "1 of 2 partitions are not drained: t-1 60 offsets behind (copying)")
    assert failover.drained([row(0), row(1, "starting", -1)], ends).verdict is Verdict.WAITING
    assert failover.drained([], {}).verdict is Verdict.DONE


def test_consumers_that_are_attached_are_named() -> None:
    assert failover.attached(Attached({}, {})).verdict is Verdict.DONE
    found = failover.attached(Attached({"g": [Member("app-1", "/10.0.0.5")], "h": []}, {"h": "it rebalances"}))
    text = "2 groups have members on the source: g: app-1 at 10.0.0.5, h: ? (it rebalances)"
    assert found == Check(Verdict.WAITING, text)


def test_groups_that_would_not_continue_exactly_stop_it_unless_that_is_accepted() -> None:
    exact, moved = group("a", OffsetState.IN_SYNC), group("b", OffsetState.DESTINATION_AHEAD, moved=True)
    inexact, left = group("c", OffsetState.IN_SYNC, "inexact"), group("d", OffsetState.BEHIND, selected=False)
    assert failover_groups.groups([exact, left], accept=()) == Check(
        Verdict.DONE, "1 of 1 group continues exactly where it stopped"
    )
    assert failover_groups.groups([exact, moved], accept=()).verdict is Verdict.WARNING
    check = failover_groups.groups([exact, moved, inexact], accept=())
    assert check.verdict is Verdict.FAILED
    assert "1 of 3" in check.detail
    assert "1 have moved before: b; not exactly: c (1 in sync; inexact)" in check.detail
    for accept, verdict in (("c", Verdict.WARNING), ("*", Verdict.WARNING), ("d", Verdict.FAILED)):
        assert failover_groups.groups([inexact], accept=(accept,)).verdict is verdict
    held = failover_groups.groups(
        [group("e", OffsetState.HELD_MOVED)], accept=()
    )  # it would read again what it has read
    assert held.verdict is Verdict.FAILED
    assert "--include-moved" in held.detail
    for state, verdict in ((OffsetState.BEHIND, Verdict.DONE), (OffsetState.HELD_SHARED, Verdict.FAILED)):
        assert failover_groups.groups([group("f", state)], accept=(), soon=True).verdict is verdict
    for fit in ("deleted", "before_start", "inexact"):  # draining and committing does not make them exact
        assert (
            failover_groups.groups([group("g", OffsetState.BEHIND, fit)], accept=(), soon=True).verdict
            is Verdict.FAILED
        )


def test_a_later_offset_of_a_group_that_never_came_is_named_and_not_called_moved() -> None:
    check = failover_groups.groups([group("b", OffsetState.DESTINATION_AHEAD)], accept=())
    assert check.verdict is Verdict.FAILED
    assert "b in t-0 at 10 instead of 10" in check.detail
    assert "--accept-inexact b" in check.detail


def test_why_an_offset_was_refused_is_told() -> None:
    refused = group("b", OffsetState.REFUSED, detail="GROUP_AUTHORIZATION_FAILED")
    assert "b (1 refused (GROUP_AUTHORIZATION_FAILED))" in failover_groups.groups([refused], accept=()).detail


def test_missing_is_what_the_source_was_seen_to_hold_beyond_the_copy() -> None:
    found = recovery_point.missing({ONE: 90, TWO: -1}, {ONE: 100, TWO: 50})
    assert found == (MissingRecords(topic="t", partition=0, from_offset=90, to_offset=100),)
    assert recovery_point.missing({ONE: 100}, {ONE: 100}) == ()
    check = recovery_point.lost(found, {ONE: LastWord(90, 100, 1_000, 0.0), TWO: LastWord()}, 3_000)
    assert check.verdict is Verdict.WARNING
    assert check.detail.startswith(
        "1 of 2 partitions were not being copied: t-1 (nothing is known; how far is not known)"
    )
    assert "at least 10 offsets of 1 partition are known to be missing: t-0 from 90 to 99" in check.detail


def report(at_ms: int, position: int, end: int, **held: int) -> Report:
    row = PartitionReport(
        topic="t",
        partition=0,
        state="copying",
        position=position,
        end=end,
        lag_records=0,
        lag_seconds=0.0,
        records=0,
        bytes=0,
        **held,
    )
    facts = dict.fromkeys(("slot", "part", "started_at_ms", "plan_version", "pid", "conflicts", "recoveries"), 0)
    facts |= {"parts": 1, "memory_bytes": 0, "at_ms": at_ms}
    texts = dict.fromkeys(("link", "group", "application", "strait_version", "host"), "x")
    rates = dict.fromkeys(("cpu_seconds", "records_per_second", "bytes_per_second"), 0.0)
    return Report.model_validate(
        facts | texts | rates | {"latency_ms_p50": None, "latency_ms_p99": None, "partitions": (row,)}
    )


def test_what_an_open_transaction_held_back_is_missing_too() -> None:
    plan = Plan(
        link="l",
        group="default",
        version=1,
        producer_id=1,
        slots=1,
        topics=(PlannedTopic(source="t", destination="t", source_id="s", destination_id="d", slots=(0,)),),
        published_at_ms=0,
    )
    said = report(10_000, 50, 50, held_back_records=7, held_since_ms=4_000)
    read = recovery_point.LastWordsRead({"default": plan})
    read.take(said)
    assert read.words == {ONE: LastWord(50, 57, 10_000, 6.0)}
    (lost,) = recovery_point.missing({ONE: read.words[ONE].position}, {ONE: read.words[ONE].end})
    assert (lost.from_offset, lost.to_offset) == (50, 57)
    assert recovery_point.rpo_seconds(read.words, 12_000) == 8.0


def test_an_application_that_was_started_since_does_not_hide_what_was_known() -> None:
    topic = PlannedTopic(source="t", destination="t", source_id="i", destination_id="j", slots=(0, 0))
    plan = Plan(link="x", group="x", version=1, producer_id=1, slots=1, topics=(topic,), published_at_ms=0)
    said = [report(3_000, 500, -1), report(1_000, 480, 990), report(2_000, 490, 1_000)]
    for order in permutations(said):
        read = recovery_point.LastWordsRead({"x": plan})
        for one in order:
            read.take(one)
        assert read.words == {ONE: LastWord(500, 1_000, 3_000, 0.0), TWO: LastWord()}
        assert [word.known for word in read.words.values()] == [True, False]


@pytest.mark.parametrize(
    ("waits", "left_out"),
    [
        ([("u", (0, 1), "destination_deleted")], {"u-0": "destination_deleted", "u-1": "destination_deleted"}),
        ([("u", (), "awaiting_approval")], {"u-0": "awaiting_approval"}),
        ([("t", (1,), "destination_has_fewer_partitions")], {"t-1": "destination_has_fewer_partitions"}),
        ([("u", (), "source_missing")], {}),
    ],
)
def test_a_selected_topic_that_is_not_planned_is_not_said_to_be_there(waits: Any, left_out: Any) -> None:
    topic = PlannedTopic(source="t", destination="t", source_id="i", destination_id="j", slots=(0,))
    waiting = tuple(Waiting(topic=name, partitions=numbers, reason=why, detail="") for name, numbers, why in waits)
    facts: Any = {"link": "x", "group": "x", "version": 1, "producer_id": 1, "slots": 1, "published_at_ms": 0}
    read = recovery_point.LastWordsRead({"x": Plan(**facts, topics=(topic,), waiting=waiting)})
    read.take(report(3_000, 500, 500))
    assert read.complete, "no older reports are read for a topic that was never copied"
    assert {str(place): why for place, why in recovery_point.not_copied(read.words).items()} == left_out
    assert recovery_point.rpo_records(read.words, ()) == (None if left_out else 0)


def test_how_old_the_newest_record_may_be_is_not_guessed() -> None:
    fresh, lagging = LastWord(100, 100, 155_000, 0.0), LastWord(90, 100, 158_000, 7.0)
    undated = LastWord(90, 100, 158_000, None)
    for words, seconds, number in (
        ((fresh,), 5.0, 0),
        ((fresh, lagging), 9.0, 10),
        ((fresh, LastWord()), None, None),
        ((fresh, undated), None, 10),
        ((fresh, fresh._replace(waiting="paused")), 5.0, None),
        ((fresh, fresh._replace(seen_ms=90_000)), 70.0, None),  # silent for longer than a minute
    ):
        both = dict(zip((ONE, TWO), words, strict=False))
        found = recovery_point.missing(
            {place: word.position for place, word in both.items()}, {place: word.end for place, word in both.items()}
        )
        assert recovery_point.rpo_seconds(both, 160_000) == seconds
        assert recovery_point.rpo_records(both, found) == number


def test_a_partition_that_waits_is_as_it_was_when_it_was_read_last() -> None:
    """That the source is away, as all are told once it is lost, changes nothing; a pause or a halt does."""
    topic = PlannedTopic(source="t", destination="t", source_id="i", destination_id="j", slots=(0, None))
    paused = Waiting(topic="t", partitions=(1,), reason=Reason.PAUSED, detail="")
    plan = Plan(
        link="x",
        group="x",
        version=1,
        producer_id=1,
        slots=1,
        topics=(topic,),
        waiting=(paused,),
        published_at_ms=0,
    )

    def words(*said: tuple[int, str, str | None]) -> dict[TopicPartition, LastWord]:
        read = recovery_point.LastWordsRead({"x": plan})
        for at_ms, state, reason in said:
            whole = report(at_ms, 90, 100)
            rows = tuple(
                row.model_copy(update={"state": state, "reason": reason, "lag_records": 10, "lag_seconds": 1.0})
                for row in whole.partitions
            )
            read.take(whole.model_copy(update={"partitions": rows}))
        return dict(read.words)

    read_last = LastWord(90, 100, 1_000, 1.0)
    away = words((1_000, "copying", None), (9_000, "waiting", "source_unreachable"))
    assert away == {ONE: read_last, TWO: LastWord(waiting="paused")}
    halted = words((9_000, "waiting", "foreign_writer"), (1_000, "copying", None))
    assert halted[ONE] == read_last._replace(waiting="foreign_writer")
    detail = recovery_point.lost((), halted, 11_000).detail
    assert detail.startswith(
        "2 of 2 partitions were not being copied: t-0 (foreign_writer; copied until 11 s before), t-1 (paused; "
    )


def test_the_tail_of_the_other_direction_is_waited_for_if_that_link_runs() -> None:
    found = (MissingRecords(topic="t", partition=0, from_offset=90, to_offset=100),)
    assert failover.tail("a-to-b", (), stopped=True, accept=False).verdict is Verdict.DONE
    assert failover.tail("a-to-b", found, stopped=False, accept=False).verdict is Verdict.WAITING
    assert failover.tail("a-to-b", found, stopped=True, accept=True).verdict is Verdict.WARNING
    refused = failover.tail("a-to-b", found, stopped=True, accept=False)
    assert refused.verdict is Verdict.FAILED
    assert "10 offsets: t-0 from 90 to 99; strait start a-to-b copies them" in refused.detail


def test_long_lists_say_how_much_more_there_is() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(number) for number in range(1_205)]) == "0, 1, 2, 3, 4 and 1,200 more"


def test_a_topic_without_an_allow_rule_is_open_to_all_where_the_cluster_says_so() -> None:
    def rule(name: str, permission: str = "ALLOW", pattern: str = "LITERAL") -> TopicAcl:
        return TopicAcl(name, pattern, "User:x", "*", "READ", permission)

    topics = {"orders", "other", "pay.eu"}
    assert failover.open_topics(topics, [rule("orders"), rule("other", "DENY"), rule("pay.", pattern="PREFIXED")]) == [
        "other"
    ]
    assert failover.open_topics(topics, [rule("*")]) == []
    assert failover.fence_for_all(["other"]).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("rereads", "said"),
    [(0, "1 have moved before: b"), (70, "b (reads 70 records twice)"), (None, "b (may read records twice")],
)
def test_what_a_group_reads_twice_is_said(rereads: int | None, said: str) -> None:
    status = group("b", OffsetState.DESTINATION_AHEAD, moved=True)
    row = replace(status.offsets[0], rereads=rereads)
    assert said in failover_groups.groups([replace(status, offsets=(row,))], accept=()).detail


def test_records_after_the_end_of_a_copy_are_not_missing() -> None:
    policy = TopicPolicy(until="latest", ends=(60, 40))
    topic = PlannedTopic(source="t", destination="t", source_id="i", destination_id="j", policy=policy, slots=(0, None))
    waits = Waiting(topic="t", partitions=(1,), reason=Reason.FINISHED, detail="")
    bound = TopicBound(topic="t", source_id="i", until="latest", ends=(60, 40), finished=(1,))
    facts = {"link": "x", "group": "x", "version": 1, "producer_id": 1, "slots": 1, "published_at_ms": 0}
    read = recovery_point.LastWordsRead({"x": Plan(**facts, topics=(topic,), waiting=(waits,), bounds=(bound,))})
    assert not read.complete and read.open == {ONE}
    read.take(report(1_000, 50, 5_000, held_back_records=7))
    words = read.words
    assert (
        read.complete and words[ONE] == LastWord(50, 60, 1_000, 0.0, until=60) and words[TWO] == LastWord.finished(40)
    )
    found = recovery_point.missing(
        {place: word.position for place, word in words.items()}, {place: word.end for place, word in words.items()}
    )
    assert [(item.partition, item.from_offset, item.to_offset) for item in found] == [(0, 50, 60)]
    assert recovery_point.not_copied(words) == {} and recovery_point.rpo_records(words, found) == 10
    assert recovery_point.rpo_seconds(words, 3_000) == 2.0
    assert recovery_point.wanted({ONE: 90, TWO: 90, THREE: 90}, words) == {ONE: 60, TWO: 40, THREE: 90}


def test_a_copy_that_has_ended_is_named_as_such() -> None:
    check = failover.copying([row(0), row(1, reason="finished")], stopped=False, pending=[])
    assert check.verdict is Verdict.DONE
    assert "2 partitions are copied" in check.detail and "1 only up to their `until`" in check.detail
