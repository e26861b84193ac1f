"""What becomes of a group's offsets on the destination: nothing is taken back, and nobody at work is disturbed."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from strait.config.links import Link
from strait.consumer_groups.checkpoints import Checkpoint, checkpoints_of
from strait.consumer_groups.commits import MARK, commits_of, in_sync, of_others
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed
from strait.planning.consumer_groups import (
    GroupOffset,
    GroupOnCluster,
    GroupStatus,
    OffsetState,
    can_move,
    status_of,
    written,
)
from strait.planning.group_reports import most_urgent, summary
from strait.planning.plan.group_sync import planned_sync
from strait.state.group_sync_records import GroupSyncReport
from strait.state.translation import Translation

COPY = TopicPartition("copy.t", 3)
CONSUMERS = GroupOnCluster("classic", "Stable", "consumer")
OFFSETS_ALONE = GroupOnCluster("classic", "Empty", "")
HAD_MEMBERS = GroupOnCluster("classic", "Empty", "consumer")


def translated(to_offset: int | None, fit: str = "exact", *, partition: int = 3, shared: bool = False) -> Translation:
    return Translation("t", partition, 100, COPY.topic, to_offset, fit, shared=shared)


def status(
    to_offset: int | None,
    present: int | None,
    *,
    there: GroupOnCluster = OFFSETS_ALONE,
    fit: str = "exact",
    shared: bool = False,
    own: bool = False,
    include_moved: bool = False,
) -> GroupStatus:
    found = translated(to_offset, fit, shared=shared)
    committed = {} if present is None else {COPY: present}
    return status_of(
        *("g", CONSUMERS, there, [found], committed),
        own={COPY} if own else (),
        include_moved=include_moved,
    )


def only(found: GroupStatus) -> GroupOffset:
    (row,) = found.offsets
    return row


@pytest.mark.parametrize("there", [OFFSETS_ALONE, GroupOnCluster(), GroupOnCluster("classic", "Dead", "")])
@pytest.mark.parametrize(
    ("to_offset", "present", "fit", "state", "writes", "rereads"),
    [
        (90, None, "exact", OffsetState.BEHIND, True, None),
        (90, 80, "exact", OffsetState.BEHIND, True, 10),
        (90, 90, "exact", OffsetState.IN_SYNC, False, 0),
        (90, 91, "exact", OffsetState.DESTINATION_AHEAD, False, 0),
        (90, 91, "ahead", OffsetState.DESTINATION_AHEAD, False, None),
        (90, 80, "ahead", OffsetState.AHEAD_OF_COPY, True, None),
        (90, 90, "ahead", OffsetState.AHEAD_OF_COPY, False, None),
        (90, 80, "inexact", OffsetState.BEHIND, True, None),
        (0, None, "exact", OffsetState.BEHIND, True, None),
        (None, None, "not_replicated", OffsetState.NOT_REPLICATED, False, None),
        (None, 80, "unknown", OffsetState.UNKNOWN, False, None),
    ],
)
def test_an_offset_is_written_only_forward(
    to_offset: int | None,
    present: int | None,
    fit: str,
    state: OffsetState,
    writes: bool,
    rereads: int | None,
    there: GroupOnCluster,
) -> None:
    row = only(status(to_offset, present, fit=fit, there=there))
    assert (row.state, row.to_write, row.rereads) == (state, writes, rereads)
    assert row.target == COPY


@pytest.mark.parametrize("word", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_nothing_is_written_while_the_group_has_members_there(word: str) -> None:
    row = only(status(90, 80, there=GroupOnCluster("consumer", word, "consumer"), include_moved=True))
    assert (row.state, row.to_write) == (OffsetState.HELD_ACTIVE, False)
    row = only(status(90, 90, there=GroupOnCluster("consumer", word, "consumer")))
    assert row.state is OffsetState.IN_SYNC


def test_of_a_group_that_has_moved_nothing_is_written() -> None:
    """Not forward either: it would skip what the group has yet to consume where it is now."""
    exact = [translated(90, "ahead" if number == 3 else "exact", partition=number) for number in range(4)]
    there = {TopicPartition(COPY.topic, number): offset for number, offset in enumerate((80, 90, 95, 80))}
    found = status_of("g", CONSUMERS, OFFSETS_ALONE, exact, there)
    assert [row.state for row in found.offsets] == [
        OffsetState.HELD_MOVED, OffsetState.IN_SYNC, OffsetState.DESTINATION_AHEAD, OffsetState.HELD_MOVED
    ]  # fmt: skip
    assert not any(row.to_write for row in found.offsets)
    too_early = [*exact[:2], translated(90, "inexact", partition=2), exact[3]]
    found = status_of("g", CONSUMERS, OFFSETS_ALONE, too_early, there)
    assert [row.to_write for row in found.offsets] == [True, False, False, True]  # what is further may be our own


def test_a_group_that_had_members_there_may_have_been_set_back_on_purpose() -> None:
    for moved in (
        status(90, 80, there=HAD_MEMBERS),
        status(90, None, there=GroupOnCluster("consumer", "Empty", "consumer")),
        status(90, 80, own=True),  # by a consumer that is nobody's member
    ):
        assert (only(moved).state, only(moved).to_write) == (OffsetState.HELD_MOVED, False)
    assert only(status(90, 80, there=HAD_MEMBERS, include_moved=True)).to_write
    assert not only(status(90, 91, there=HAD_MEMBERS, include_moved=True)).to_write


def test_among_records_of_others_nothing_is_written() -> None:
    """They may be such as the group has yet to consume on the source, under this very topic's name."""
    for present in (None, 80, 90, 95):
        for to_offset, fit in ((90, "exact"), (None, "unknown")):
            row = only(status(to_offset, present, fit=fit, shared=True, include_moved=True))
            assert (row.state, row.to_write) == (OffsetState.HELD_SHARED, False)


