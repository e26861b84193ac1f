"""Zigzag varints, the numbers of a record (KIP-98)."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


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
