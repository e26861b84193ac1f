"""Text forms of the gaps of an offset segment, compressed and in base64. Pure.

One has two numbers for each gap: the records since the one before, and the offsets that hold none. The other, marked by
``!`` at its start, has one bit for each offset, 1 for a record; it takes less if gaps are many and random. Older versions cannot read it,
so only segments of transformed records have it, which they cannot read either.
"""

import base64
import binascii
import zlib
from array import array
from collections.abc import Iterator
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from cachetools import LRUCache, cached

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_GAPS = 50_000
"""Maximum in one segment. With two numbers for each gap, they always fit into `_UNPACKED_BYTES`."""
_UNPACKED_BYTES = 1 << 20
_NUMBER_BYTES = 9  # for 63 bits
_PIECE_BYTES = 1 << 14
_KEPT_BYTES = 32 << 20  # of unpacked gaps
_QUICKLY = 64 << 10
"""From this many bytes on, the fastest compression: the best takes ten times as long, for a tenth of the size."""
_BITS = "!"
_MOST_BITS = 1 << 19


class Gaps(NamedTuple):
    """For each gap the number of records between the segment's base and it, and of offsets without a record up to it. Both
    ascend."""

    starts: "array[int]"
    missing: "array[int]"


def pack(gaps: Gaps, *, bits: bool = False) -> str:
    """Return the text: with ``bits``, in the shorter form. Raises ValueError if the gaps do not ascend or are too many."""
    if not gaps.starts:
        return ""
    import numpy as np  # 20 MiB in each of Airflow's processes, which most links' maps do not need

    starts, missing = np.asarray(gaps.starts), np.asarray(gaps.missing)
    numbers = np.empty(2 * len(starts), np.int64)
    numbers[::2] = np.diff(starts, prepend=0)
    numbers[1::2] = np.diff(missing, prepend=0)
    if len(wrong := np.flatnonzero(numbers <= 0)):
        at = int(wrong[0]) // 2
        raise ValueError(
            f"gap {at} at {starts[at]}, with {missing[at]} missing before its end, does not lie behind the one before it"
        )
    data = _encoded(numbers)
    if len(data) > _UNPACKED_BYTES:
        raise ValueError(f"a run with {len(data):,} bytes of gaps could not be read")
    text = _text(data)
    if bits and int(numbers.sum()) < min(8 * len(data), _MOST_BITS):
        text = min(text, _BITS + _text(_as_bits(numbers)), key=len)
    return text


@cached(LRUCache(_KEPT_BYTES, getsizeof=lambda kept: 512 + 16 * len(kept.starts)), lock=Lock())
def unpack(text: str) -> Gaps:
    """Return the gaps of a text. Raises ValueError."""
    starts, missing = array("q"), array("q")
    if not text:
        return Gaps(starts, missing)
    data = _data_of(text)
    start = lacking = 0
    for records, gap in _of_bits(data) if text.startswith(_BITS) else _pairs(data):
        reached, sums = start + records.cumsum(), lacking + gap.cumsum()
        if min(reached.min(), sums.min(), (reached + sums).min()) < 0:  # a sum of 64 bits that overflows
            raise ValueError("gaps reach beyond any offset")
        starts.frombytes(reached.tobytes())
        missing.frombytes(sums.tobytes())
        start, lacking = starts[-1], missing[-1]
    return Gaps(starts, missing)


def check(text: str) -> None:
    """Raise ValueError if `unpack` does. For the form with bits this takes a tenth of the time."""
    if text.startswith(_BITS):
        _require_gaps(_data_of(text))
    else:
        unpack(text)


def _data_of(text: str) -> bytes:
    bits = text.startswith(_BITS)
    try:
        opened = zlib.decompressobj()
        packed = base64.b64decode(text.removeprefix(_BITS), validate=True)
        data = opened.decompress(packed, _MOST_BITS // 8 if bits else _UNPACKED_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"gaps are not what was packed: {error}") from None
    if not opened.eof:
        raise ValueError("gaps are cut short")
    return data


def _require_gaps(bits: bytes) -> None:
    """Raise ValueError unless records are first and last, and some offset holds none."""
    if not (bits and bits[0] & 0x80 and bits[-1] & 1 and bits.strip(b"\xff")):
        raise ValueError("gaps are not between records")


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 1 if len(data) >= _QUICKLY else 9)).decode()


def _as_bits(numbers: "NDArray[np.int64]") -> bytes:
    """Return a bit for each offset up to the last gap's end, and records that fill up the last byte, at least one."""
    import numpy as np

    bits = np.repeat(np.arange(len(numbers) + 1) % 2 == 0, np.append(numbers, 8 - numbers.sum() % 8))
    return np.packbits(bits).tobytes()


def _of_bits(data: bytes) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]":
    import numpy as np

    _require_gaps(data)
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    numbers = np.diff(np.flatnonzero(np.diff(bits)) + 1, prepend=0)
    yield numbers[::2], numbers[1::2]


def _encoded(numbers: "NDArray[np.int64]") -> bytes:
    import numpy as np

    sizes = np.ones(len(numbers), np.int64)
    for size in range(1, _NUMBER_BYTES):
        longer = numbers >> 7 * size > 0
        if not longer.any():
            break
        sizes += longer
    ends = np.cumsum(sizes)
    data = np.empty(int(ends[-1]), np.uint8)
    for at in range(int(sizes.max())):
        has = sizes > at
        data[(ends - sizes)[has] + at] = numbers[has] >> 7 * at & 0x7F | np.where(sizes[has] > at + 1, 0x80, 0)
    return data.tobytes()


def _pairs(data: bytes) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]":
    """Yield the two numbers of each gap, of some thousand gaps at a time: all of them would take ten times the text's size
    several times over."""
    import numpy as np

    at = 0
    while at < len(data):
        piece = np.frombuffer(data, np.uint8, min(_PIECE_BYTES, len(data) - at), at)
        ends = np.flatnonzero(piece < 0x80) + 1
        if at + len(piece) < len(data):
            ends = ends[: len(ends) // 2 * 2]  # the rest with the next ones
        if not len(ends):
            if len(piece) >= _NUMBER_BYTES:
                raise ValueError("gaps hold a number of more than 63 bits")
            return
        starts = np.concatenate(([0], ends[:-1]))
        lengths = ends - starts
        if lengths.max() > _NUMBER_BYTES:
            raise ValueError("gaps hold a number of more than 63 bits")
        numbers = np.zeros(len(ends), np.int64)
        for place in range(int(lengths.max())):
            longer = lengths > place
            numbers[longer] |= (piece[starts[longer] + place] & np.int64(0x7F)) << np.int64(7 * place)
        yield numbers[::2], numbers[1::2] if len(numbers) % 2 == 0 else np.append(numbers[1::2], 0)
        at += int(ends[-1])
