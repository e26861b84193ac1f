"""Frames out of a stream of bytes: four bytes of size, then that many bytes, received into pooled memory.

A large frame is received into its own buffer. Sizes and small frames are received through a small shared one, so that a
handful of acknowledgements costs one system call instead of two for each.
"""

import struct
from collections.abc import Iterator

from strait.errors import ProtocolError
from strait.net.buffers import Buffer, BufferPool

AHEAD_BYTES = 1 << 12  # at most this much of a large frame is copied once more, which is negligible
_MAX_FRAME_BYTES = 1 << 30
_SIZE = struct.Struct(">i")


class Frames:
    """Splits received bytes into frames: receive into ``space()``, pass the number of bytes to ``received()``, take the
    complete frames from it."""

    def __init__(self, pool: BufferPool) -> None:
        self._pool = pool
        self._ahead = memoryview(bytearray(AHEAD_BYTES))
        self._ahead_bytes = 0
        self._frame: Buffer | None = None
        self._frame_bytes = 0

    @property
    def missing(self) -> int:
        """Number of bytes that the incomplete frame still lacks; 0 if there is none."""
        return 0 if self._frame is None else self._frame.size - self._frame_bytes

    def space(self) -> memoryview:
        """Return the memory to receive the next bytes of the stream into; never empty."""
        if self._frame is None:
            return self._ahead[self._ahead_bytes :]
        return self._frame.view()[self._frame_bytes :]

    def received(self, count: int) -> Iterator[Buffer]:
        """Yield the frames that ``count`` more bytes in ``space()`` complete; the caller owns each of them.

        Raises:
            ProtocolError: the bytes received are not a frame.
        """
        if self._frame is None:
            self._ahead_bytes += count
            yield from self._from_ahead()
            return
        self._frame_bytes += count
        if self._frame_bytes == self._frame.size:
            frame, self._frame = self._frame, None
            yield frame

    def drop(self) -> None:
        """Release the incomplete frame."""
        if self._frame is not None:
            self._frame.release()
            self._frame = None
        self._ahead_bytes = 0

    def _from_ahead(self) -> Iterator[Buffer]:
        at = 0
        while self._ahead_bytes - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._ahead, at)
            if not _SIZE.size <= size <= _MAX_FRAME_BYTES:
                raise ProtocolError(f"response of {size} bytes announced")
            at += _SIZE.size
            frame = self._pool.take(size)
            here = min(size, self._ahead_bytes - at)
            frame.view()[:here] = self._ahead[at : at + here]
            at += here
            if here < size:
                self._frame, self._frame_bytes = frame, here
                break
            yield frame
        left = self._ahead_bytes - at  # the first bytes of a size
        self._ahead[:left] = self._ahead[at : at + left]
        self._ahead_bytes = left
