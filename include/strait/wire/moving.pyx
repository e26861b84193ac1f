# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Records in machine code: moved from small batches into one, the only step of the engine that is done to each record by
itself; and digested one by one, for audits.

Of a record only what stands before its key changes when it moves: its length, and its time and offset, which are relative to
the batch's. What is behind them is copied as it is. All numbers of a record are zigzag varints (KIP-98).
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from strait.wire.varints cimport read, width, write, zigzag

cdef enum:
    HEADER_BYTES = 61
    PREFIX_BYTES = 12
    LENGTH_AT = 8
    BASE_TIMESTAMP_AT = 27
    RECORDS_AT = 57
    INT_BYTES = 5  # at most, of a varint of 32 bits
    LONG_BYTES = 10  # and of 64


cdef inline int64_t number_at(const uint8_t* at, int size) noexcept nogil:
    """Big-endian, of up to 8 bytes; of 8 with a sign."""
    cdef uint64_t found = 0
    cdef int index
    for index in range(size):
        found = found << 8 | at[index]
    return <int64_t> found


cdef struct Sums:
    int64_t records
    int64_t data_bytes
    int64_t first_ms
    int64_t latest_ms


cdef inline const uint8_t* front(
    const uint8_t* at, const uint8_t* end, int64_t index, int64_t base_ms, int64_t* time_ms, const uint8_t** behind
) noexcept nogil:
    """Where the key begins of the record ``at`` that has this index in its batch. NULL where its front is not as it must be."""
    cdef int64_t length, delta, offset
    at = read(at, end, INT_BYTES, &length)
    if at == NULL or length < 1 or length > end - at or at[0] != 0:  # the record's attributes
        return NULL
    behind[0] = at + length
    at = read(at + 1, behind[0], LONG_BYTES, &delta)
    if at == NULL:
        return NULL
    time_ms[0] = <int64_t> (<uint64_t> base_ms + <uint64_t> delta)  # it wraps in 64 bits, as it does where it is read
    at = read(at, behind[0], INT_BYTES, &offset)
    return at if at != NULL and offset == index else NULL


cdef inline uint64_t since(int64_t first_ms, int64_t time_ms) noexcept nogil:
    """A time as a batch holds it, relative to its first record's."""
    return zigzag(<int64_t> (<uint64_t> time_ms - <uint64_t> first_ms))


cdef bint measure(const uint8_t* at, const uint8_t* end, Sums* sums) noexcept nogil:
    """Look through all; False where something is not as it must be. So ``move`` need not look again."""
    cdef int64_t size, index, base_ms, time_ms, length
    cdef const uint8_t* batch_end
    cdef const uint8_t* behind
    cdef const uint8_t* key
    while at != end:
        if end - at < HEADER_BYTES:
            return False
        size = PREFIX_BYTES + number_at(at + LENGTH_AT, 4)
        if size < HEADER_BYTES or size > end - at:
            return False
        batch_end = at + size
        base_ms = number_at(at + BASE_TIMESTAMP_AT, 8)
        size = number_at(at + RECORDS_AT, 4)
        at += HEADER_BYTES
        for index in range(size):
            key = front(at, batch_end, index, base_ms, &time_ms, &behind)
            if key == NULL:
                return False
            if sums.records == 0:
                sums.first_ms = sums.latest_ms = time_ms
            elif time_ms > sums.latest_ms:
                sums.latest_ms = time_ms
            length = 1 + width(since(sums.first_ms, time_ms)) + width(zigzag(sums.records)) + (behind - key)
            sums.data_bytes += width(zigzag(length)) + length
            sums.records += 1
            at = behind
        if at != batch_end:
            return False
    return True


cdef void move(const uint8_t* at, const uint8_t* end, uint8_t* to, int64_t first_ms) noexcept nogil:
    """Write the records of measured batches one after the other."""
    cdef int64_t number = 0, index, records, base_ms, time_ms, rest
    cdef const uint8_t* batch_end
    cdef const uint8_t* behind = NULL
    cdef const uint8_t* key
    cdef uint64_t time, position
    while at != end:
        batch_end = at + PREFIX_BYTES + number_at(at + LENGTH_AT, 4)
        base_ms = number_at(at + BASE_TIMESTAMP_AT, 8)
        records = number_at(at + RECORDS_AT, 4)
        at += HEADER_BYTES
        for index in range(records):
            key = front(at, batch_end, index, base_ms, &time_ms, &behind)
            time = since(first_ms, time_ms)
            position = zigzag(number)
            rest = behind - key
            to = write(to, zigzag(1 + width(time) + width(position) + rest))
            to[0] = 0
            to = write(write(to + 1, time), position)
            memcpy(to, key, rest)
            to += rest
            at = behind
            number += 1


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
    cdef Sums sums = Sums(0, 0, 0, 0)
    cdef uint8_t* start
    if not measure(at, at + size, &sums) or not sums.records:
        return None
    made = PyByteArray_FromStringAndSize(NULL, HEADER_BYTES + sums.data_bytes)
    start = <uint8_t*> PyByteArray_AS_STRING(made)
    memset(start, 0, HEADER_BYTES)
    move(at, at + size, start + HEADER_BYTES, sums.first_ms)
    return made, sums.first_ms, sums.latest_ms, sums.records


