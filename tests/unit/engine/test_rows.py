"""Small batches put together a reply at a time become what they become one by one."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.engine.rows import MERGE_BATCHES, MERGED_BYTES, plain_row, put_together
from strait.engine.shapes import Piece, Rules, Shape
from strait.engine.shaping import shape
from strait.errors import CorruptBatch
from strait.wire.records import Record
from support.batches import source_batch

RULES = Rules(1 << 20, 1 << 20)
TIMES = st.one_of(st.integers(0, 2**41), st.sampled_from((0, -(2**63), 2**63 - 1)))
FIELDS = st.one_of(st.none(), st.binary(max_size=40), st.sampled_from((b"", bytes(70), bytes(9_000))))
HEADERS = st.lists(st.tuples(st.text("ab\udcff", max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2)


@st.composite
def replies(draw: st.DrawFn) -> tuple[memoryview, int]:
    """Batches of a few records each, some offsets missing between them; and the first offset."""
    first = offset = draw(st.integers(0, 2**40))
    near, made = draw(TIMES), bytearray()
    for count in draw(st.lists(st.sampled_from((1, 1, 1, 2, 9)), min_size=1, max_size=60)):
        records = [
            Record(offset + number, draw(st.sampled_from((near, near + 5)) if 0 <= near < 2**41 else TIMES),
                   draw(FIELDS), draw(FIELDS), tuple(draw(HEADERS)))
            for number in range(count)
        ]  # fmt: skip
        made += source_batch(records, offset, offset + count, producer_id=draw(st.sampled_from((-1, 7))))
        offset += count + draw(st.sampled_from((0, 0, 0, 3)))
    return memoryview(made[: len(made) - draw(st.sampled_from((0, 0, 10)))]), first


def told(shapes: Iterator[Shape]) -> list[object]:
    found: list[object] = []
    try:
        for item in shapes:
            if isinstance(item, Piece):
                data = bytes(item.batch.view), item.memory is None
                found.append((data, list(item.stretches), item.position, item.crcs, item.epoch))
            else:
                found.append(item)
    except CorruptBatch as error:
        found.append(str(error))
    return found


def by_reading_each(records: memoryview, position: int, rules: Rules) -> list[object]:
    """Every record read and built again by the compiled codec."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("strait.engine.shaping.Row.of", lambda *_, **__: None)
        return told(shape(records, position, (), rules))


@given(replies(), st.sampled_from((RULES, RULES._replace(codec=3), RULES._replace(max_batch_bytes=2_000))))
def test_the_same_batches_come_out_as_one_by_one(reply: tuple[memoryview, int], rules: Rules) -> None:
    records, position = reply
    assert told(shape(records, position, (), rules)) == by_reading_each(records, position, rules)


@given(replies(), st.data())
def test_damage_is_told_as_one_by_one(reply: tuple[memoryview, int], data: st.DataObject) -> None:
    records, position = reply
    damaged = bytearray(records)
    if damaged:
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    there = told(shape(memoryview(damaged), position, (), RULES))
    expected = by_reading_each(memoryview(damaged), position, RULES)
    if there != expected:  # what comes behind a length that cannot be right is left for the next reply, to be told then
        assert there[-1] != expected[-1]
        assert there[:-1] == expected[: len(there) - 1]


def singles(count: int, size: int = 200) -> memoryview:
    return memoryview(
        bytearray().join(source_batch([Record(n, n, b"k", bytes(size), ())], n, n + 1) for n in range(count))
    )


def test_a_reply_of_nothing_else_is_put_together() -> None:
    records = singles(5_000)
    row = plain_row(records, 0, RULES)
    assert row is not None
    pieces = list(put_together(row, RULES) or ())
    assert all(isinstance(piece, Piece) and piece.batch.length < MERGED_BYTES + 300 for piece in pieces)
    assert len(pieces) == -(-len(records) // MERGED_BYTES)


@pytest.mark.parametrize(
    "rules",
    [
        RULES._replace(apart=(3, 4)),
        RULES._replace(left_out={7: True}),
        RULES._replace(left_out={-1: True}),
    ],
)
def test_what_needs_a_look_at_each_is_taken_one_by_one(rules: Rules) -> None:
    assert plain_row(singles(10), 0, rules) is None


def test_so_is_what_begins_before_the_position_and_what_is_too_little() -> None:
    assert plain_row(singles(10), 1, RULES) is None
    assert plain_row(singles(MERGE_BATCHES - 1), 0, RULES) is None


def test_batches_of_judged_producers_are_put_together() -> None:
    assert plain_row(singles(10), 0, RULES._replace(left_out={-1: False})) is not None
