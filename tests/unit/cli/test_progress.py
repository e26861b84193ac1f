"""How many records `strait run` says it has copied."""

import json

import pytest

from strait.cli.options import Output
from strait.cli.progress import Progress
from strait.model import TopicPartition
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def group(name: str, *written: tuple[TopicPartition, int]) -> Status:
    rows = (
        PartitionStatus(where.topic, where.partition, "t", 0, "copying", "", "", position=0, written=count)
        for where, count in written
    )
    return Status("l", name, 1, False, (), tuple(rows))


def shown(progress: Progress, capsys: pytest.CaptureFixture[str], *groups: Status) -> int:
    progress.show(groups)
    return int(json.loads(capsys.readouterr().out)["records"])


def test_what_was_written_before_the_run_is_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("l", output=Output.JSON)
    progress.begin({T0: 100})
    assert shown(progress, capsys, group("default", (T0, 100), (T1, -1))) == 0
    assert shown(progress, capsys, group("default", (T0, 130), (T1, 5))) == 35


def test_what_a_lane_wrote_between_two_looks_counts_when_it_has_handed_over(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("l", output=Output.JSON)
    progress.begin({})
    assert shown(progress, capsys, group("backfill", (T0, 10)), group("default")) == 10
    assert shown(progress, capsys, group("backfill"), group("default", (T0, 20_000))) == 20_000
