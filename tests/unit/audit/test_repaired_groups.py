"""Consumer groups of a topic that is repaired: each offset is committed in the new topic, or named."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from strait.consumer_groups.translating import Known
from strait.control.repair import groups as subject
from strait.control.repair.numbers import Equivalents, Numbers
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed, Group
from strait.state.schema import OffsetMapping, PlannedTopic
from strait.state.translation import Translator
from strait.wire.error_codes import GROUP_AUTHORIZATION_FAILED

PLANNED = PlannedTopic(source="s", destination="t", source_id="S", destination_id="T", slots=(0, 0))
RUN = OffsetMapping(
    topic="s", partition=0, destination="t", source_id="S", destination_id="T", source_base=1000, destination_base=20,
    sequence_base=0, sequence_end=200, checkpoint_at_ms=1,
)  # fmt: skip


class Cluster:
    """The groups of a cluster, and the commits that it got. Those with a ``members`` entry are active."""

    def __init__(self, **offsets: Any) -> None:
        self.offsets, self.members = dict[str, Any](offsets), set[str]()
        self.written: dict[str, dict[TopicPartition, int]] = {}

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None: ...

    def listed(self) -> dict[str, Group]:
        states = {name: "Stable" if name in self.members else "Empty" for name in self.offsets}
        return {name: Group("classic", state, "consumer") for name, state in states.items()}

    def committed(self, _: object) -> Any:
        return dict(self.offsets)

    def commit(self, wanted: Any, _: int) -> Any:
        for name, offsets in wanted.items():
            self.written[name] = {place: item.offset for place, item in offsets.items()}
        return {name: dict.fromkeys(offsets, 0) for name, offsets in wanted.items()}


class Offsets:
    """The map of partition 1 was rebuilt, and does not determine its offsets. The source starts at offset 1100 by now."""

    def __init__(self, _: object) -> None: ...

    def known(self, places: Iterable[TopicPartition], *, reverse: bool) -> dict[TopicPartition, Known]:
        assert reverse
        return {
            place: Known(
                *("l", 1, PLANNED, TopicPartition("s", place.partition), 1100, None, Translator([RUN], 200), False),
                "it was rebuilt" if place.partition else "",
            )
            for place in places
        }


def at(**partitions: int) -> dict[TopicPartition, Committed]:
    return {TopicPartition("t", int(name[1:])): Committed(offset, "") for name, offset in partitions.items()}


def copied(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> subject.GroupOffsets:
    """Each partition's records at the old copy's offsets 0 to 19 and the source's 1000 to 1199 are at 7 to 226."""
    monkeypatch.setattr(subject, "ConsumerGroups", lambda *_: cluster)
    monkeypatch.setattr(subject, "Offsets", Offsets)
    link: Any = SimpleNamespace(destination=({}, "b"))
    found = subject.GroupOffsets(link, "t")
    for number in (0, 1):
        old, source, new = numbered(range(20)), numbered(range(1000, 1200), first=20), numbered(range(7, 227))
        found.add(TopicPartition("t", number), Equivalents(20, 1000, old, source, new, 228))
    return found


def numbered(offsets: Iterable[int], first: int = 0) -> Numbers:
    found = Numbers(first)
    for offset in offsets:
        found.add(offset)
    return found


def test_offsets_without_an_equivalent_and_groups_that_cannot_be_read_are_left_to_the_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(
        billing=at(p0=50, p1=60),
        other={TopicPartition("u", 0): Committed(5, "")},
        hidden=GROUP_AUTHORIZATION_FAILED,
        old=at(p0=5, p1=20),
        done=at(p0=220),
    )
    assert copied(cluster, monkeypatch).commit("t.repaired") == (
        {"billing": 1, "old": 2, "done": 1},
        {
            "billing": "no record is known at t-1 60: set the equivalents in t.repaired",
            "hidden": "GROUP_AUTHORIZATION_FAILED: its offsets cannot be read; if it has some in t, set them in t.repaired",
        },
    )
    first, second = TopicPartition("t.repaired", 0), TopicPartition("t.repaired", 1)
    assert cluster.written == {"billing": {first: 57}, "old": {first: 12, second: 27}, "done": {first: 228}}


def test_groups_get_the_equivalents_of_the_offsets_that_they_have_once_all_is_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One went on, one got members, one appeared, and one was deleted meanwhile."""
    cluster = Cluster(moved=at(p0=5), joined=at(p0=30), deleted=at(p0=9))
    found = copied(cluster, monkeypatch)
    cluster.offsets = {"moved": at(p0=150), "joined": at(p0=41, p1=60), "new": at(p0=3)}
    cluster.members = {"joined"}
    assert found.commit("t.repaired") == (
        {"moved": 1, "new": 1},
        {
            "joined": "it has members; stop them, then set its offsets: t.repaired-0 48; "
            "no record is known at t-1 60: set the equivalents in t.repaired"
        },
    )
    place = TopicPartition("t.repaired", 0)
    assert cluster.written == {"moved": {place: 157}, "new": {place: 10}}


@pytest.mark.parametrize("first", [0, 4])
def test_each_offset_has_the_number_of_the_next_record(first: int) -> None:
    offsets = [3, 4, 5, 9, 12, 13]
    found = numbered(offsets, first)
    for offset in range(16):
        assert found.at(offset) == first + sum(one < offset for one in offsets)
    assert [found.offset(number) for number in range(first, first + 7)] == [*offsets, None]
    assert found.offset(first - 1) is None
    assert (Numbers(first).at(7), Numbers(first).offset(first)) == (first, None)
