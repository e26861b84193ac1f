"""What the loss log and the quarantine tell of the records that a partition has now."""

import pytest

from strait.audit.link_state import not_replicated, on_record, requested
from strait.audit.plan import OnRecord
from strait.control.repair.copying import _without
from strait.errors import ConfigError
from strait.state.quarantine_log import Entry
from strait.state.schema import Loss, Plan, PlannedTopic, Waiting
from strait.wire.records import Record


def loss(at_ms: int, cause: str, first: int, end: int, side: str = "source", action: str = "continued") -> Loss:
    return Loss(
        link="l", topic="t", partition=0, side=side, cause=cause, from_offset=first, to_offset=end, at_ms=at_ms,
        action=action, detail="",
    )  # fmt: skip


def quarantined(at_ms: int, offset: int, settled: str = "") -> Entry:
    return Entry(0, "t", 0, offset, 0, "t", "record_refused", "", at_ms, 9, settled)


def shown(entries: list[OnRecord]) -> list[tuple[str, int, int, str]]:
    return [(one.side[0], one.first, one.end, one.cause.partition(": ")[2]) for one in entries]


@pytest.mark.parametrize(
    ("losses", "entries", "expected"),
    [
        ([loss(1, "source_truncated", 900, 1000)], [], []),
        ([loss(1, "destination_truncated", 900, 1000, "destination", "restarted")], [], []),
        (
            [loss(1, "tail_dropped", 850, 950), loss(2, "source_truncated", 900, 1000)],
            [quarantined(1, 899), quarantined(1, 900), quarantined(3, 901)],
            [("s", 850, 900, "tail_dropped"), ("s", 899, 900, "unresolved"), ("s", 901, 902, "unresolved")],
        ),
        (
            [loss(1, "tail_dropped", 0, 9), loss(1, "foreign_writer", 0, 9, "destination"),
             loss(2, "source_recreated", 0, 0, action="restarted")],
            [quarantined(1, 5), quarantined(3, 5)],
            [("d", 0, 9, "foreign_writer"), ("s", 5, 6, "unresolved")],
        ),
        (
            [loss(1, "foreign_writer", 0, 9, "destination"), loss(1, "tail_dropped", 0, 9),
             loss(2, "destination_recreated", 0, 50, "destination", "restarted")],
            [],
            [("s", 0, 9, "tail_dropped")],
        ),
        ([loss(1, "source_data_lost", 0, 9, action="halted")], [], []),
    ],
)  # fmt: skip
def test_entries_about_records_that_are_gone_explain_nothing_of_those_at_their_offsets(losses, entries, expected):
    assert shown(on_record(losses, entries)) == expected


def test_a_new_copy_lacks_what_was_left_out_on_purpose_and_nothing_else():
    losses = [loss(1, "tail_dropped", 10, 20), loss(1, "source_data_lost", 30, 40), loss(1, "tail_copied", 50, 60)]
    entries = [quarantined(1, 70), quarantined(1, 71, "dropped"), quarantined(1, 72, "replayed")]
    left_out = sorted((one.first, one.end) for one in on_record(losses, entries) if one.left_out)
    kept = [one.offset for one in _without(left_out, (Record(n, 0, None, b"", ()) for n in range(100)))]
    assert sorted({*range(100)} - {*kept}) == [*range(10, 20), 70, 71]


@pytest.mark.parametrize("left_out", [[(1, 100), (2, 5), (3, 50)], [(1, 5), (2, 100), (3, 6)], [(5, 20), (10, 100)]])
def test_ranges_that_overlap_are_left_out_once(left_out):
    kept = [one.offset for one in _without(left_out, (Record(n, 0, None, b"", ()) for n in range(0, 120, 3)))]
    assert kept == [n for n in range(0, 120, 3) if not any(first <= n < end for first, end in left_out)]


def test_a_selected_topic_that_is_not_planned_is_not_covered():
    topic = PlannedTopic(source="t", destination="t", source_id="s", destination_id="d", slots=(0,))
    waiting = (
        Waiting(topic="u", partitions=(0, 1), reason="destination_deleted", detail="deleted"),
        Waiting(topic="new", reason="source_missing", detail="missing"),
        Waiting(topic="t", partitions=(0,), reason="paused", detail="by me"),
    )
    plan = Plan(
        link="l", group="x", version=1, producer_id=1, slots=1, topics=(topic,), waiting=waiting, published_at_ms=0
    )
    planned, left = requested("l", [plan], ())
    assert ([one.source for one in planned], [one.topic for one in left]) == (["t"], ["u"])
    assert [(one.name, one.problem) for one in not_replicated(left)] == [
        (f"u-{number}", "not replicated: destination_deleted: deleted") for number in range(2)
    ]
    planned, left = requested("l", [plan], ("new",))
    assert (planned, [one.name for one in not_replicated(left)]) == ([], ["new-0"])
    with pytest.raises(ConfigError, match="no topic 'v'"):
        requested("l", [plan], ("v",))