def test_records_that_interleave_differently_count_as_read_again() -> None:
    found = Translation("t", 3, 100, COPY.topic, 90, "overlap", rereads=7)
    for present, state, rereads in (
        (80, OffsetState.BEHIND, 17),
        (90, OffsetState.IN_SYNC, 7),
        (91, OffsetState.DESTINATION_AHEAD, None),
    ):
        status = status_of("g", CONSUMERS, OFFSETS_ALONE, [found], {COPY: present})
        assert (only(status).state, status.rereads, status.synced) == (state, rereads, False)
        assert status.at_rest is (state is not OffsetState.BEHIND)
    assert written(status_of("g", CONSUMERS, OFFSETS_ALONE, [found], {}), {}).rereads == 7


def test_what_was_written_is_in_sync_and_what_was_refused_says_so() -> None:
    before = status(90, 80)
    assert not before.synced
    assert before.rereads == 10
    after = written(before, {})
    assert after.synced
    assert (after.rereads, after.offsets[0].committed) == (0, 90)
    held = written(before, {COPY: (OffsetState.HELD_ACTIVE, "a member joined")})
    assert not held.synced
    assert not held.refused
    assert held.rereads == 10
    assert written(before, {COPY: (OffsetState.REFUSED, "no")}).refused
    clamped = written(status(90, None, fit="ahead"), {})
    assert not clamped.synced  # some of it would be consumed again
    assert clamped.states == [(OffsetState.AHEAD_OF_COPY, 1)]


@pytest.mark.parametrize("fit", ["inexact", "before_start", "deleted", "ahead"])
def test_what_is_not_exact_is_not_called_synced(fit: str) -> None:
    assert status(90, 90).synced
    assert not status(90, 90, fit=fit).synced
    assert not written(status(90, 80, fit=fit), {}).synced


