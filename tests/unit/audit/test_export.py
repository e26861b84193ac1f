"""Which source offsets an audit's results name for an export."""

import pytest

from strait.audit.findings import Difference
from strait.audit.task_result import ChunkResult
from strait.control.audit_export import _stretches, ranges_of
from strait.errors import StateError
from strait.model import TopicPartition


def result(*differences, counts=None, first=0):
    listed = counts or tuple((one.kind, one.explained, one.records) for one in differences)
    return ChunkResult("t", 0, first, 1000, 0, 1000, 0, 1000, "different", counts=listed, differences=differences)


def test_missing_and_different_records_without_an_explanation_are_named():
    found = ranges_of(
        [
            result(Difference("different", 900, 800), Difference("missing", 700, -1, 3), first=500),
            result(
                Difference("missing", 5, -1, 2),
                Difference("missing", 20, -1, 4, "losses: source_truncated"),
                Difference("duplicate", -1, 30),
                Difference("damaged", -1, 40, 10),
            ),
        ]
    )
    assert found == {TopicPartition("t", 0): [(5, 7), (700, 703), (900, 901)]}


def test_the_later_result_of_a_chunk_counts():
    assert ranges_of([result(Difference("missing", 5, -1)), result()]) == {}


def test_results_that_do_not_list_all_are_no_ground_for_an_export():
    with pytest.raises(StateError, match="more differences than are listed"):
        ranges_of([result(Difference("missing", 5, -1), counts=(("missing", "", 2000),))])


def test_ranges_close_to_each_other_are_read_at_a_time():
    assert _stretches([(0, 1), (9_000, 9_001), (50_000, 50_001)]) == [[(0, 1), (9_000, 9_001)], [(50_000, 50_001)]]
