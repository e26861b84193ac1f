"""Where a link continues if its map is gone and a compacted source has lost the record that it copied last."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.engine.recovery import decision
from strait.planning.map_rebuild.continuing import Continuation, from_newest_exact
from strait.planning.map_rebuild.matching import Item, Stretch
from strait.state.offset_map import covering, destination_offset, locate
from strait.state.schema import OffsetMapping
from support.model.reports import plain_run


def continuation(exact: Sequence[Stretch], copy: Sequence[Item], *, whole: bool = True, confirmed: int = 0) -> object:
    return from_newest_exact(plain_run(), exact, copy, 0, whole=whole, confirmed=confirmed)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=30),
    st.integers(0, 5),
    st.integers(0, 9),
)
def test_no_record_is_skipped_and_what_is_exact_is_not_copied_again(
    records: list[tuple[int, bool]], lost: int, shift: int
) -> None:
    """``records``: each with the offsets missing before it on the source, and whether the source still has it. ``lost``:
    so many of the last ones it does not. The copy begins at ``shift``."""
    sources, at = [], 0
    for missing, _ in records:
        at += missing
        sources.append(at)
        at += 1
    held = [there and number < len(records) - lost for number, (_, there) in enumerate(records)]
    exact = [Stretch(number, sources[number], number + shift, 1) for number in range(len(records)) if held[number]]
    copy = [Item(shift, len(records), None, 0, end=shift + len(records))]
    found = continuation(exact, copy)
    assert isinstance(found, Continuation)
    first = len(records) - next((at for at, one in enumerate(reversed(held)) if one), len(records))
    assert all(offset >= found.position for offset in sources[first:])
    assert all(offset < found.position for offset in sources[:first])
    assert found.again == (shift + first, shift + len(records))
    runs: list[OffsetMapping] = sorted(found.entries, key=lambda run: run.sequence_base)
    assert decision.checkpoint_of(runs) == first
    assert locate(runs, first) == found.position
    number = len(records)  # the broker knows it: the log must end where the map has it
    assert destination_offset(covering(runs, number), number) == shift + number
    assert not decision.map_is_enough(runs, number, 1, compacted=True) or first == number


@pytest.mark.parametrize(("whole", "confirmed", "says"), [(False, 0, "start offset"), (True, 1, "without `--all`")])
def test_without_a_record_in_common_nothing_is_guessed(whole: bool, confirmed: int, says: str) -> None:
    copy = [Item(0, 5, None, 0, end=5)]
    found = continuation([], copy, whole=whole, confirmed=confirmed)
    assert isinstance(found, str) and says in found
