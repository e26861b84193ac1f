"""A slot reports what has changed, soon, and everything else in turn."""

from typing import Any

from strait.config.app_spec import AppSpec
from strait.engine.partition.changes import Changes
from strait.engine.partition.partition import Partition
from strait.engine.reporter import ROWS, Reporter
from strait.engine.slot_history import SlotHistory
from strait.engine.slot_metrics import SlotMetrics
from strait.reasons import Reason
from strait.state.report_changes import REPEAT_SECONDS, HistoryPoint, ReportChanges
from strait.state.report_records import Report
from strait.state.schema import TopicPolicy


class Slot:
    """Partitions and the reports on them, second by second."""

    def __init__(self, partitions: int) -> None:
        self.now = 0.0
        self.changes: Changes[Partition] = Changes()
        ids = bytes([1]) * 16, bytes([2]) * 16
        self.partitions = [
            Partition("t", number, "t", *ids, TopicPolicy(), changes=self.changes) for number in range(partitions)
        ]
        spec = AppSpec(
            link="l",
            source={"bootstrap.servers": "a:1"},
            destination={"bootstrap.servers": "b:1"},
            source_name="a",
            destination_name="b",
            slots=1,
            group="default",
            slot_memory_bytes=1 << 20,
            ledger_seconds=60,
            ledger_dir="/nowhere",
            checkpoint_dir="/nowhere",
        )
        metrics = SlotMetrics(spec, 0, "app")
        self.reporter = Reporter(metrics, self.changes, SlotHistory("default", 0, 0), lambda _: None)

    def second(self) -> list[Any]:
        found = list(self.reporter.due(1, self.now))
        self.now += 1.0
        return found

    def rows(self) -> list[int]:
        changes = [one for one in self.second() if isinstance(one, ReportChanges)]
        return [row.partition for one in changes for row in one.partitions]

    def settle(self) -> None:
        """Until all is told and only what comes in turn is left."""
        while self.changes.waits:
            self.second()


def test_an_idle_slot_repeats_each_partition_in_time_and_little_else() -> None:
    slot = Slot(1_000)
    slot.settle()
    rows = [row for _ in range(REPEAT_SECONDS) for row in slot.rows()]
    assert set(rows) == set(range(1_000))
    assert len(rows) < 1_500


def test_a_slot_says_each_second_that_it_is_there_and_often_all_of_it() -> None:
    slot = Slot(3)
    seconds = [[type(one) for one in slot.second() if not isinstance(one, HistoryPoint)] for _ in range(20)]
    assert all(seconds)
    assert sum(Report in kinds for kinds in seconds) == 5


def test_what_changes_is_in_the_next_report() -> None:
    slot = Slot(1_000)
    slot.settle()
    slot.partitions[700].heard(10, 10, 0)
    slot.partitions[7].show(Reason.SOURCE_UNREACHABLE, "away")
    assert {7, 700} <= set(slot.rows())
    slot.partitions[700].heard(10, 10, 0)  # no news
    assert not slot.changes.waits


def test_no_report_is_long_and_a_change_of_state_goes_before_what_moves() -> None:
    slot = Slot(3 * ROWS)
    slot.settle()
    for partition in slot.partitions:
        partition.heard(10, 10, 0)
    for partition in slot.partitions[-10:]:
        partition.show(Reason.SOURCE_UNREACHABLE, "away")
    told = [slot.rows() for _ in range(5)]
    assert told[0][:10] == list(range(3 * ROWS))[-10:]
    assert {row for rows in told for row in rows} == set(range(3 * ROWS))
    assert max(map(len, told)) < 1.2 * ROWS


def test_a_partition_that_leaves_is_named_once_and_not_reported_again() -> None:
    slot = Slot(3)
    slot.settle()
    slot.partitions[1].retire()
    slot.partitions[1].heard(10, 10, 0)
    (changes,) = (one for one in slot.second() if isinstance(one, ReportChanges))
    assert changes.left == (("t", 1),)
    assert 1 not in [row for _ in range(2 * REPEAT_SECONDS) for row in slot.rows()]


def test_the_last_report_holds_all_that_was_left_to_say() -> None:
    slot = Slot(3 * ROWS)
    rows = [
        row.partition
        for one in slot.reporter.close(1, slot.now)
        if isinstance(one, ReportChanges)
        for row in one.partitions
    ]
    assert set(rows) == set(range(3 * ROWS))