def test_what_cannot_be_known_is_not_called_synced() -> None:
    assert not status(None, None, fit="not_replicated").synced
    nothing = status_of("g", CONSUMERS, GroupOnCluster(), [], {})
    assert (nothing.synced, nothing.note) == (False, "has committed no offset for the link's topics")
    same_name = status_of("g", CONSUMERS, GroupOnCluster("share", "Empty", "share"), [], {})
    assert "share group" in same_name.note
    refused = GroupStatus("g", CONSUMERS, OFFSETS_ALONE, refusal="no right")
    assert (refused.synced, refused.refused, refused.rereads, refused.note) == (False, True, None, "no right")


SHARE = GroupOnCluster("share", "Empty", "share")


def test_of_a_share_group_the_start_is_written_and_the_rest_is_not_known() -> None:
    here = GroupOnCluster("share", "Stable", "share")
    for there in (GroupOnCluster(), SHARE):
        found = status_of("g", here, there, [translated(90)], {COPY: 80} if there.kind else {})
        assert (only(found).state, only(found).to_write, found.rereads) == (OffsetState.BEHIND, True, None)
        assert only(found).detail.startswith("share group's start only")
        after = written(found, {})
        assert (after.synced, after.rereads, only(after).rereads) == (True, None, None)
    clamped = only(status_of("g", here, GroupOnCluster(), [translated(90, "ahead")], {}))
    assert (clamped.state, clamped.to_write) == (OffsetState.AHEAD_OF_COPY, True)


@pytest.mark.parametrize(
    ("there", "present", "own", "state"),
    [
        (GroupOnCluster("share", "Stable", "share"), 80, False, OffsetState.HELD_ACTIVE),
        (SHARE, 95, False, OffsetState.DESTINATION_AHEAD),
        (SHARE, 80, True, OffsetState.HELD_MOVED),
    ],
)
def test_a_share_group_at_work_or_moved_is_left_alone(
    there: GroupOnCluster, present: int, own: bool, state: OffsetState
) -> None:
    found = status_of("g", SHARE, there, [translated(90)], {COPY: present}, own={COPY} if own else ())
    assert (only(found).state, only(found).to_write) == (state, False)


def test_groups_of_one_name_and_two_kinds_are_left_alone() -> None:
    for here, there in ((SHARE, OFFSETS_ALONE), (SHARE, HAD_MEMBERS), (CONSUMERS, SHARE)):
        found = status_of("g", here, there, [translated(90)], {})
        assert "share group" in found.note
        assert written(found, {}) is found


@pytest.mark.parametrize(
    ("side", "movable"),
    [
        (CONSUMERS, True),
        (GroupOnCluster("classic", "Empty", ""), True),
        (GroupOnCluster("consumer", "Stable", "consumer"), True),
        (GroupOnCluster("streams", "Stable", "streams"), True),
        (GroupOnCluster("share", "Stable", "share"), True),
        (GroupOnCluster("classic", "Stable", "connect"), False),
        (GroupOnCluster("classic", "Stable", "sr"), False),
    ],
)
def test_only_groups_of_consumers_are_moved(side: GroupOnCluster, movable: bool) -> None:
    assert can_move("billing", side) is movable
    assert not can_move("strait.a-to-b.rehearsal.billing", side)


@pytest.mark.parametrize(
    "there", [OFFSETS_ALONE, GroupOnCluster(), HAD_MEMBERS, GroupOnCluster("consumer", "Stable", "consumer")]
)
def test_whatever_the_group_does_there_what_translates_exactly_has_a_checkpoint(there: GroupOnCluster) -> None:
    for present in (None, 80, 90, 95):
        assert checkpoints_of(status(90, present, there=there)) == [Checkpoint("g", COPY, 100, 90)]


@pytest.mark.parametrize("fit", ["ahead", "before_start", "inexact", "deleted", "not_replicated", "unknown"])
def test_what_does_not_translate_exactly_has_no_checkpoint(fit: str) -> None:
    assert checkpoints_of(status(90, None, fit=fit)) == []
    assert checkpoints_of(status(None, None, fit=fit)) == []


