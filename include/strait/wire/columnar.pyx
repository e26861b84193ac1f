# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Records in machine code: taken apart into columns, and put together from columns, for topics that are transformed.

A column of bytes is as Apache Arrow has it: the bytes of all rows one after the other, and where each row's begin.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from strait.wire.varints cimport read, width, write, zigzag

cdef enum:
    INT_BYTES = 5  # at most, of a varint of 32 bits
    LONG_BYTES = 10  # and of 64


cdef struct Column:
    uint8_t* data
    int32_t* starts
    uint8_t* valid
    int64_t used


cdef inline const uint8_t* take(const uint8_t* at, const uint8_t* end, Column* to, int64_t row) noexcept nogil:
    """Append a key or a value to its column. NULL where it does not end before ``end``."""
    cdef int64_t size
    at = read(at, end, INT_BYTES, &size)
    if at == NULL or size < -1 or size > end - at:
        return NULL
    to.valid[row] = size >= 0
    if size > 0:
        memcpy(to.data + to.used, at, size)
        to.used += size
        at += size
    to.starts[row + 1] = <int32_t> to.used
    return at


cdef bint are_headers(const uint8_t* at, const uint8_t* end) noexcept nogil:
    cdef int64_t count, size
    cdef int64_t index
    at = read(at, end, INT_BYTES, &count)
    if at == NULL or count < 0:
        return False
    for index in range(count):
        at = read(at, end, INT_BYTES, &size)
        if at == NULL or size < 0 or size > end - at:
            return False
        at = read(at + size, end, INT_BYTES, &size)
        if at == NULL or size < -1 or size > end - at:
            return False
        if size > 0:
            at += size
    return at == end


cdef int64_t take_apart(
    const uint8_t* at, const uint8_t* end, int64_t records, uint64_t base_ms, int64_t row, int64_t* times,
    Column* keys, Column* values, Column* headers
) noexcept nogil:
    """Append the records to the columns from ``row`` on. Return the next row; -1 where a record is not as it must be."""
    cdef const uint8_t* behind
    cdef int64_t length, delta, index, offset
    for index in range(records):
        at = read(at, end, INT_BYTES, &length)
        if at == NULL or length < 1 or length > end - at:
            return -1
        behind = at + length
        at = read(at + 1, behind, LONG_BYTES, &delta)  # after the attributes, which have no bit in use
        if at == NULL:
            return -1
        times[row] = <int64_t> (base_ms + <uint64_t> delta)  # it wraps in 64 bits, as it does where it is read
        at = read(at, behind, INT_BYTES, &offset)
        if at == NULL or offset != index:
            return -1
        at = take(at, behind, keys, row)
        if at == NULL:
            return -1
        at = take(at, behind, values, row)
        if at == NULL or not are_headers(at, behind):
            return -1
        memcpy(headers.data + headers.used, at, behind - at)
        headers.used += behind - at
        headers.starts[row + 1] = <int32_t> headers.used
        at = behind
        row += 1
    return row if at == end else -1


cdef Column column(uint8_t[::1] data, int32_t[::1] starts, uint8_t[::1] valid, int64_t row):
    return Column(&data[0], &starts[0], &valid[0], starts[row])


def decoded(
    const uint8_t[::1] data, int64_t records, int64_t base_ms, int64_t row, int64_t[::1] times, list keys, list values,
    list headers
):
    """Append the records of a decompressed batch to columns.

    Args:
        data: at least one byte.
        row: of the first of them.
        times: of each row.
        keys, values, headers: the bytes of all rows, with room for all of ``data``; the row's first byte, one more than rows;
            whether the row has any bytes at all (of headers not used). Headers are as in the batch: a count, and pairs.

    Returns:
        The next row; -1 where a record is not as it must be: the offset deltas have to count from 0.
    """
    cdef Column key = column(keys[0], keys[1], keys[2], row)
    cdef Column value = column(values[0], values[1], values[2], row)
    cdef Column header = column(headers[0], headers[1], headers[2], row)
    cdef int64_t* time = &times[0]
    cdef const uint8_t* at = &data[0]
    cdef int64_t size = data.shape[0]
    with nogil:
        row = take_apart(at, at + size, records, <uint64_t> base_ms, row, time, &key, &value, &header)
    return row


cdef inline int64_t size_of(const int32_t* starts, const uint8_t* valid, int64_t row) noexcept nogil:
    """Of a key or a value; -1: it is null."""
    return starts[row + 1] - starts[row] if valid[row] else -1


cdef inline uint8_t* put(uint8_t* to, const uint8_t* data, const int32_t* starts, int64_t row, int64_t size) noexcept nogil:
    to = write(to, zigzag(size))
    if size > 0:
        memcpy(to, data + starts[row], size)
        to += size
    return to


