"""What changing the front of some bytes does to their CRC-32C, without looking at the rest.

A CRC is linear: the CRCs of two texts of one length differ by the CRC of their difference, and zeros behind a
difference turn that into another by a linear map that depends on their number alone. So a batch is made the link's own
for the cost of its header, however large it is; and its checksum still vouches for every byte from the producer to the
destination, also against damage in this process.
"""

from crc32c import crc32c

_POLYNOMIAL = 0x82F63B78  # Castagnoli, the lowest bit for the highest power
_DIGIT_BITS = 4
_DIGITS = 1 << _DIGIT_BITS
_PLACES = 8  # numbers of zeros below 2^32: no frame is larger

_Map = tuple[list[int], list[int], list[int], list[int]]
"""A linear map of 32 bits to 32 bits: for each byte, lowest first, what each value of it adds."""


def changed(crc: int, before: memoryview | bytes, after: memoryview | bytes, rest_bytes: int) -> int:
    """The CRC-32C of ``after`` and the rest, where ``crc`` is that of ``before`` and the same rest of so many bytes.

    Right or wrong: where ``crc`` was not that of the bytes before, the answer is not that of the bytes after.
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
    """``columns``: what each of the 32 bits becomes, lowest first."""
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
    """[place][digit]: the map of digit * 16 ** place zeros."""
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
