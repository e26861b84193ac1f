"""What was reported hours ago is read seldom, however often it is asked for."""

from typing import Any

import pytest

from strait.control import report_history
from strait.control.report_history import PastReports
from strait.state.report_records import PartitionReport
from support.model.reports import plain_report

SLOT = ("default", 0)


def reports(lag: int) -> dict[tuple[str, int], Any]:
    figures = {"position": 0, "end": lag, "lag_seconds": 0.0, "records": 0, "bytes": 0}
    row = PartitionReport(topic="t", partition=0, state="copying", lag_records=lag, **figures)
    return {SLOT: (plain_report(partitions=(row,)),)}


def test_the_past_is_read_once_in_minutes_and_only_if_something_lags(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, found = [], {SLOT: (plain_report(),)}

    def read(*args: object) -> Any:
        reads.append(args)
        return found if len(reads) > 1 else {}

    monkeypatch.setattr(report_history, "reports_at", read)
    past = PastReports({}, "b", "l")
    assert past.of("default", reports(0)) == {}
    assert not reads
    assert past.of("default", reports(5)) == {}  # there is none yet: it is looked for again
    assert [past.of("default", reports(5)) for _ in range(9)] == [found] * 9
    assert len(reads) == 2
