"""Why a topic that the plan does not have is not copied; and each link in one line."""

from dataclasses import replace

import pytest

from strait.model import TopicFacts
from strait.planning.status.explaining import explained, nearly_selected
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status
from strait.planning.status.summary import LinkSummary, summary_of
from strait.planning.status.words import Badge, Level
from strait.planning.topics.selection import Selection, select
from strait.state.schema import Pause
from unit.planning.test_plan import link


def selection(*topics: str) -> Selection:
    block = {"include": ["orders", "clicks"], "regex": ["pay.*", "__.*"], "exclude": ["pay-tmp.*"]}
    facts = {name: TopicFacts(name, "", 1) for name in topics}
    return select("a-to-b", link(topics=block), facts)


FOUND = selection("orders", "click", "pay-tmp-1", "payments", "__consumer_offsets", "logs")
WANTED = ["orders", "clicks"]


def test_what_the_link_names_or_matches_and_leaves_out_is_told_unasked() -> None:
    assert [(row.topic, row.state, row.reason) for row in nearly_selected(FOUND)] == [
        ("__consumer_offsets", "left_out", "excluded"),
        ("pay-tmp-1", "left_out", "excluded"),
    ]


@pytest.mark.parametrize(
    ("topic", "state", "reason", "detail"),
    [
        ("pay-tmp-1", "left_out", "excluded", "`topics.exclude` has 'pay-tmp.*'"),
        ("logs", "left_out", "not_selected", "neither `topics.include` nor `topics.regex` matches"),
        ("click", "left_out", "not_selected", "matches; is it meant by 'clicks'?"),
        ("payments", "waiting", "plan_missing", "selected since the last plan"),
    ],
)
def test_any_topic_of_the_source_is_explained(topic: str, state: str, reason: str, detail: str) -> None:
    row = explained(topic, FOUND, WANTED)
    assert row is not None
    assert (row.state, row.reason) == (state, reason)
    assert row.detail.endswith(detail)


def test_a_topic_that_the_source_does_not_have_is_not() -> None:
    assert explained("nothing", FOUND, WANTED) is None


def group(*states: tuple[str, str], stopped: bool = False) -> Status:
    rows = tuple(
        PartitionStatus("orders", number, "orders", 0, state, reason, "", lag_records=5)
        for number, (state, reason) in enumerate(states)
    )
    return Status("l", "default", 1, stopped, (), rows)


COPYING, CAUGHT_UP, PAUSED, DENIED = (
    ("copying", ""),
    ("caught_up", ""),
    ("waiting", "paused"),
    ("waiting", "source_denied"),
)
LINK_PAUSED = Pause(by="ann", at_ms=1)


@pytest.mark.parametrize(
    ("groups", "pauses", "state"),
    [
        ((), (), "no_plan"),
        ((group(COPYING, stopped=True),), (LINK_PAUSED,), "stopped"),
        ((group(COPYING), group(CAUGHT_UP)), (), "copying"),
        ((group(COPYING, PAUSED),), (LINK_PAUSED.model_copy(update={"topic": "orders"}),), "copying"),
        ((group(PAUSED),), (LINK_PAUSED,), "paused"),
        ((group(COPYING), group(DENIED, stopped=True)), (), "waiting"),
    ],
)
def test_a_link_is_in_one_state(groups: tuple[Status, ...], pauses: tuple[Pause, ...], state: str) -> None:
    assert summary_of("l", "a", "b", groups, pauses).state == state


def test_a_link_is_summed_up() -> None:
    found = summary_of("l", "a", "b", [group(COPYING, CAUGHT_UP), group(DENIED, PAUSED, DENIED)], ())
    waiting = (("paused", 1), ("source_denied", 2))
    badge = Badge("halted", Level.PERSON)
    known = {"healthy": True, "lag_known": True, "badge": badge}
    assert found == LinkSummary("l", "a", "b", "waiting", 1, 5, 1, 25, None, waiting, **known)
    assert found.trouble == "1 paused, 2 source_denied"
    assert replace(found, error="away").trouble == "away"


def test_what_waits_is_stuck_unless_somebody_meant_it() -> None:
    starting = ("starting", "")
    assert group(COPYING, PAUSED, DENIED, starting).stuck == {
        ("orders", 2): "source_denied",
        ("orders", 3): "starting",
    }
    assert group(DENIED, stopped=True).stuck == {}


def test_a_link_that_cannot_be_looked_at_is_not_well_and_its_lag_is_not_known() -> None:
    away = LinkSummary("l", error="away").as_data()
    assert (away["healthy"], away["lag_known"]) == (False, False)
    unknown = replace(group(COPYING).partitions[0], lag_records=-1)
    silent = replace(group(COPYING), partitions=(unknown,))
    found = summary_of("l", "a", "b", [silent], ())
    assert (found.lag_known, found.lag_unknown, found.lag_records) == (False, 1, None)
    some = summary_of("l", "a", "b", [silent, group(COPYING)], ())
    assert (some.lag_unknown, some.lag_records) == (1, 5)
    assert summary_of("l", "a", "b", [group(COPYING)], ()).lag_known
