"""One list of words for states, from which the terminal, the page, the DAGs and task logs take theirs."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from strait.config.home import project_root
from strait.launch.base import State
from strait.planning.consumer_groups import OffsetState
from strait.planning.failover import Verdict
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.planning.status.summary import summary_of
from strait.planning.status.topics import by_topic
from strait.planning.status.words import SIGNS, STATES, Level, most_urgent, of_partition, of_slot, word
from strait.reasons import INTENDED, Kind, Reason
from strait.state.failover_records import Failover
from strait.state.report_records import PartitionReport
from strait.state.schema import Pause

DAY = 86_400.0
PAGE = Path(project_root(), "plugins/strait_airflow/page/static")


def row(state: str = "copying", reason: str = "", **fields: Any) -> PartitionStatus:
    return PartitionStatus("orders", 0, "orders", 0, state, reason, "", **fields)


def link(*rows: PartitionStatus, stopped: bool = False, silent: bool = False, paused: bool = False) -> Any:
    slot = SlotStatus(0, silent=silent, age_ms=None if silent else 1)
    pauses = [Pause(by="ann", at_ms=1)] if paused else []
    return summary_of("l", "a", "b", [Status("l", "default", 1, stopped, (slot,), rows)], pauses).badge


def test_every_state_that_code_can_be_in_has_a_word() -> None:
    of_records = (
        get_args(PartitionReport.model_fields["state"].annotation),
        get_args(Failover.model_fields["outcome"].annotation),
    )
    codes = {*of_records[0], *of_records[1], *map(str, State), *map(str, Verdict), *map(str, OffsetState)}
    assert codes <= STATES.keys()
    assert {badge.word for badge in STATES.values()} == {word(code) for code in STATES}
    assert not [badge for badge in STATES.values() if "_" in badge.word]


@pytest.mark.parametrize("reason", Reason)
def test_what_waits_is_as_urgent_as_its_reason(reason: Reason) -> None:
    level = of_partition(row("waiting", str(reason))).level
    if reason.kind is Kind.NEEDS_DECISION:
        assert level is Level.PERSON
    if reason in INTENDED or reason.kind is Kind.SKIPPED:
        assert level is Level.QUIET
    assert level is not Level.GOOD


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        (row("waiting", "foreign_writer"), "halted"),
        (row("waiting", "batch_too_large"), "halted"),
        (row("waiting", "paused"), "paused"),
        (row("waiting", "link_stopped"), "stopped"),
        (row("waiting", "slot_silent"), "silent"),
        (row("waiting", "source_leaderless"), "waiting"),
        (row("caught_up"), "caught_up"),
    ],
)
def test_a_partition_has_the_word_of_its_state_and_reason(shown: PartitionStatus, code: str) -> None:
    assert of_partition(shown) == STATES[code]


def test_what_is_lost_within_a_day_or_only_grows_needs_an_operator_whatever_its_reason() -> None:
    losing = row("waiting", "paused", seconds_to_loss=DAY - 1)
    assert of_partition(losing) == STATES["paused"]._replace(level=Level.PERSON)
    assert of_partition(row(seconds_to_loss=DAY - 1, seconds_to_catch_up=60.0)) == STATES["copying"]
    assert of_partition(row(seconds_to_loss=DAY)) == STATES["copying"]
    assert of_partition(row("waiting", "source_leaderless"), {"orders"}).level is Level.PERSON
    assert of_partition(row("waiting", "paused"), {"orders"}) == STATES["paused"]
    assert of_partition(row("caught_up"), {"orders"}) == STATES["caught_up"]


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        (link(row(), row("caught_up")), "copying"),
        (link(row("caught_up"), row("caught_up")), "caught_up"),
        (link(row(), row("waiting", "paused")), "copying"),
        (link(row("starting")), "starting"),
        (link(row("waiting", "slot_silent"), silent=True), "silent"),
        (link(row(), row("waiting", "source_leaderless")), "waiting"),
        (link(row(), row("waiting", "foreign_writer")), "halted"),
        (link(row("waiting", "link_stopped"), silent=True, stopped=True), "stopped"),
        (link(row("waiting", "paused"), paused=True), "paused"),
        (summary_of("l", "a", "b", [], ()).badge, "no_plan"),
    ],
)
def test_a_link_is_what_is_most_urgent_in_it(shown: Any, code: str) -> None:
    assert shown == STATES[code]


def test_a_link_that_is_paused_while_records_are_lost_needs_an_operator() -> None:
    assert link(row("waiting", "paused", seconds_to_loss=60.0), paused=True).level is Level.PERSON


def test_without_a_plan_the_lag_is_unknown_and_without_topics_there_is_none() -> None:
    none = summary_of("l", "a", "b", [], ())
    assert (none.lag_records, none.held_back_records, none.lag_known) == (None, None, False)
    idle = summary_of("l", "a", "b", [Status("l", "default", 1, False, (), ())], ())
    assert (idle.lag_records, idle.held_back_records, idle.badge) == (0, 0, STATES["empty"])


def test_only_what_is_good_is_good() -> None:
    good = {code for code, badge in STATES.items() if badge.level is Level.GOOD}
    assert good == {"copying", "caught_up", "reports", "running", "in_sync", "done"}
    assert of_slot(SlotStatus(0, silent=True, age_ms=600_000)).level is not Level.GOOD
    assert most_urgent([STATES["copying"], STATES["halted"], STATES["waiting"]]) == STATES["halted"]


def test_a_topic_is_its_most_urgent_partition_and_counts_what_it_does_not_know() -> None:
    (found,) = by_topic([row(lag_records=5), row("waiting", "slot_silent")])
    assert (found.badge, found.lag_records, found.lag_unknown) == (STATES["silent"], 5, 1)


def test_the_page_has_no_words_of_its_own_for_states() -> None:
    """Its scripts get them with each answer, so none of them names one as a text."""
    words = {badge.word for badge in STATES.values()} - {
        "done",
        "failed",
        "reports",
        "running",
        "warning",
        "unknown",
        "behind",
    }
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGE.glob("*.js"))
    code = re.sub(r"^ *//.*$", "", text, flags=re.MULTILINE)
    named = {said for said in re.findall(r'"([^"\n]*)"', code) if said in words}
    assert named == set()


def test_the_documentation_has_every_word_with_its_color_and_sign() -> None:
    text = Path(project_root(), "docs/how-to/use-the-page.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:green|gray|amber|red) \| (.) \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE)
    documented = {sign: sorted(re.findall(r"`([^`]+)`", words)) for sign, words in rows}
    of_level = {level: {badge.word for badge in STATES.values() if badge.level is level} for level in Level}
    assert documented == {SIGNS[level]: sorted(words - {"unknown"}) for level, words in of_level.items()}
