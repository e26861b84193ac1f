"""The checksum of a changed front is known without the rest."""

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from strait.wire.crc import changed

SAME_LENGTH = st.integers(0, 40).flatmap(lambda size: st.tuples(*[st.binary(min_size=size, max_size=size)] * 2))


@given(SAME_LENGTH, st.binary(max_size=300), st.integers(0, 5000))
def test_it_is_that_of_the_whole_whatever_the_rest(fronts: tuple[bytes, bytes], rest: bytes, times: int) -> None:
    before, after = fronts
    rest *= times
    assert changed(crc32c(before + rest), before, after, len(rest)) == crc32c(after + rest)


@given(st.integers(0, 1 << 25))
def test_zeros_of_any_number_may_follow(size: int) -> None:
    rest = bytes(size)
    assert changed(crc32c(b"a" + rest), b"a", b"b", size) == crc32c(b"b" + rest)


@given(st.binary(min_size=1, max_size=2000), st.integers(1, (1 << 32) - 1))
def test_a_wrong_checksum_stays_wrong(rest: bytes, error: int) -> None:
    crc = crc32c(b"a" + rest) ^ error
    assert changed(crc, b"a", b"b", len(rest)) == crc32c(b"b" + rest) ^ error
