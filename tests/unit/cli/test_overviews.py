"""`strait status` of all links and `strait top`: states in words, unknown figures as unknown."""

import time
from dataclasses import replace
from typing import Any

import pytest

from strait.cli import status as status_command
from strait.cli import top
from strait.exporter.observation import Observation
from strait.planning.status.needs import Circumstances, needs_of
from strait.planning.status.ranking import By
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.state.schema import Plan

SPEAKS = SlotStatus(0, silent=False, age_ms=400, records_per_second=1200.0, bytes_per_second=3e6, latency_ms_p99=22.0)
SILENT = SlotStatus(0, silent=True, age_ms=600_000)
UNKNOWN = PartitionStatus("orders", 0, "orders", 0, "waiting", "slot_silent", SILENT.silence, 5)
BEHIND = PartitionStatus("orders", 1, "orders", 0, "copying", "", "", 5, 9, 412_345, 7100.0, records_per_second=9.0)
LOSING = replace(BEHIND, partition=2, state="waiting", reason="foreign_writer", seconds_to_loss=263_000.0)


def seen(slot: SlotStatus, *rows: PartitionStatus, link: str = "shop", **more: Any) -> Observation:
    status = Status(link, "default", 1, False, (slot,), rows)
    plan = Plan(link=link, group="default", version=1, producer_id=1, slots=1, topics=(), waiting=(), published_at_ms=1)
    needs = needs_of([status], Circumstances())
    return Observation(
        link, "a", "b", time.monotonic(), plans={"default": plan}, statuses=(status,), needs=needs, **more
    )


def lines_of_status(capsys: pytest.CaptureFixture[str], *found: Observation) -> list[str]:
    status_command._print_links([one.summary for one in found])
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def lines_of_top(capsys: pytest.CaptureFixture[str], *found: Observation) -> list[str]:
    top._print(found, 0, By.LAG, 20)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_of_a_link_whose_slots_do_not_report_no_figure_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines_of_status(capsys, seen(SILENT, UNKNOWN))[1] == "shop a -> b no report 1 1 0 - - - 1 slot_silent"
    link, _, head, partition = lines_of_top(capsys, seen(SILENT, UNKNOWN))[1:]
    assert link == "shop no report 1 0 - - - - - - 1 slot_silent"
    assert head.startswith("link partition slot state lag lag time records/s why")
    assert partition == "shop orders-0 0 no report - - - slot_silent: slot 0 has not reported for 10 min"


def test_a_lag_that_is_known_in_part_is_a_lower_bound(capsys: pytest.CaptureFixture[str]) -> None:
    found = seen(SPEAKS, UNKNOWN, BEHIND)
    assert lines_of_status(capsys, found)[1].startswith("shop a -> b no report 1 2 0 >=412,345 1 h 58 min 1,200 1 slot")
    assert lines_of_top(capsys, found)[1].startswith("shop no report 2 0 >=412,345 1 h 58 min 1,200 3.0 - 22.0")


def test_what_needs_an_operator_is_marked_and_the_time_to_a_loss_has_a_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = seen(SPEAKS, BEHIND, LOSING)
    head, link = lines_of_status(capsys, found)
    assert "lag time loss in records/s" in head
    assert "! halted" in link and "3 d 1 h" in link
    assert "! halted" in lines_of_top(capsys, found)[-1] or "! halted" in lines_of_top(capsys, found)[-2]


def test_top_keeps_the_last_figures_of_a_link_that_cannot_be_read_and_says_how_old_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failed = replace(seen(SPEAKS, BEHIND), error="cluster b: gone", at=time.monotonic() - 300)
    link, _, _, partition = lines_of_top(capsys, failed)[1:]
    assert link.startswith("shop ! unreadable 1 0 412,345 1 h 58 min 1,200")
    assert link.endswith("cluster b: gone; all figures are 5 min old")
    assert partition.startswith("shop orders-1 0 copying 412,345")
    never = Observation("away", "a", "b", time.monotonic(), error="refused")
    assert lines_of_top(capsys, never)[1] == "away ! unreadable - - - - - - - - refused"
    assert never.summary.as_data()["lag_records"] is None
