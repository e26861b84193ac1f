"""Which parts of a record its copy has unchanged."""

import pytest

from strait.state.schema import TopicPolicy
from strait.state.transform import TopicTransform
from strait.state.unchanged_parts import UnchangedParts
from strait.wire.records import Record

RECORD = Record(7, 1, b"k", b"v", (("h", b"x"),))


@pytest.mark.parametrize(
    ("policy", "parts"),
    [
        (TopicPolicy(), (1, b"k", b"v", (("h", b"x"),))),
        (TopicPolicy(destination_append_time=True), (b"k", b"v", (("h", b"x"),))),
        (TopicPolicy(transform=TopicTransform(where="true")), (1, b"k", b"v", (("h", b"x"),))),
        (TopicPolicy(transform=TopicTransform(key="'x'")), (1, b"v", (("h", b"x"),))),
        (TopicPolicy(transform=TopicTransform(value="'x'", headers="drop")), (1, b"k")),
        (TopicPolicy(transform=TopicTransform(json_schema="a INT", drop_fields=("a",))), (1, b"k", (("h", b"x"),))),
    ],
)
def test_a_record_is_compared_by_what_its_rule_leaves_as_it_is(policy: TopicPolicy, parts: tuple[object, ...]) -> None:
    assert UnchangedParts.of(policy).content(RECORD) == parts
