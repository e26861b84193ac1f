"""Small batches put together a reply at a time become what they become one by one."""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.errors import CorruptBatch
from strait.wire import rebatch
from strait.wire.batch import HEADER_BYTES, TRANSACTIONAL, split_batches
from strait.wire.joining import COMPILED
from strait.wire.merge import MERGE_BATCHES, MERGED_BYTES, plain_row, put_together
from strait.wire.rebatch import MERGE_RECORDS_PER_BATCH, shape
from strait.wire.records import Record, read_records
from strait.wire.shapes import Piece, Rules, Shape
from support.model.batches import source_batch

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
    """Record by record, wherever one batch ends and the next begins."""
    found: list[object] = []
    try:
        for item in shapes:
            if isinstance(item, Piece):
                found += records_told(item)
            else:
                found.append(item)
    except CorruptBatch as error:
        found.append(str(error))
    return found


def records_told(piece: Piece) -> list[object]:
    """Each with its source offset; what cannot be read is told by its bytes."""
    offsets = [stretch.source + number for stretch in piece.stretches for number in range(stretch.records)]
    assert piece.position == offsets[-1] + 1
    try:
        records = read_records(piece.batch)
    except CorruptBatch:  # it passes as it is, and the destination refuses it
        return [bytes(piece.batch.view[HEADER_BYTES:])]
    if piece.memory is not None:  # it was made here
        assert [record.offset for record in records] == list(range(len(offsets)))
        assert piece.batch.max_timestamp == max(record.timestamp_ms for record in records)
    return [(offset, *record[1:]) for offset, record in zip(offsets, records, strict=True)]


def sums_told(pieces: list[Piece]) -> tuple[bytes, tuple[int, int] | None]:
    """The checksums of all source batches, and where the last piece ends: offset and epoch."""
    end = (pieces[-1].position, pieces[-1].epoch) if pieces else None
    return b"".join(piece.crcs for piece in pieces), end


def made_of(pieces: list[Piece]) -> set[bytes]:
    return {bytes(piece.batch.view) for piece in pieces if piece.memory is not None}


def by_reading_each(records: memoryview, position: int, rules: Rules) -> list[object]:
    """Every record read and built again by the compiled codec."""
    with none_joined():
        return told(shape(records, position, (), rules))


@contextmanager
def none_joined() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("strait.wire.rebatch.Row.of", lambda *_, **__: None)
        yield


@given(replies(), st.sampled_from((RULES, RULES._replace(codec=3), RULES._replace(max_batch_bytes=2_000))))
def test_the_same_batches_come_out_as_one_by_one(reply: tuple[memoryview, int], rules: Rules) -> None:
    records, position = reply
    assert told(shape(records, position, (), rules)) == by_reading_each(records, position, rules)
    joined = pieces_of(records, rules)
    with none_joined():
        built = pieces_of(records, rules)
    assert sums_told(joined) == sums_told(built)
    assert made_of(built) <= made_of(joined)  # byte by byte; what is left at the end is joined besides


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


compiled = pytest.mark.skipif(not COMPILED, reason="strait.wire.moving was not compiled: no C compiler on this machine")


def test_the_compiled_step_is_there_where_a_compiler_is() -> None:
    assert COMPILED or shutil.which("gcc") is None


def singles(count: int, size: int = 200) -> memoryview:
    return memoryview(
        bytearray().join(source_batch([Record(n, n, b"k", bytes(size), ())], n, n + 1) for n in range(count))
    )


@compiled
def test_a_reply_of_nothing_else_is_put_together() -> None:
    records = singles(5_000)
    row = plain_row(records, 0, RULES)
    assert row is not None
    pieces = list(put_together(row, RULES))
    assert all(isinstance(piece, Piece) and piece.batch.length < MERGED_BYTES + 300 for piece in pieces)
    assert all(isinstance(piece, Piece) and piece.memory is not None for piece in pieces)  # none holds the whole reply
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


@compiled
def test_batches_of_judged_producers_are_put_together() -> None:
    assert plain_row(singles(10), 0, RULES._replace(left_out={-1: False})) is not None


@compiled
@pytest.mark.parametrize("largest", [1 << 20, 1_000])
def test_a_group_of_several_pieces_has_each_batch_once(largest: int) -> None:
    group = list(split_batches(singles(3_000)))
    found = list(rebatch._together(group, RULES._replace(max_batch_bytes=largest)))
    assert len(found) > 1
    assert sum(item.batch.records if isinstance(item, Piece) else len(item) for item in found) == len(group)


MANY = MERGE_RECORDS_PER_BATCH + 76


def many(batches: int = 12, *, codec: int = 0, attributes: int = 0) -> bytearray:
    """Batches as producers of small records make them by default."""
    made = bytearray()
    for first in range(0, batches * MANY, MANY):
        records = [Record(first + n, 5_000 + n, b"%d" % (first + n), bytes(90), ()) for n in range(MANY)]
        made += source_batch(records, first, first + MANY, codec=codec, attributes=attributes, producer_id=7)
    return made


def pieces_of(data: bytearray | memoryview, rules: Rules = RULES) -> list[Piece]:
    first = int.from_bytes(data[:8], "big")
    return [item for item in shape(memoryview(data), first, (), rules) if isinstance(item, Piece)]


def records_of(data: bytes | bytearray | memoryview) -> list[Record]:
    return [record for batch in split_batches(memoryview(data)) for record in read_records(batch)]


@compiled
@pytest.mark.parametrize("attributes", [0, TRANSACTIONAL])
def test_batches_of_many_small_records_are_put_together_where_that_needs_no_look_at_each(attributes: int) -> None:
    data = many(attributes=attributes)
    (piece,) = pieces_of(data)
    assert records_of(piece.batch.view) == records_of(data)
    assert piece.position == 12 * MANY


def test_batches_of_many_records_pass_where_it_does() -> None:
    assert len(pieces_of(many(codec=3))) == 12
    small = RULES._replace(max_batch_bytes=len(many(2)))
    assert all(piece.memory is None for piece in pieces_of(many(), small))


def test_a_damaged_one_among_many_is_neither_joined_nor_hidden() -> None:
    data = many()
    data[len(data) // 2] ^= 1  # in a value, so that only the checksum tells
    assert [bytes(piece.batch.view) for piece in pieces_of(data)] == [
        bytes(batch.view) for batch in split_batches(memoryview(data), checked_to=0)
    ]  # and the destination refuses it, for the checksum is as it was


@compiled
@given(replies(), st.integers(0, 2**32), st.integers(1, 4))
def test_whatever_is_damaged_moves_no_byte_that_was_not_there(
    reply: tuple[memoryview, int], seed: int, strokes: int
) -> None:
    """Also what the checksums would have told."""
    from strait.wire.moving import moved

    rng, raw = random.Random(seed), bytearray(reply[0])
    for _ in range(strokes):
        at = rng.randrange(len(raw) + 1)
        raw[at : at + rng.choice((0, 1, 8))] = rng.choice(
            (b"", b"\xff", b"\x80" * 10, rng.randbytes(3), raw[at : at + 60])
        )
    found = moved(raw)
    if found is not None:
        batch, _, _, records = found
        assert batch[:HEADER_BYTES] == bytes(HEADER_BYTES)
        assert HEADER_BYTES + 7 * records <= len(batch) <= len(raw) + 17 * records