def encoded(
    int64_t first, int64_t behind, Py_ssize_t front, const int64_t[::1] times, list keys, list values, list headers
):
    """The rows from ``first`` to before ``behind``, at least one, as the records of one batch.

    Args:
        front: number of bytes to leave free before them.
        times, keys, values, headers: as `decoded` makes them; each array has at least one element.

    Returns:
        A bytearray: the room in front, and the records, with offsets from 0 and times relative to the first one's.
    """
    cdef const uint8_t[::1] kd = keys[0], kv = keys[2], vd = values[0], vv = values[2], hd = headers[0]
    cdef const int32_t[::1] ks = keys[1], vs = values[1], hs = headers[1]
    cdef int64_t row, index, key, value, rest, length, total = 0
    cdef uint64_t time
    cdef uint8_t* to
    with nogil:
        for row in range(first, behind):
            total += length_of(row - first, times[row], times[first], size_of(&ks[0], &kv[0], row),
                               size_of(&vs[0], &vv[0], row), hs[row + 1] - hs[row], &length)
    made = PyByteArray_FromStringAndSize(NULL, front + total)
    to = <uint8_t*> PyByteArray_AS_STRING(made) + front
    with nogil:
        for row in range(first, behind):
            index, key, value = row - first, size_of(&ks[0], &kv[0], row), size_of(&vs[0], &vv[0], row)
            rest = hs[row + 1] - hs[row]
            length_of(index, times[row], times[first], key, value, rest, &length)
            to = write(to, zigzag(length))
            to[0] = 0
            to = write(to + 1, zigzag(<int64_t> (<uint64_t> times[row] - <uint64_t> times[first])))
            to = write(to, zigzag(index))
            to = put(to, &kd[0], &ks[0], row, key)
            to = put(to, &vd[0], &vs[0], row, value)
            memcpy(to, &hd[0] + hs[row], rest)
            to += rest
    return made


cdef inline int64_t length_of(
    int64_t index, int64_t time_ms, int64_t first_ms, int64_t key, int64_t value, int64_t headers, int64_t* length
) noexcept nogil:
    """How many bytes a record takes; ``length``: without the number that says it."""
    length[0] = (
        1 + width(zigzag(<int64_t> (<uint64_t> time_ms - <uint64_t> first_ms))) + width(zigzag(index))
        + width(zigzag(key)) + (key if key > 0 else 0) + width(zigzag(value)) + (value if value > 0 else 0) + headers
    )
    return width(zigzag(length[0])) + length[0]


cdef inline const uint8_t* behind_space(const uint8_t* at, const uint8_t* end) noexcept nogil:
    while at < end and (at[0] == 32 or at[0] == 10 or at[0] == 13 or at[0] == 9):
        at += 1
    return at


cdef int64_t utf8_bytes(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Return how many bytes the character has that begins here, which is not ASCII; 0: it is not in UTF-8."""
    cdef uint8_t one = at[0], low = 0x80, high = 0xBF
    cdef int64_t more, n
    if one < 0xC2 or one > 0xF4:
        return 0
    more = 1 if one < 0xE0 else 2 if one < 0xF0 else 3
    if one == 0xE0:
        low = 0xA0
    elif one == 0xED:
        high = 0x9F
    elif one == 0xF0:
        low = 0x90
    elif one == 0xF4:
        high = 0x8F
    if end - at <= more or at[1] < low or at[1] > high:
        return 0
    for n in range(2, more + 1):
        if at[n] < 0x80 or at[n] > 0xBF:
            return 0
    return more + 1


cdef bint is_one_object(const uint8_t* at, const uint8_t* end) noexcept nogil:
    cdef int64_t depth = 0, size
    cdef uint8_t one, quote = 0
    at = behind_space(at, end)
    if at == end or at[0] != 123:  # {
        return False
    while at < end:
        one = at[0]
        if one >= 0x80:
            size = utf8_bytes(at, end)
            if size == 0:
                return False
            at += size
            continue
        at += 1
        if quote:
            if one == 92:  # a backslash
                at += at < end and at[0] < 0x80
            elif one == quote:
                quote = 0
        elif one == 34 or one == 39:  # " and '
            quote = one
        elif one == 123 or one == 91:  # { and [
            depth += 1
        elif one == 125 or one == 93:  # } and ]
            depth -= 1
            if depth == 0:
                return behind_space(at, end) == end
        elif one == 78 or one == 73:  # N and I, of NaN and Infinity
            return False
    return False


def not_one_object(
    const uint8_t[::1] data, const int32_t[::1] starts, const uint8_t[::1] valid, int64_t rows, uint8_t[::1] found
):
    """Write 1 for each row whose bytes are not one JSON object, as `strait.wire.json_values` says, else 0."""
    cdef const uint8_t* at = &data[0]
    cdef int64_t row
    with nogil:
        for row in range(rows):
            found[row] = valid[row] and not is_one_object(at + starts[row], at + starts[row + 1])
