"""Codecs: what comes back, what is refused, and that a small bomb costs little."""

import tracemalloc

import cramjam
import pytest
from aiokafka import codec as independent
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.errors import CorruptBatch
from strait.wire.compression import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
)

CODECS = range(5)
PACKED = (GZIP, SNAPPY, LZ4, ZSTD)
BOMB_BYTES = 64 << 20


@given(st.one_of(st.binary(max_size=300), st.integers(0, 200_000).map(bytes)), st.sampled_from(CODECS))
@settings(deadline=None)
def test_bytes_come_back(data: bytes, codec: int) -> None:
    assert decompress(memoryview(bytes(compress(data, codec))), codec) == data


@pytest.mark.parametrize("size", [0, 1, 32 << 10, 100_000])
def test_other_clients_read_and_write_the_same(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    readers = {GZIP: independent.gzip_decode, SNAPPY: independent.snappy_decode}
    readers |= {LZ4: independent.lz4_decode, ZSTD: independent.zstd_decode}
    writers = {GZIP: independent.gzip_encode, SNAPPY: independent.snappy_encode}
    writers |= {LZ4: independent.lz4_encode, ZSTD: independent.zstd_encode}
    for codec in PACKED:
        if size or codec != SNAPPY:  # that reader knows a stream without blocks for one raw block
            assert readers[codec](bytes(compress(data, codec))) == data
        assert decompress(memoryview(writers[codec](data)), codec) == data
    assert decompress(memoryview(bytes(cramjam.snappy.compress_raw(data))), SNAPPY) == data


def test_gzip_in_several_members_is_read_as_java_does() -> None:
    both = bytes(compress(b"one, ", GZIP)) + bytes(compress(b"two", GZIP))
    assert bytes(decompress(memoryview(both), GZIP)) == b"one, two"


@pytest.mark.parametrize("codec", PACKED)
def test_cut_or_followed_by_other_bytes_it_is_corrupt(codec: int) -> None:
    raw = bytes(compress(b"the records, " * 10_000, codec))
    for cut in {0, 1, 7, 16, len(raw) // 2, len(raw) - 1} - ({0} if codec == GZIP else set()):
        if codec == SNAPPY and cut == len(b"\x82SNAPPY\0") * 2:
            continue  # a stream header alone holds nothing
        with pytest.raises(CorruptBatch):
            decompress(memoryview(raw[:cut]), codec)
    with pytest.raises(CorruptBatch):
        decompress(memoryview(raw + b"more"), codec)


@pytest.mark.parametrize("codec", [*PACKED, -SNAPPY])
def test_a_bomb_is_refused_at_the_limit_and_costs_no_more_memory(codec: int) -> None:
    data = bytes(BOMB_BYTES)
    raw = bytes(cramjam.snappy.compress_raw(data) if codec < 0 else compress(data, codec))
    del data
    limit = 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch):
            decompress(memoryview(raw), abs(codec), limit=limit)
        assert tracemalloc.get_traced_memory()[1] < 4 * limit + (len(raw) if codec == GZIP else 0)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", PACKED)
def test_the_limit_itself_is_allowed(codec: int) -> None:
    raw = bytes(compress(bytes(100_000), codec))
    assert decompress(memoryview(raw), codec, limit=100_000) == bytes(100_000)
    with pytest.raises(CorruptBatch):
        decompress(memoryview(raw), codec, limit=99_999)


def test_codecs_that_kafka_does_not_have() -> None:
    with pytest.raises(CorruptBatch, match="codec 5"):
        decompress(memoryview(b""), 5)
    with pytest.raises(ValueError, match="no codec 5"):
        compress(b"", 5)


@given(st.binary(max_size=200), st.sampled_from(PACKED), st.booleans())
@settings(deadline=None)
def test_random_bytes_are_decompressed_or_corrupt(raw: bytes, codec: int, xerial: bool) -> None:
    if xerial and codec == SNAPPY:
        raw = b"\x82SNAPPY\0" + raw
    try:
        decompress(memoryview(raw), codec, limit=1 << 20)
    except CorruptBatch:
        return
