"""The protocol's decisions under every interleaving at small size; see `support.model.protocol_model` for what that covers.

Each fault that was once found in the product is put back, and the model must find it. `STRAIT_MODEL_STATES` sets how
many states are visited at most.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from strait.engine.recovery import decision
from strait.engine.recovery.decision import Found, LogState, OnForeign
from strait.state.offset_map import sequence_at_destination, wire_sequence
from strait.state.schema import OffsetMapping
from strait.wire.batch import Batch
from support.model.protocol_model import Limits, Result, explore

MOST_STATES = int(os.environ.get("STRAIT_MODEL_STATES", "60000"))
NONE = Limits(*[0] * len(Limits()))

LOST_BY_ELECTION = NONE._replace(unclean_elections=1, expiries=1, foreign=1)


def _never_missing(offset: int, log_start: int, on_foreign: OnForeign, *, compacted: bool) -> bool:
    return False


def _accepting(base_offset: int, expected: int, on_foreign: OnForeign, *, located: bool) -> str:
    return "expected" if base_offset == expected else "shifted"


def _counting_records(batch: Batch) -> int:
    return wire_sequence(batch.base_sequence + batch.records - 1)


@pytest.mark.parametrize("on_foreign", ["halt", "expect", "continue"])
def test_no_interleaving_skips_or_doubles_silently(on_foreign: OnForeign) -> None:
    result = explore(on_foreign, Limits(), MOST_STATES)
    assert result.trace is None, "\n".join(result.trace)


@pytest.mark.parametrize("on_foreign", ["halt", "expect", "continue"])
def test_no_acknowledged_record_that_an_election_lost_stays_lost_silently(on_foreign: OnForeign) -> None:
    result = explore(on_foreign, LOST_BY_ELECTION, MOST_STATES)
    assert result.trace is None, "\n".join(result.trace)


@pytest.mark.parametrize("on_foreign", ["halt", "expect", "continue"])
@pytest.mark.parametrize(
    "limits", [Limits(foreign=0), LOST_BY_ELECTION._replace(foreign=0)], ids=["faults", "election"]
)
def test_two_links_into_one_partition_lose_and_double_none_of_each_others_records(
    limits: Limits, on_foreign: OnForeign
) -> None:
    """Of a mesh: each link's records are foreign to the other one, and both recover on their own."""
    result = explore(on_foreign, limits, MOST_STATES // 3, links=2)
    assert result.trace is None, "\n".join(result.trace)


def test_a_lost_record_that_counts_as_deleted_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    _finds(monkeypatch, "expect", LOST_BY_ELECTION, is_missing=_never_missing)


def test_an_emptied_log_that_is_believed_skips_records(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = decision.from_leader

    def believing(runs: Sequence[OffsetMapping], state: LogState, on_foreign: OnForeign = "halt") -> Any:
        if state.last_sequence is None and state.log_start == state.end:
            return Found(sequence_at_destination(runs[-1], state.end))
        return sound(runs, state, on_foreign)

    _finds(monkeypatch, "halt", NONE._replace(expiries=1, foreign=1, deletions=1), from_leader=believing)


def test_a_tail_that_is_not_replicated_is_copied_twice_if_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = decision.from_leader

    def seeing_what_can_be_read(runs: Sequence[OffsetMapping], state: LogState, on_foreign: OnForeign = "halt") -> Any:
        return sound(runs, state._replace(end=state.high_watermark), on_foreign)

    def never_waits(log_end: int, high_watermark: int) -> bool:
        return True

    _finds(
        monkeypatch, "halt", NONE._replace(expiries=1), from_leader=seeing_what_can_be_read, is_replicated=never_waits
    )


def test_a_compacted_batch_whose_records_are_counted_is_copied_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    _finds(monkeypatch, "expect", NONE._replace(expiries=1, compactions=1), last_sequence_of=_counting_records)


def test_an_offset_below_the_expected_one_that_is_accepted_hides_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    _finds(monkeypatch, "expect", NONE._replace(unclean=1), judge_append=_accepting)


def test_a_record_that_cannot_be_read_yet_counts_as_deleted_if_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_for_scans(outcome: object, on_foreign: OnForeign) -> bool:
        return isinstance(outcome, decision.Scan)

    monkeypatch.setattr(decision, "is_missing", _never_missing)  # the second net under the same fall
    _finds(monkeypatch, "expect", NONE._replace(foreign=1, elections=1), needs_replicas=only_for_scans)


@pytest.mark.parametrize(
    ("limits", "faults"),
    [
        (NONE._replace(unclean_elections=1), {"is_missing": _never_missing}),
        (NONE._replace(expiries=1, compactions=1), {"last_sequence_of": _counting_records}),
    ],
    ids=["a lost record counts as deleted", "records are counted"],
)
def test_what_is_broken_is_found_among_the_records_of_the_other_link_too(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, faults: dict[str, Callable[..., Any]]
) -> None:
    _finds(monkeypatch, "expect", limits, links=2, **faults)


def _finds(
    monkeypatch: pytest.MonkeyPatch, on_foreign: OnForeign, limits: Limits, links: int = 1, **faults: Callable[..., Any]
) -> Result:
    most = MOST_STATES // links**2
    sound = explore(on_foreign, limits, most, links)
    assert sound.trace is None, "\n".join(sound.trace)
    for name, fault in faults.items():
        monkeypatch.setattr(decision, name, fault)
    result = explore(on_foreign, limits, most, links)
    assert result.trace is not None, f"not found in {result.states} states"
    print(f"{result.states} states, {len(result.trace)} actions:", *result.trace, sep="\n  ")  # noqa: T201
    return result
