"""Task groups of a link: which there are, how many slots they may have, and what may name them."""

from typing import Any

import pytest

from strait.config.links import Link, parse
from strait.errors import ConfigError

CLUSTERS = {"a": {"bootstrap.servers": "a:1"}, "b": {"bootstrap.servers": "b:1"}}


def link(**settings: Any) -> Link:
    raw = {"clusters": CLUSTERS, "links": {"l": {"source": "a", "destination": "b"} | settings}}
    return parse(raw, where="links file").links["l"]


def test_a_link_may_have_several_groups_each_with_its_bounds() -> None:
    groups = link(groups={"default": {}, "gold": {"slots": 2, "max_slots": 8}}).groups
    assert [(name, group.slots, group.most_slots) for name, group in groups.items()] == [
        ("default", 1, 1),
        ("gold", 2, 8),
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"groups": {"gold": {}}},
            "links.l: groups: `default` is required, for topics without a rule that names a group",
        ),
        (
            {"topics": {"rules": [{"match": "x", "group": "glod"}]}, "groups": {"default": {}, "gold": {}}},
            "links.l: topics.rules.0.group: `groups` has no task group 'glod'; did you mean 'gold'?",
        ),
        ({"backfill": {"behind_records": 9}}, "links.l: backfill.group: `groups` has no task group 'backfill'"),
        ({"backfill": {}}, "links.l.backfill: set `behind_records`, `behind_seconds` or both"),
        ({"groups": {"default": {"slots": 3, "max_slots": 2}}}, "max_slots: 2 is less than `slots`, 3"),
    ],
)
def test_what_is_wrong_about_groups_is_said(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        link(**settings)
    assert problem in str(caught.value)