def test_where_a_group_would_skip_records_there_is_no_checkpoint() -> None:
    assert checkpoints_of(status(90, None, shared=True)) == []
    assert checkpoints_of(status_of("g", SHARE, GroupOnCluster(), [translated(90)], {})) == []


@pytest.mark.parametrize(
    ("naming", "checkpoints", "offset_syncs"),
    [
        ({}, "a.checkpoints.internal", "mm2-offset-syncs.a.internal"),
        ({"policy": "alias"}, "a.checkpoints.internal", "mm2-offset-syncs.a.internal"),
        ({"policy": "alias", "alias": "eu"}, "eu.checkpoints.internal", "mm2-offset-syncs.eu.internal"),
        ({"policy": "alias", "separator": "_"}, "a_checkpoints_internal", "mm2-offset-syncs_a_internal"),
    ],
)
def test_checkpoints_are_where_mirror_maker_2s_clients_look(
    naming: dict[str, str], checkpoints: str, offset_syncs: str
) -> None:
    def link(**groups: bool) -> Link:
        block = {"source": "a", "destination": "b", "topics": {"include": ["t"]}, "naming": naming}
        return Link.model_validate(block | {"consumer_groups": groups}, strict=False)

    planned = planned_sync(link(mm2_checkpoints=True))
    assert planned is not None
    assert (planned.checkpoints_topic, planned.offset_syncs_topic) == (checkpoints, offset_syncs)
    without = planned_sync(link())
    assert without is not None
    assert (without.checkpoints_topic, without.offset_syncs_topic) == ("", "")
    with pytest.raises(ValueError, match="needs `sync`"):
        link(mm2_checkpoints=True, sync=False)


def test_the_groups_that_need_a_person_most_are_named_first_and_not_all() -> None:
    def named(name: str, **how: Any) -> GroupStatus:
        return replace(status(100, **how), group=name)

    behind = [named(f"behind-{number:02}", present=90) for number in range(30)]
    found = most_urgent([*behind, named("moved", present=90, there=HAD_MEMBERS), named("ahead", present=110)])
    assert [one.group for one in found][:3] == ["moved", "ahead", "behind-00"]
    assert [one.why for one in found][:3] == [
        "1 moved there; 10 re-reads",
        "1 later offset there",
        "1 behind; 10 re-reads",
    ]
    assert len(found) == 20


def test_the_last_look_at_the_groups_is_a_line() -> None:
    figures = {"seconds": 0.1, "interval_seconds": 5, "groups": 0, "in_sync": 0, "committed": 0, "rereads": 0}
    looked = GroupSyncReport.model_validate({"link": "l", "application": "a", "at_ms": 1_000, "offsets": {}, **figures})
    assert summary(looked, 3_000) == "consumer groups: none has committed an offset; looked 2.0 s ago"
    found = looked.model_copy(update={"groups": 2, "in_sync": 1, "offsets": {"ahead_of_copy": 3}})
    text = "consumer groups: 1 of 2 in sync; offsets: 3 ahead of the copy; looked 2.0 s ago"
    assert summary(found, 3_000) == text


def test_a_group_is_described_in_words_and_says_nothing_twice() -> None:
    assert status(100, 90, fit="ahead").why == "1 ahead of the copy"
    assert status(100, 90, fit="before_start").why.startswith("1 behind; before start")
    assert status(None, None, fit="not_replicated").why == "1 not replicated"


