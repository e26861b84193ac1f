"""An interval of the ledger ends beside the copying: nothing is looked up anew for it, and its rows tell of every record."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from strait.state.reader import StateReader
from strait.state.report_records import Report
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.links.engine_link import EngineLink
from support.links.load import writing

pytestmark = [pytest.mark.broker]

MakeLink = Callable[..., EngineLink]


@pytest.mark.core
def test_intervals_end_beside_the_copying_and_their_rows_tell_of_every_record(
    make_link: MakeLink, clusters: Any, topic_name: str
) -> None:
    link = make_link(source=clusters.source, destination=clusters.destination, topics={topic_name: 2}, ledger_seconds=1)
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    with writing(clusters.source, link.topics, seed=5, per_second=200):
        eventually(lambda: intervals(link) >= 5, what=lambda: f"five intervals, not {intervals(link)}: {link.log()}")
    link.until_copied()
    report = newest_report(link)
    assert (report.pid, report.recoveries) == (slot.pid, 2), "each partition was looked up once, at the start"

    link.publish(stopped=True)
    slot.wait(60)
    for partition, end in enumerate(ends(clusters.destination, topic_name, 2)):
        rows = [
            row for part in link.told_for_the_ledger() for row in part.entries
            if row.partition == partition and row.sequence_from >= 0
        ]  # fmt: skip
        assert len(rows) > 2
        assert all(before.sequence_to == after.sequence_from for before, after in pairwise(rows))
        assert all(before.source_to == after.source_from for before, after in pairwise(rows))
        assert (rows[0].sequence_from, rows[-1].sequence_to, sum(row.records for row in rows)) == (0, end, end)
    link.assert_equal()


def test_a_slot_that_is_killed_with_its_first_records_has_written_their_start(
    make_link: MakeLink, clusters: Any, topic_name: str
) -> None:
    link = make_link(source=clusters.source, destination=clusters.destination, topics={topic_name: 2})
    link.make_topics()
    with writing(clusters.source, link.topics, seed=6, records=100):
        pass
    link.publish()
    slot = link.start_slot()
    eventually(lambda: link.copied() > 0, what=lambda: f"a first record: {link.log()}")
    slot.kill()
    slot.wait(30)
    begun = {row.partition: row for part in reversed(link.told_for_the_ledger()) for row in part.entries}
    for partition, end in enumerate(ends(clusters.destination, topic_name, 2)):
        if end:
            assert (begun[partition].sequence_from, begun[partition].source_from) == (0, 0)


def intervals(link: EngineLink) -> int:
    return len({part.started_at_ms for part in link.told_for_the_ledger()})


def newest_report(link: EngineLink) -> Report:
    with StateReader(link.destination.client_properties, "destination", link.name, follow=("reports",)) as state:
        state.catch_up()
        return max((report for parts in state.reports.values() for report in parts), key=lambda report: report.at_ms)