cdef extern from *:
    """
    #include <stdint.h>
    static inline uint64_t strait_fold(uint64_t one, uint64_t other) {
        unsigned __int128 product = (unsigned __int128) one * other;
        return (uint64_t) product ^ (uint64_t) (product >> 64);
    }
    """
    uint64_t strait_fold(uint64_t one, uint64_t other) nogil


cdef uint64_t hashed(const uint8_t* at, int64_t size, uint64_t state) noexcept nogil:
    """The same as `strait.wire.digests.hashed`."""
    cdef uint64_t one, other
    state ^= strait_fold(<uint64_t> size ^ <uint64_t> 0xa0761d6478bd642f, <uint64_t> 0xe7037ed1a0b428db)
    while size >= 16:
        memcpy(&one, at, 8)
        memcpy(&other, at + 8, 8)
        state = strait_fold(one ^ <uint64_t> 0xa0761d6478bd642f, other ^ state)
        at += 16
        size -= 16
    if size:
        one = other = 0
        memcpy(&one, at, 8 if size > 8 else size)
        if size > 8:
            memcpy(&other, at + 8, size - 8)
        state = strait_fold(one ^ <uint64_t> 0xe7037ed1a0b428db, other ^ state)
    return state


cdef bint digest_each(
    const uint8_t* start, Py_ssize_t size, int64_t records, int64_t base_ms, int64_t fixed_ms, bint timed, bint fixed,
    int64_t* offsets, uint64_t* digests, int64_t* times, int64_t* starts, int64_t* ends
) noexcept nogil:
    cdef const uint8_t* at = start
    cdef const uint8_t* end = start + size
    cdef const uint8_t* behind
    cdef int64_t length, delta, index
    cdef uint64_t time_ms
    for index in range(records):
        at = read(at, end, INT_BYTES, &length)
        if at == NULL or length < 1 or length > end - at:
            return False
        behind = at + length
        at = read(at + 1, behind, LONG_BYTES, &delta)
        if at == NULL:
            return False
        time_ms = <uint64_t> fixed_ms if fixed else <uint64_t> base_ms + <uint64_t> delta
        at = read(at, behind, INT_BYTES, &offsets[index])
        if at == NULL or offsets[index] < 0 or (index and offsets[index] <= offsets[index - 1]):
            return False
        times[index] = <int64_t> time_ms
        starts[index] = at - start
        ends[index] = behind - start
        digests[index] = hashed(
            at, behind - at,
            strait_fold(
                (time_ms if timed else 0) ^ <uint64_t> 0x8ebc6af09c88c6e3, <uint64_t> 0x589965cc75374cc3
            ),
        )
        at = behind
    return at == end


def digested(data, int64_t records, int64_t base_ms, int64_t fixed_ms, bint timed, bint fixed):
    """Each record of a decompressed batch: offset delta, digest, time, and where its key begins and its headers end.

    Args:
        fixed_ms: every record's time, if ``fixed``.
        timed: the time is part of the digest.

    Returns:
        Five arrays of 64-bit numbers, as bytes. None where a record is not as it must be, or offsets do not rise.
    """
    cdef Py_buffer view
    cdef Py_ssize_t room = 8 * records
    cdef bint fits
    made = [PyByteArray_FromStringAndSize(NULL, room) for _ in range(5)]
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        fits = digest_each(
            <const uint8_t*> view.buf, view.len, records, base_ms, fixed_ms, timed, fixed,
            <int64_t*> PyByteArray_AS_STRING(made[0]), <uint64_t*> PyByteArray_AS_STRING(made[1]),
            <int64_t*> PyByteArray_AS_STRING(made[2]), <int64_t*> PyByteArray_AS_STRING(made[3]),
            <int64_t*> PyByteArray_AS_STRING(made[4]),
        )
    finally:
        PyBuffer_Release(&view)
    return tuple(made) if fits else None
