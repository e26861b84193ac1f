# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Records of small batches moved into one, in machine code: the only step of the engine that is done to each record by itself.

Of a record only what stands before its key changes when it moves: its length, and its time and offset, which are relative to
the batch's. What is behind them is copied as it is. All numbers of a record are zigzag varints (KIP-98).
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    HEADER_BYTES = 61
    PREFIX_BYTES = 12
    LENGTH_AT = 8
    BASE_TIMESTAMP_AT = 27
    RECORDS_AT = 57
    INT_BYTES = 5  # at most, of a varint of 32 bits
    LONG_BYTES = 10  # and of 64
    GROWTH_BYTES = 17  # at most, of a record: four of its length, nine of its time, four of its offset
    SMALLEST_RECORD_BYTES = 7  # a byte each of length, attributes, time, offset, key, value, headers


cdef inline int64_t number_at(const uint8_t* at, int size) noexcept nogil:
    """Big-endian, of up to 8 bytes; of 8 with a sign."""
    cdef uint64_t found = 0
    cdef int index
    for index in range(size):
        found = found << 8 | at[index]
    return <int64_t> found


cdef inline const uint8_t* read(const uint8_t* at, const uint8_t* end, int most, int64_t* value) noexcept nogil:
    """Where the varint ends that begins ``at``. NULL where that is not before ``end``, or it has more bytes than ``most``."""
    cdef uint64_t raw = 0
    cdef int index
    for index in range(most):
        if at + index == end:
            return NULL
        raw |= <uint64_t> (at[index] & 0x7F) << 7 * index
        if at[index] < 0x80:
            value[0] = <int64_t> (raw >> 1 ^ -(raw & 1))
            return at + index + 1
    return NULL


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return <uint64_t> value << 1 ^ <uint64_t> (value >> 63)


cdef inline uint8_t* write(uint8_t* at, uint64_t raw) noexcept nogil:
    while raw >= 0x80:
        at[0] = <uint8_t> (raw | 0x80)
        at += 1
        raw >>= 7
    at[0] = <uint8_t> raw
    return at + 1


cdef inline int width(uint64_t raw) noexcept nogil:
    cdef int size = 1
    while raw >= 0x80:
        size += 1
        raw >>= 7
    return size


cdef int64_t count(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """How many records these batches say they have. -1 where that, or a length, cannot be right."""
    cdef int64_t records = 0, size, more
    while at != end:
        if end - at < HEADER_BYTES:
            return -1
        size = PREFIX_BYTES + number_at(at + LENGTH_AT, 4)
        if size < HEADER_BYTES or size > end - at:
            return -1
        more = number_at(at + RECORDS_AT, 4)
        if more > (size - HEADER_BYTES) // SMALLEST_RECORD_BYTES:
            return -1
        records += more
        at += size
    return records


cdef uint8_t* move(
    const uint8_t* at, const uint8_t* end, uint8_t* to, int64_t* first_ms, int64_t* latest_ms
) noexcept nogil:
    """Write the records of counted batches one after the other. Returns where they end; NULL where one is not as it must be."""
    cdef int64_t number = 0, index, records, base_ms, time_ms, length, delta, offset, rest
    cdef const uint8_t* batch_end
    cdef const uint8_t* behind
    cdef uint64_t time, position
    while at != end:
        batch_end = at + PREFIX_BYTES + number_at(at + LENGTH_AT, 4)
        base_ms = number_at(at + BASE_TIMESTAMP_AT, 8)
        records = number_at(at + RECORDS_AT, 4)
        at += HEADER_BYTES
        for index in range(records):
            at = read(at, batch_end, INT_BYTES, &length)
            if at == NULL or length < 1 or length > batch_end - at or at[0] != 0:  # the record's attributes
                return NULL
            behind = at + length
            at = read(at + 1, behind, LONG_BYTES, &delta)
            if at == NULL:
                return NULL
            at = read(at, behind, INT_BYTES, &offset)
            if at == NULL or offset != index:
                return NULL
            # Times wrap in 64 bits, as they do where they are read.
            time_ms = <int64_t> (<uint64_t> base_ms + <uint64_t> delta)
            if number == 0:
                first_ms[0] = latest_ms[0] = time_ms
            elif time_ms > latest_ms[0]:
                latest_ms[0] = time_ms
            time = zigzag(<int64_t> (<uint64_t> time_ms - <uint64_t> first_ms[0]))
            position = zigzag(number)
            rest = behind - at
            to = write(to, zigzag(1 + width(time) + width(position) + rest))
            to[0] = 0
            to = write(write(to + 1, time), position)
            memcpy(to, at, rest)
            to += rest
            at = behind
            number += 1
        if at != batch_end:
            return NULL
    return to


def moved(batches):
    """The records of whole batches as those of one batch.

    Args:
        batches: bytes of one or more batches without compression, one after the other, of magic 2, with a record at each of
            their offsets.

    Returns:
        Room for a header and behind it the records, with offsets from 0; the first one's time and the latest, in ms; how many
        they are. None where a batch or a record is not as it must be.
    """
    cdef Py_buffer view
    PyObject_GetBuffer(batches, &view, PyBUF_SIMPLE)
    try:
        return joined(<const uint8_t*> view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef joined(const uint8_t* at, Py_ssize_t size):
    cdef int64_t records = count(at, at + size), first_ms = 0, latest_ms = 0
    cdef uint8_t* start
    cdef uint8_t* end
    if records < 1:
        return None
    made = PyByteArray_FromStringAndSize(NULL, HEADER_BYTES + size + GROWTH_BYTES * records)
    start = <uint8_t*> PyByteArray_AS_STRING(made)
    memset(start, 0, HEADER_BYTES)
    end = move(at, at + size, start + HEADER_BYTES, &first_ms, &latest_ms)
    if end == NULL:
        return None
    PyByteArray_Resize(made, end - start)
    return made, first_ms, latest_ms, records
