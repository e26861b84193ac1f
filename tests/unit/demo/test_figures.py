"""When the demo is up."""

from dataclasses import replace

import pytest

from strait.demo.figures import TopicFigures, caught_up
from strait.demo.folder import TOPICS

ALL = [TopicFigures(link, topic, 2, 100, 5, {}, 0, 3.0, 9.0) for link, several in TOPICS.items() for topic in several]


def test_it_is_up_when_every_topic_of_both_links_is_copied() -> None:
    assert caught_up(ALL, within_records=5)


def test_a_partition_that_waits_does_not_hold_it_up() -> None:
    assert caught_up([replace(ALL[0], waiting={"batch_too_large": 1}), *ALL[1:]], within_records=5)


@pytest.mark.parametrize(
    "missing",
    [{"copied_records": 0}, {"lag_records": 6}, {"starting": 1}, {"latency_ms_p50": None}],
    ids=lambda missing: next(iter(missing)),
)
def test_it_is_not_up_before(missing: dict[str, object]) -> None:
    for number, topic in enumerate(ALL):
        others = ALL[:number] + ALL[number + 1 :]
        assert not caught_up([replace(topic, **missing), *others], within_records=5)  # type: ignore[arg-type]


def test_it_is_not_up_before_every_link_has_its_plan() -> None:
    for number in range(len(ALL)):
        assert not caught_up(ALL[:number] + ALL[number + 1 :], within_records=5)
    assert not caught_up([], within_records=5)
