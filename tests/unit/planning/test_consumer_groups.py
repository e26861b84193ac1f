"""What becomes of a group's offsets on the destination: nothing is taken back, and nobody at work is disturbed."""

import pytest

from strait.model import TopicPartition
from strait.planning.consumer_groups import (
    GroupStatus,
    OffsetState,
    Side,
    Target,
    can_move,
    status_of,
    written,
)

PLACE = TopicPartition("t", 3)
COPY = TopicPartition("copy.t", 3)
CONSUMERS = Side("classic", "Stable", "consumer")
EMPTY = Side("classic", "Empty", "consumer")


def status(
    to_offset: int | None, present: int | None, *, there: Side = EMPTY, ahead: bool = False, here: Side = CONSUMERS
) -> GroupStatus:
    target = Target(COPY.topic, to_offset, "exact", ahead)
    return status_of("g", here, there, {PLACE: 100}, {PLACE: target}, {} if present is None else {COPY: present})


@pytest.mark.parametrize("there", [EMPTY, Side(), Side("classic", "Dead", "")])
@pytest.mark.parametrize(
    ("to_offset", "present", "ahead", "state", "writes", "rereads"),
    [
        (90, None, False, OffsetState.BEHIND, True, None),
        (90, 80, False, OffsetState.BEHIND, True, 10),
        (90, 90, False, OffsetState.IN_SYNC, False, 0),
        (90, 91, False, OffsetState.DESTINATION_AHEAD, False, 0),
        (90, 91, True, OffsetState.DESTINATION_AHEAD, False, 0),
        (90, 80, True, OffsetState.AHEAD_OF_COPY, True, 10),
        (90, 90, True, OffsetState.AHEAD_OF_COPY, False, 0),
        (0, None, False, OffsetState.BEHIND, True, None),
        (None, None, False, OffsetState.NOT_REPLICATED, False, None),
        (None, 80, False, OffsetState.NOT_REPLICATED, False, None),
    ],
)
def test_an_offset_is_written_only_forward(
    to_offset: int | None,
    present: int | None,
    ahead: bool,
    state: OffsetState,
    writes: bool,
    rereads: int | None,
    there: Side,
) -> None:
    (row,) = status(to_offset, present, ahead=ahead, there=there).offsets
    assert (row.state, row.to_write, row.rereads) == (state, writes, rereads)
    assert row.target == COPY


@pytest.mark.parametrize("word", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_nothing_is_written_while_the_group_has_members_there(word: str) -> None:
    (row,) = status(90, 80, there=Side("consumer", word, "consumer")).offsets
    assert (row.state, row.to_write) == (OffsetState.HELD_ACTIVE, False)
    (row,) = status(90, 90, there=Side("consumer", word, "consumer")).offsets
    assert row.state is OffsetState.IN_SYNC


def test_of_a_group_that_has_moved_nothing_is_written() -> None:
    """Not forward either: it would skip what the group has yet to consume where it is now."""
    places = [TopicPartition("t", number) for number in range(4)]
    targets = {place: Target(COPY.topic, 90, "exact", ahead=place.partition == 3) for place in places}
    there = {TopicPartition(COPY.topic, number): offset for number, offset in enumerate((80, 90, 95, 80))}
    found = status_of("g", CONSUMERS, EMPTY, dict.fromkeys(places, 100), targets, there)
    assert [row.state for row in found.offsets] == [
        OffsetState.HELD_MOVED, OffsetState.IN_SYNC, OffsetState.DESTINATION_AHEAD, OffsetState.HELD_MOVED
    ]  # fmt: skip
    assert not any(row.to_write for row in found.offsets)


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
    clamped = written(status(90, None, ahead=True), {})
    assert clamped.synced
    assert clamped.states == [(OffsetState.AHEAD_OF_COPY, 1)]


def test_what_cannot_be_known_is_not_called_synced() -> None:
    assert not status(None, None).synced
    refused = GroupStatus("g", CONSUMERS, EMPTY, refusal="no right")
    assert (refused.synced, refused.refused, refused.rereads, refused.note) == (False, True, None, "no right")
    share = status_of("g", Side("share", "Stable", "share"), Side(), {}, {}, {})
    assert (share.synced, share.refused) == (False, False)
    assert "share" in share.note


@pytest.mark.parametrize(
    ("side", "movable"),
    [
        (CONSUMERS, True),
        (Side("classic", "Empty", ""), True),
        (Side("consumer", "Stable", "consumer"), True),
        (Side("streams", "Stable", "streams"), True),
        (Side("share", "Stable", "share"), True),
        (Side("classic", "Stable", "connect"), False),
        (Side("classic", "Stable", "sr"), False),
    ],
)
def test_only_groups_of_consumers_are_moved(side: Side, movable: bool) -> None:
    assert can_move(side) is movable
