"""Which records of a lost source one cluster has and another one lacks, by the two offset maps alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.model import TopicPartition
from strait.planning.failover import Verdict
from strait.planning.held_elsewhere import Reach, by_topic, described, elsewhere, held
from strait.reasons import Reason
from strait.state.failover_records import HeldElsewhere
from strait.state.offset_map import Gap, locate, pack
from strait.state.schema import Loss
from strait.state.translation import Translator
from support.model.reports import plain_run

PLACE = TopicPartition("t", 0)


def reach(offset: int | None, written: int = 0, **remarkable: Any) -> Reach:
    return Reach(**{"offset": offset, "exact": True, "detail": "", "written": written, "source_id": "s"} | remarkable)


def loss(first: int, end: int, cause: Reason) -> Loss:
    return Loss(
        link="c-to-a", topic="t", partition=0, side="source", cause=cause, from_offset=first, to_offset=end,
        at_ms=0, action="continued", detail="",
    )  # fmt: skip


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 9))
def test_just_the_records_between_the_two_positions_are_named(
    missing: list[int], mine: int, theirs: int, others: int
) -> None:
    """``missing``: offsets without a record before each record of the source; each link has copied that many of them,
    and the other cluster holds ``others`` records of other producers before them."""
    sources, at = [], 0
    for gap in missing:
        at += gap
        sources.append(at)
        at += 1
    mine, theirs = min(mine, len(sources)), min(theirs, len(sources))
    gaps = [
        Gap(number, offset)
        for number, offset in enumerate(sources)
        if number and offset != sources[number - 1] + 1 and number <= theirs
    ]
    run = plain_run(
        source_base=sources[0], destination_base=others, sequence_base=0, sequence_end=theirs,
        gaps=pack(gaps, sequence_base=0, source_base=sources[0]),
    )  # fmt: skip
    position = locate([run], theirs)
    own = sources[mine - 1] + 1 if mine else 0
    found = held(PLACE, "copy", reach(own, mine), reach(position, theirs), Translator([run], theirs), [])
    if mine >= theirs:
        assert found is None or not found.records
    else:
        assert found is not None and found.part.exact
        assert (found.first, found.end) == (mine, theirs)
        assert [locate([run], number + 1) - 1 for number in range(found.first, found.end)] == sources[mine:theirs]


@pytest.mark.parametrize(
    ("mine", "theirs", "losses", "says"),
    [
        (reach(None, exact=False, detail="gone"), reach(90, 90), [], "gone"),
        (reach(50, 50, exact=False), reach(90, 90), [], "this link is not exact"),
        (reach(50, 50), reach(90, 90, exact=False, detail="several places"), [], "several places"),
        (reach(50, 50, source_id="older"), reach(90, 90), [], "different source topics"),
        (reach(50, 50), reach(90, 90), [loss(60, 70, Reason.TAIL_COPIED)], "offsets 60 to 69 (tail_copied)"),
    ],
)
def test_what_is_not_exact_is_named_and_not_copied(mine: Reach, theirs: Reach, losses: list[Loss], says: str) -> None:
    translator = Translator([plain_run(sequence_end=90)], 90)
    found = held(PLACE, "copy", mine, theirs, translator, losses)
    assert found is not None and not found.part.exact
    assert says in found.part.detail


def test_losses_outside_of_the_range_do_not_matter() -> None:
    translator = Translator([plain_run(sequence_end=90)], 90)
    losses = [loss(10, 50, Reason.TAIL_DROPPED), loss(90, 95, Reason.SOURCE_DATA_LOST)]
    found = held(PLACE, "copy", reach(50, 50), reach(90, 90), translator, losses)
    assert found is not None and found.part.exact and found.records == 40
    assert held(PLACE, "copy", reach(90, 90), reach(90, 90), translator, losses) is None
    assert by_topic("c-to-a", [found, found]) == (HeldElsewhere(link="c-to-a", topic="t", records=80),)


def test_a_failover_names_who_has_what_is_missing_and_how_to_copy_it() -> None:
    found = [HeldElsewhere(link="c-to-a", topic="t", records=40), HeldElsewhere(link="c-to-d", topic="u", records=2)]
    first, second = described("c-to-b", found)
    assert first.startswith("link c-to-a has 40 missing records (t 40): strait tail copy c-to-b --from c-to-a")
    assert "c-to-d" in second
    check = elsewhere("c-to-b", found, {"c-to-e": "cluster e: away"})
    assert check.verdict is Verdict.WARNING and "unknown of link c-to-e: cluster e: away" in check.detail
    assert elsewhere("c-to-b", [], {}).verdict is Verdict.DONE
