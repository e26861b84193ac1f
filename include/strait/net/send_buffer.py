"""Requests that the kernel has not taken yet: handed over by scatter-gather I/O, or over TLS in chunks."""

import socket
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain

_PIECES_PER_CALL = 512  # below IOV_MAX
_TLS_CHUNK_BYTES = 1 << 18

Piece = bytes | bytearray | memoryview


class Outgoing:
    """The part of a request that the kernel has not taken yet. ``size``: its length in bytes."""

    __slots__ = ("on_sent", "pieces", "size")

    def __init__(self, pieces: Sequence[Piece], size: int, on_sent: Callable[[], None] | None) -> None:
        self.pieces = pieces
        self.size = size
        self.on_sent = on_sent

    def drop(self, sent: int) -> None:
        """Remove the first ``sent`` bytes, which the kernel has taken; fewer than ``size``."""
        self.size -= sent
        for at, piece in enumerate(self.pieces):
            if len(piece) > sent:
                self.pieces = [memoryview(piece)[sent:], *self.pieces[at + 1 :]]
                return
            sent -= len(piece)

    def free(self) -> None:
        """Report that the request's memory may be reused, whether it was sent or not."""
        if self.on_sent is not None:
            self.on_sent()


class SendBuffer:
    """Requests in order. After `hand_over` the caller passes the number of bytes that the kernel took to `taken`."""

    def __init__(self) -> None:
        self._waiting: deque[Outgoing] = deque()
        self._chunk: bytes | None = None

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def append(self, outgoing: Outgoing) -> None:
        self._waiting.append(outgoing)

    def hand_over(self, sock: socket.socket, *, tls: bool) -> int:
        """Offer waiting bytes to the kernel in one call; return how many it took. Raises BlockingIOError, OSError."""
        return self._hand_over_chunk(sock) if tls else self._hand_over_pieces(sock)

    def taken(self, size: int) -> None:
        waiting = self._waiting
        while size:
            first = waiting[0]
            if first.size > size:
                first.drop(size)
                return
            size -= first.size
            waiting.popleft()
            first.free()

    def drain(self) -> Sequence[Outgoing]:
        """Remove and return all waiting requests."""
        waiting, self._waiting = self._waiting, deque()
        return waiting

    def _hand_over_pieces(self, sock: socket.socket) -> int:
        pieces: list[Piece] = []
        for request in self._waiting:
            pieces.extend(request.pieces[: _PIECES_PER_CALL - len(pieces)])
            if len(pieces) == _PIECES_PER_CALL:
                break
        return sock.sendmsg(pieces)

    def _hand_over_chunk(self, sock: socket.socket) -> int:
        """Send one chunk: TLS has no scatter-gather I/O, and a call that would block must be repeated with the same
        bytes."""
        if self._chunk is None:
            self._chunk = self._next_chunk()
        sent = sock.send(self._chunk)
        self._chunk = None
        return sent

    def _next_chunk(self) -> bytes:
        pieces, size = [], 0
        for piece in chain.from_iterable(request.pieces for request in self._waiting):
            part = memoryview(piece)[: _TLS_CHUNK_BYTES - size]
            pieces.append(part)
            size += len(part)
            if size >= _TLS_CHUNK_BYTES:
                break
        return b"".join(pieces)
