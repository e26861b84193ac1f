"""The memory of a pool's task: those that need it share it, and nobody is left without."""

from hypothesis import given
from hypothesis import strategies as st

from strait.engine.pool_task import FLOOR_BYTES, divided

MIB = 1 << 20


@given(st.integers(16 * MIB, 1 << 34), st.lists(st.booleans(), max_size=200))
def test_parts_stay_within_the_whole_and_everyone_has_one(total: int, short: list[bool]) -> None:
    parts = divided(total, short)
    assert len(parts) == len(short)
    assert sum(parts) <= total
    assert all(part > 0 for part in parts)
    if short:
        smallest = min(FLOOR_BYTES, total // (2 * len(short)))
        assert all(part >= smallest for part in parts)
        busy = {part for part, is_short in zip(parts, short, strict=True) if is_short}
        assert len(busy) <= 1, "those that are short get equal parts"


def test_one_backlog_among_idle_links_gets_nearly_all() -> None:
    assert divided(256 * MIB, [True] + [False] * 19)[0] == 237 * MIB
    assert (
        divided(256 * MIB, [False] * 20) == [256 * MIB // 20] * 20 or sum(divided(256 * MIB, [False] * 20)) <= 256 * MIB
    )