def test_only_what_the_link_wrote_goes_back_with_a_group_that_never_came() -> None:
    def back(
        ours: int | None, there: GroupOnCluster = OFFSETS_ALONE, fit: str = "exact", **settings: Any
    ) -> GroupOffset:
        own = settings.get("own", ())
        known = {} if ours is None else {COPY: ours}
        return only(status_of("g", CONSUMERS, there, [translated(20, fit)], {COPY: 200}, own=own, ours=known))

    row = back(200)
    assert (row.state, row.to_write) == (OffsetState.REWOUND, True)
    group = status_of("g", CONSUMERS, OFFSETS_ALONE, [translated(20, "exact")], {COPY: 200}, ours={COPY: 200})
    assert only(written(group, {})).state is OffsetState.IN_SYNC
    for other in (
        back(None),
        back(199),  # somebody has set it since
        back(200, HAD_MEMBERS),
        back(200, fit="inexact"),
        back(200, own={COPY}),
        back(200, GroupOnCluster("consumer", "Stable", "consumer")),
    ):
        assert (other.state, other.to_write) == (OffsetState.DESTINATION_AHEAD, False)


@pytest.mark.parametrize("fit", ["exact", "ahead", "inexact"])
def test_an_offset_that_somebody_else_committed_is_left_alone_until_it_is_taken_over(fit: str) -> None:
    def found(present: int, there: GroupOnCluster = OFFSETS_ALONE, **how: Any) -> GroupOffset:
        committed = {COPY: present}
        return only(status_of("g", CONSUMERS, there, [translated(90, fit)], committed, others={COPY}, **how))

    held = found(80)
    assert (held.state, held.to_write) == (OffsetState.HELD_OWN, False)
    assert found(80, ours={COPY: 80}).state is OffsetState.HELD_OWN  # it was in sync as well before
    assert found(80, include_moved=True).state is OffsetState.HELD_OWN
    assert found(80, HAD_MEMBERS).state is OffsetState.HELD_MOVED
    assert found(80, take_over=True).to_write
    assert not found(80, HAD_MEMBERS, take_over=True).to_write
    assert not found(80, GroupOnCluster("consumer", "Stable", "consumer"), take_over=True).to_write
    later = found(95)
    assert (later.state, later.to_write) == (OffsetState.DESTINATION_AHEAD, False)
    assert found(95, take_over=True).to_write is (fit == "exact")


def test_an_equal_offset_of_somebody_else_is_taken_over_too_so_that_it_follows() -> None:
    def found(**how: Any) -> GroupStatus:
        return status_of("g", CONSUMERS, OFFSETS_ALONE, [translated(90)], {COPY: 90}, others={COPY}, **how)

    assert found().synced
    assert only(found(take_over=True)).to_write
    assert written(found(take_over=True), {}).synced


def test_what_others_committed_is_told_by_what_stands_beside_it() -> None:
    present = {
        TopicPartition("t", number): Committed(offset, metadata)
        for number, (offset, metadata) in enumerate([(5, MARK), (5, ""), (5, "a time"), (5, "a time"), (5, "")])
    }
    ours = {TopicPartition("t", 2): 5, TopicPartition("t", 3): 9}
    own = {TopicPartition("t", 4)}
    assert {place.partition for place in of_others(present, ours, own, share=False)} == {1, 3}
    assert {place.partition for place in of_others(present, ours, own, share=True)} == {3}
    told = {TopicPartition("t", 3): Committed(100, "")}
    assert commits_of(status(90, 80), told) == {COPY: Committed(90, MARK)}
    assert commits_of(status(90, 80), {TopicPartition("t", 3): Committed(100, "a time")})[COPY].metadata == "a time"
    version, *_ = base64.b64decode(MARK, validate=True)
    assert version > 2  # Kafka Streams knows of two, and decodes what it finds here


def test_what_the_link_wrote_is_remembered_while_somebody_elses_offset_is_held() -> None:
    held = status_of("g", CONSUMERS, OFFSETS_ALONE, [translated(90)], {COPY: 80}, others={COPY})
    assert in_sync(held, {COPY: 85}) == {COPY: 85}
    assert in_sync(status(90, 90), {COPY: 85}) == {COPY: 90}
