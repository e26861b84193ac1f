"""Whether a link's needs are all known, and that an incident lasts while they are not."""

import pytest

from strait.planning.status.needs import Circumstances, needs_of
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.reasons import Reason
from strait_airflow.gauges import Measured
from strait_airflow.noticing import Judged
from strait_airflow.verdict import Incident, Verdict, verdict_of

pytestmark = [pytest.mark.airflow, pytest.mark.core]


def row(state: str, reason: str = "", topic: str = "orders") -> PartitionStatus:
    return PartitionStatus(topic, 0, topic, 0, state, reason, "")


def measured(*rows: PartitionStatus, stopped: bool = False, silent: bool = False) -> Measured:
    slot = SlotStatus(0, silent=silent, age_ms=100)
    return Measured([], [Status("shop", "default", 3, stopped, (slot,), rows)])


def judge(found: Measured, judged: Judged, run: str) -> Verdict:
    needs = [Incident(need.id, need.line) for need in needs_of(found.statuses, Circumstances())]
    return verdict_of([], [], needs, judged, run, 1000, partial=found.partial)


HALTED = row("waiting", Reason.FOREIGN_WRITER)
STARTING = [
    row("starting"),
    row("waiting", Reason.LOOKING_UP),
    row("waiting", Reason.TRANSFORM_STARTING),
]


@pytest.mark.parametrize("starting", STARTING, ids=lambda one: one.reason or one.state)
def test_an_incident_is_known_throughout_a_restart_of_the_application(starting: PartitionStatus) -> None:
    first = judge(measured(HALTED), Judged(), "r1")
    assert first.is_red
    during = judge(measured(starting), first.judged, "r2")
    assert (during.is_red, during.kept) == (False, ("halted orders foreign_writer",))
    assert during.judged.attention == first.judged.attention, "the watch starts no run for it"
    after = judge(measured(HALTED), during.judged, "r3")
    assert not after.is_red
    over = judge(measured(row("caught_up")), after.judged, "r4")
    assert (over.headline, over.judged.known) == ("needs no operator", {})


@pytest.mark.parametrize("starting", STARTING, ids=lambda one: one.reason or one.state)
def test_a_partition_that_stays_starting_hides_no_new_incident(starting: PartitionStatus) -> None:
    known = judge(measured(HALTED, starting), Judged(), "r1")
    again = judge(measured(HALTED, starting, row("waiting", Reason.CORRUPT_BATCH, "clicks")), known.judged, "r2")
    assert again.is_red
    assert again.headline.startswith("needs an operator: topic clicks 0: corrupt_batch")


@pytest.mark.parametrize(
    "rows", [(row("copying"), row("caught_up")), (row("waiting", Reason.PAUSED),), (HALTED,), ()], ids=len
)
def test_what_each_slot_reports_is_all(rows: tuple[PartitionStatus, ...]) -> None:
    assert not measured(*rows).partial
    assert measured(*rows, silent=True).partial


def test_a_link_that_is_stopped_starts_nothing() -> None:
    assert not measured(row("starting"), stopped=True, silent=True).partial
