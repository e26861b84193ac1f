"""Consumer groups of a topic that is repaired: each offset is committed in the new topic, or named."""

from types import SimpleNamespace
from typing import Any

import pytest

from strait.control.repair import groups as subject
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed, Group
from strait.wire.error_codes import GROUP_AUTHORIZATION_FAILED

TOLD: Any = {
    "billing": {TopicPartition("t", 0): Committed(50, ""), TopicPartition("t", 1): Committed(60, "")},
    "other": {TopicPartition("u", 0): Committed(5, "")},
    "hidden": GROUP_AUTHORIZATION_FAILED,
}


class Groups:
    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> "Groups":
        return self

    def __exit__(self, *_: object) -> None: ...

    def listed(self) -> dict[str, Group]:
        return {name: Group("classic", "Empty", "consumer") for name in TOLD}

    def committed(self, _: object) -> Any:
        return TOLD

    def commit(self, wanted: Any, _: int) -> Any:
        return {name: dict.fromkeys(offsets, 0) for name, offsets in wanted.items()}


class Offsets:
    """The map of partition 1 was rebuilt, and does not determine its offsets."""

    def __init__(self, _: object) -> None: ...

    def to_source(self, places: Any) -> list[Any]:
        return [SimpleNamespace(to_offset=None if place.partition else offset) for place, offset in places]


def test_offsets_without_an_equivalent_and_groups_that_cannot_be_read_are_left_to_the_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subject, "ConsumerGroups", Groups)
    monkeypatch.setattr(subject, "Offsets", Offsets)
    link: Any = SimpleNamespace(destination=({}, "b"))
    found = subject.GroupOffsets(link, "t")
    for number in (0, 1):
        found.marks(TopicPartition("t", number), 0)
        places = found.places(number, {(False, 50): 50}, 100)
        for record in range(100):
            places.see(record, record + 7)
    assert found.commit("t.repaired") == (
        {"billing": 1},
        {
            "billing": "no record is known at t-1 60: set the equivalents in t.repaired",
            "hidden": "GROUP_AUTHORIZATION_FAILED: its offsets cannot be read; if it has some in t, set them in t.repaired",
        },
    )
