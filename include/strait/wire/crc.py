"""Computes the CRC-32C of bytes whose front has changed, without reading the rest.

A CRC is linear: the CRCs of two texts of one length differ by the CRC of their difference, and zeros appended to a
difference transform its CRC by a linear map that depends only on their number. So making a batch the link's own costs
only its header, however large it is; and its checksum still detects corruption of any byte from the producer to the
destination, including corruption in this process.
"""

from crc32c import crc32c

_POLYNOMIAL = 0x82F63B78  # Castagnoli, the lowest bit for the highest power
_DIGIT_BITS = 4
_DIGITS = 1 << _DIGIT_BITS
_PLACES = 8  # numbers of zeros below 2^32: no frame is larger

_Map = tuple[list[int], list[int], list[int], list[int]]
"""A linear map of 32 bits to 32 bits: for each byte, lowest first, the contribution of each of its values."""


def changed(crc: int, before: memoryview | bytes, after: memoryview | bytes, rest_bytes: int) -> int:
    """Return the CRC-32C of ``after`` and the rest, given ``crc`` of ``before`` and the same rest of ``rest_bytes``.

    If ``crc`` did not match the bytes before, the result does not match the bytes after.
    """
    difference: int = crc32c(before) ^ crc32c(after)
    place = 0
    while rest_bytes:
        digit = rest_bytes & (_DIGITS - 1)
        if digit:
            difference = _apply(_MAPS[place][digit], difference)
        rest_bytes >>= _DIGIT_BITS
        place += 1
    return crc ^ difference


def _apply(linear: _Map, value: int) -> int:
    a, b, c, d = linear
    return a[value & 255] ^ b[value >> 8 & 255] ^ c[value >> 16 & 255] ^ d[value >> 24]


def _map_of(columns: list[int]) -> _Map:
    """Return the map with these ``columns``: the image of each of the 32 bits, lowest first."""
    tables = []
    for at in range(0, 32, 8):
        table = [0]
        for column in columns[at : at + 8]:
            table += [column ^ value for value in table]
        tables.append(table)
    a, b, c, d = tables
    return a, b, c, d


def _after(second: _Map, columns: list[int]) -> list[int]:
    return [_apply(second, column) for column in columns]


def _one_zero() -> list[int]:
    columns = []
    for bit in range(32):
        value = 1 << bit
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        columns.append(value)
    return columns


def _maps() -> list[list[_Map]]:
    """Return [place][digit]: the map of digit * 16 ** place zero bytes."""
    found = []
    columns = _one_zero()
    for _ in range(_PLACES):
        once = _map_of(columns)
        of_place = [_map_of([1 << bit for bit in range(32)]), once]
        for _ in range(2, _DIGITS):
            columns = _after(once, columns)
            of_place.append(_map_of(columns))
        columns = _after(once, columns)
        found.append(of_place)
    return found


_MAPS = _maps()
