"""Kafka's compression codecs, by their numbers in a batch's attributes. The decompressed size is bounded, regardless of
the size that the compressed data claims."""

import zlib
from collections.abc import Callable
from struct import Struct
from struct import error as struct_error

import cramjam

from strait.errors import CorruptBatch

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

# Uncompressed, a batch is at most as large as its producer's batch.size or its largest record: 1 MiB by default, some
# tens of MiB if records are files. Data that claims more than this is treated as corrupt, and takes no more memory.
MAX_BYTES = 128 << 20

_GZIP_FORMAT = 31  # zlib's number for gzip framing with the largest window
_GZIP_LEVEL = 6  # the levels are those of Kafka's Java producer; its LZ4 is the fast one, in independent blocks
_LZ4_LEVEL = 1
_ZSTD_LEVEL = 3

_GUESSED_RATIO = 8
_GROWTH = 4
_SMALLEST_GUESS = 4096
_FULL = "write whole buffer"  # Rust's error text; the library has no separate error for it

# Java's snappy-java writes its own stream of blocks ("xerial"), others one raw block: readers accept both.
_XERIAL = b"\x82SNAPPY\0"
_XERIAL_HEADER = _XERIAL + b"\0\0\0\1\0\0\0\1"
_XERIAL_BLOCK_BYTES = 32 << 10
_LENGTH = Struct(">i")


def compress(data: bytes | bytearray | memoryview, codec: int) -> bytes | bytearray | memoryview:
    """Return the bytes compressed as Kafka's clients would; ``codec`` 0 returns them unchanged."""
    if codec == NONE:
        return data
    if codec == GZIP:
        return zlib.compress(data, _GZIP_LEVEL, _GZIP_FORMAT)
    if codec == SNAPPY:
        return _compress_xerial(memoryview(data))
    if codec == LZ4:
        compressor = cramjam.lz4.Compressor(level=_LZ4_LEVEL, content_checksum=False, block_linked=False)
        compressor.compress(bytes(data))
        return memoryview(compressor.finish())
    if codec == ZSTD:
        return memoryview(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
    raise ValueError(f"Kafka has no codec {codec}")


def decompress(data: memoryview, codec: int, *, limit: int = MAX_BYTES) -> memoryview:
    """Return the decompressed data, at most ``limit`` bytes.

    Raises:
        CorruptBatch: not valid for this codec, cut short, followed by other bytes, or larger than ``limit``.
    """
    try:
        if codec == NONE:
            return data
        if codec == GZIP:
            return _decompress_gzip(data, limit)
        if codec == SNAPPY:
            return _decompress_snappy(data, limit)
        if codec == LZ4:
            return _into_buffers(cramjam.lz4.decompress_into, data, limit)
        if codec == ZSTD:
            return _into_buffers(cramjam.zstd.decompress_into, data, limit)
    except (cramjam.DecompressionError, zlib.error, struct_error) as error:
        raise CorruptBatch(f"{len(data)} bytes of {_NAMES[codec]} cannot be decompressed: {error}") from error
    raise CorruptBatch(f"codec {codec} is none of Kafka's")


_NAMES = {GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}


def _into_buffers(into: Callable[[memoryview, bytearray], int], data: memoryview, limit: int) -> memoryview:
    """Decompress into successively larger buffers: the library stops at the end of a given buffer, but has no limit if
    it allocates its own."""
    capacity = min(limit, max(_SMALLEST_GUESS, _GUESSED_RATIO * len(data)))
    while True:
        out = bytearray(capacity)
        try:
            return memoryview(out)[: into(data, out)]
        except cramjam.DecompressionError as error:
            if _FULL not in str(error) or capacity >= limit:
                raise
        capacity = min(limit, _GROWTH * capacity)


def _decompress_gzip(data: memoryview, limit: int) -> memoryview:
    """Decompress one gzip member after the other, as Java does."""
    out = bytearray()
    rest: memoryview | bytes = data
    while rest:
        member = zlib.decompressobj(_GZIP_FORMAT)
        out += member.decompress(rest, limit - len(out) + 1)  # one more than allowed; 0 would mean without limit
        if len(out) > limit:
            raise CorruptBatch(f"{len(data)} bytes of gzip hold more than {limit}")
        if not member.eof:
            raise CorruptBatch(f"{len(data)} bytes of gzip are cut short")
        rest = member.unused_data
    return memoryview(out)


def _decompress_snappy(data: memoryview, limit: int) -> memoryview:
    if bytes(data[: len(_XERIAL)]) != _XERIAL:
        return memoryview(_snappy_block(data, limit))
    out = bytearray()
    at = len(_XERIAL_HEADER)
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if not 0 < length <= len(data) - at:
            raise CorruptBatch(f"a snappy block of {length} bytes, where {len(data) - at} are left")
        out += _snappy_block(data[at : at + length], limit - len(out))
        at += length
    return memoryview(out)


def _snappy_block(block: memoryview, limit: int) -> bytes:
    length = cramjam.snappy.decompress_raw_len(block)
    if length > limit:
        raise CorruptBatch(f"a snappy block of {len(block)} bytes claims to hold {length}, more than {limit}")
    return bytes(cramjam.snappy.decompress_raw(block))


def _compress_xerial(data: memoryview) -> bytes:
    pieces = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        pieces += (_LENGTH.pack(len(block)), block)
    return b"".join(pieces)
