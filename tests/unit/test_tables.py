"""Tables on a terminal: what is always there, and what is shown only where it matters."""

from dataclasses import replace

import pytest

from strait.cli.tables import plain_table, print_status, utc
from strait.planning.status.status import PartitionStatus, SlotStatus, Status

ROW = PartitionStatus("orders", 0, "orders", 0, "copying", "", "", 5, 9, 4, 1.0)


def shown(capsys: pytest.CaptureFixture[str], *rows: PartitionStatus) -> list[str]:
    print_status(Status("l", "default", 3, False, (), rows))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("seconds", [None, 86_400.0])
def test_a_loss_that_is_far_away_takes_no_room(capsys: pytest.CaptureFixture[str], seconds: float | None) -> None:
    assert "loss in" not in "\n".join(shown(capsys, replace(ROW, seconds_to_loss=seconds)))


def test_a_loss_that_is_near_is_shown_for_its_partition_alone(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, replace(ROW, seconds_to_loss=90 * 60.0), replace(ROW, topic="clicks"))
    assert "loss in" in lines[1]
    assert lines[2].split()[-2:] == ["90", "min"]
    assert lines[3].split()[-1] == "-"


def test_heartbeats_are_told_where_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    slot = SlotStatus(0, silent=False, age_ms=1, heartbeat_age_ms=1_500, heartbeat_latency_ms=12.34)
    mute = SlotStatus(0, silent=False, age_ms=1, heartbeat_trouble="no right")
    told = []
    for each in (slot, mute, SlotStatus(0, silent=False, age_ms=1)):
        print_status(Status("l", "default", 3, False, (each,), ()))
        told.append([line for line in capsys.readouterr().out.splitlines() if line.startswith("heartbeat")])
    assert told == [
        ["heartbeat: the newest that has arrived is 1.5 s old and took 12.3 ms"],
        ["heartbeat: none has arrived yet; no right"],
        [],
    ]


def test_into_a_pipe_each_row_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    plain_table(["name", ">count", "why"], [["n" * 200, "1,000", "w " * 200], ["short", "2", ""]])
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "count", "why"]
    assert first.split()[:2] == ["n" * 200, "1,000"]
    assert first.count("w") == 200
    assert second.split() == ["short", "2"]


def test_times_are_told_in_utc() -> None:
    assert utc(1_700_000_000_999) == "2023-11-14 22:13:20"
