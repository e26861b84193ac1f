"""Tables on a terminal: what is always there, and what is shown only where it matters."""

import re
from dataclasses import replace

import pytest

from strait.cli.tables import plain_table, print_status
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.text import utc

ROW = PartitionStatus("orders", 0, "orders", 0, "copying", "", "", 5, 9, 4, 1.0)


def shown(capsys: pytest.CaptureFixture[str], *rows: PartitionStatus) -> list[str]:
    print_status(Status("l", "default", 3, False, (), rows), by_partition=True)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("seconds", [None, 86_400.0])
def test_a_loss_that_is_far_away_takes_no_room(capsys: pytest.CaptureFixture[str], seconds: float | None) -> None:
    assert "loss in" not in "\n".join(shown(capsys, replace(ROW, seconds_to_loss=seconds)))


def test_a_loss_that_is_near_is_shown_for_its_partition_alone(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, replace(ROW, seconds_to_loss=90 * 60.0), replace(ROW, topic="clicks"))
    assert "loss in" in lines[1]
    assert lines[2].split()[-4:] == ["1", "h", "30", "min"]
    assert lines[3].split()[-1] == "-"


def test_topics_with_problems_come_first_and_say_which_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    copying = replace(ROW, topic="a", state="caught_up", lag_records=0, lag_seconds=0.0)
    behind = replace(ROW, topic="b", lag_records=1_000)
    leaderless = replace(ROW, topic="c", state="waiting", reason="source_leaderless", detail="no leader")
    differs = replace(ROW, topic="d", partition=2, state="waiting", reason="copy_differs", detail="offset 7")
    rows = (copying, behind, *(replace(leaderless, partition=n) for n in (0, 1)), replace(behind, topic="d"), differs)
    print_status(Status("l", "default", 3, False, (), rows))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()][2:6]
    assert [line[0] for line in lines] == ["d", "c", "b", "a"]
    assert "partition 2: copy_differs: offset 7" in " ".join(lines[0])
    assert "1 copying, 1 ! halted" in " ".join(lines[0])
    assert lines[1][1:3] == ["2", "waiting"] and " ".join(lines[1]).endswith(" source_leaderless: no leader")
    assert lines[3] == ["a", "1", "caught", "up", "0", "0.0", "s"]


def test_wide_shows_every_partition_and_where_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    print_status(Status("l", "default", 3, False, (), (replace(ROW, destination="eu.orders", written=7),)), wide=True)
    head, row = capsys.readouterr().out.splitlines()[1:3]
    assert head.split()[:3] == ["topic", "partition", "destination"]
    assert row.split() == ["orders", "0", "eu.orders", "0", "copying", "5", "9", "7", "4", "1.0", "s"]


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


def test_into_a_pipe_no_line_ends_with_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    plain_table(["name", "why"], [["n", "w " * 200], ["short", ""]])
    shown(capsys)
    plain_table(["name", "why"], [["n", "w" * 200], ["short", ""]])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 60 columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")


WHY = "Connection to 10.0.0.1:9092 refused: is the broker running?"


def plain(text: str) -> list[str]:
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]


@pytest.mark.usefixtures("narrow")
def test_on_a_narrow_terminal_the_text_is_below_the_table_and_nothing_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain_table(
        ["link", "from -> to", "state", ">topics", ">lag", "issue"], [["a-to-b", "a -> b", "error", "-", "-", WHY]]
    )
    head, row, *below = plain(capsys.readouterr().out)
    assert head.split() == ["link", "from", "->", "to", "state", "topics", "lag"]
    assert row.split() == ["a-to-b", "a", "->", "b", "error", "-", "-"]
    assert " ".join(below) == f"a-to-b: issue: {WHY}"


@pytest.mark.usefixtures("narrow")
def test_the_status_of_a_link_fits_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    slot = SlotStatus(
        0, silent=False, age_ms=1, host="h" * 40, pid=7, plan_version=3, latency_ms_p50=1.0, latency_ms_p99=12.5
    )
    row = replace(ROW, state="waiting", reason="source_leaderless", detail=WHY)
    print_status(Status("l", "default", 3, False, (slot,), (row,)))
    lines = plain(capsys.readouterr().out)
    assert max(map(len, lines)) <= 60
    assert "…" not in "".join(lines)
    assert f"orders: why: source_leaderless: {WHY}" in " ".join(lines)
    assert any(line.split() == ["0", "0.0", "s", "ago", "7", "3", "0", "0.0", "1.0", "12.5"] for line in lines)
    assert f"slot 0: host {'h' * 40}, memory MB 0" in " ".join(lines)


@pytest.mark.usefixtures("narrow")
def test_what_does_not_fit_a_narrow_terminal_is_below_the_table_and_the_state_and_the_lag_stay_in_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = [">topics", ">partitions", ">caught up", ">lag", ">lag time", ">records/s"]
    head = ["link", "from -> to", "state", *figures, "issue"]
    ends = "eu-west -> us-east"
    far = [
        "orders-to-the-east",
        ends,
        "! halted",
        "1,200",
        "12,000",
        "11,999",
        "1,234,567",
        "1 h 58 min",
        "120,000",
        WHY,
    ]
    rows = [far, ["back", ends, "caught up", "1", "1", "1", "0", "0.0 s", "0", ""]]
    plain_table(head, rows, keep=("state", "lag", "lag time"))
    lines = plain(capsys.readouterr().out)
    assert max(map(len, lines)) <= 60
    assert " ".join(lines[0].split()) == "link state topics lag lag time"
    assert " ".join(lines[1].split()) == "orders-to-the-east ! halted 1,200 1,234,567 1 h 58 min"
    whole = " ".join(lines)
    for row in rows:
        for name, cell in zip(head, row, strict=True):
            assert cell in whole, name
    assert f"back: from -> to {ends}, partitions 1, caught up 1, records/s 0" in whole


@pytest.mark.usefixtures("narrow")
def test_every_partition_of_a_link_is_named_on_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    long = replace(ROW, topic="t" * 100, position=10**12, end=10**12, destination="t" * 100)
    print_status(Status("l", "default", 3, False, (), (long, replace(ROW, partition=7, detail=WHY))), wide=True)
    lines = plain(capsys.readouterr().out)
    assert max(map(len, lines)) <= 60
    assert "position 1,000,000,000,000, end 1,000,000,000,000" in " ".join(lines)
    assert f"orders 7: why: {WHY}" in " ".join(lines)


def test_times_are_told_in_utc() -> None:
    assert utc(1_700_000_000_999) == "2023-11-14 22:13:20"
