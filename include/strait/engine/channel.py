"""One non-blocking connection on the loop: requests out by scatter-gather, replies in order into pooled buffers."""

import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from strait.engine.buffers import Buffer, BufferPool
from strait.engine.dial import CLIENT_ID, Connection
from strait.engine.loop import Loop
from strait.errors import ProtocolError, StraitError

_MAX_FRAME_BYTES = 1 << 30
_PIECES_PER_CALL = 512  # below IOV_MAX
_TLS_CHUNK_BYTES = 1 << 18
_WAKE_BYTES = 256 << 10
_CLIENT_ID = struct.pack(">h", len(CLIENT_ID)) + CLIENT_ID.encode() + b"\0"  # header version 2 ends in no tags
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Piece = bytes | bytearray | memoryview


class _Pending(NamedTuple):
    correlation: int
    on_reply: Callable[[Buffer], None]
    on_lost: Callable[[str], None]
    deadline: float


class Channel:
    """Exactly one of a request's two callbacks is called: ``on_reply`` with the frame, or ``on_lost`` with the cause.

    The receiver of a frame releases it. ``unsent_bytes`` is what the kernel has not taken yet.
    """

    def __init__(self, loop: Loop, pool: BufferPool, connection: Connection, on_closed: Callable[[str], None]) -> None:
        self._loop = loop
        self._pool = pool
        self._connection = connection
        self._socket = connection.socket
        self._tls = isinstance(self._socket, ssl.SSLSocket)
        self._on_closed = on_closed
        self._pending: deque[_Pending] = deque()
        self._out: deque[Piece | Callable[[], None]] = deque()
        self._correlation = 1 << 20  # far from those of the handshake
        self._size = memoryview(bytearray(4))
        self._size_read = 0
        self._frame: Buffer | None = None
        self._frame_read = 0
        self._wake_bytes = 1
        self._chunk: bytes | None = None
        self._watching_writes = False
        self.unsent_bytes = 0
        self.closed = False
        self._socket.setblocking(False)
        loop.watch(self._socket.fileno(), self, writable=False)

    def version(self, api_key: int, versions: tuple[int, int]) -> int:
        """The highest version of a request within ``versions`` that the broker serves. Raises ProtocolError."""
        return self._connection.version(api_key, *versions)

    def served(self, api_key: int) -> tuple[int, int]:
        """The versions of a request that the broker serves; (0, -1) where it does not know it."""
        return self._connection.versions.get(api_key, (0, -1))

    def send(
        self,
        api_key: int,
        version: int,
        body: Sequence[Piece],
        *,
        on_reply: Callable[[Buffer], None],
        on_lost: Callable[[str], None],
        timeout_seconds: float,
        on_sent: Callable[[], None] | None = None,
    ) -> None:
        """Queue a request with a flexible header. ``on_sent``: the kernel has all of it, so its memory may be reused."""
        self._correlation += 1
        head = struct.pack(">hhi", api_key, version, self._correlation) + _CLIENT_ID
        size = len(head) + sum(len(piece) for piece in body)
        self._queue([struct.pack(">i", size) + head, *body], size + 4, on_sent)
        self._pending.append(_Pending(self._correlation, on_reply, on_lost, self._loop.now + timeout_seconds))
        self._flush()

    def ask(
        self,
        request: Any,
        response_class: Any,
        *,
        on_reply: Callable[[Any], None],
        on_lost: Callable[[str], None],
        timeout_seconds: float = 30.0,
    ) -> None:
        """Queue one of kafka-python's requests; its decoded reply comes back."""

        def decode(frame: Buffer) -> None:
            try:
                reply = response_class.decode(frame.view(), version=request.API_VERSION, header=True)
            except (IndexError, ValueError, TypeError, struct.error) as error:
                raise ProtocolError(f"a {response_class.__name__} is cut short or malformed") from error
            finally:
                frame.release()
            on_reply(reply)

        self._correlation += 1
        request.with_header(correlation_id=self._correlation, client_id=CLIENT_ID)
        data = bytes(request.encode(framed=True, header=True))
        self._queue([data], len(data), None)
        self._pending.append(_Pending(self._correlation, decode, on_lost, self._loop.now + timeout_seconds))
        self._flush()

    def on_ready(self, readable: bool, writable: bool) -> None:
        try:
            if writable:
                self._write()
            if readable:
                self._read()
        except _WOULD_BLOCK:
            return
        except OSError as error:
            self.close(str(error) or type(error).__name__)

    def expire(self) -> None:
        """Close when the oldest request got no reply in time. Called about once a second."""
        if self._pending and self._pending[0].deadline < self._loop.now:
            self.close("no reply in time")

    def close(self, cause: str) -> None:
        """Close and tell every waiting request why. Nothing happens the second time."""
        if self.closed:
            return
        self.closed = True
        self._loop.forget(self._socket.fileno())
        self._socket.close()
        if self._frame is not None:
            self._frame.release()
            self._frame = None
        for piece in self._out:
            if callable(piece):
                piece()  # a request's memory is free again, sent or not
        self._out.clear()
        pending, self._pending = self._pending, deque()
        for request in pending:
            request.on_lost(cause)
        self._on_closed(cause)

    def _queue(self, pieces: Sequence[Piece], size: int, on_sent: Callable[[], None] | None) -> None:
        self._out.extend(pieces)
        if on_sent is not None:
            self._out.append(on_sent)
        self.unsent_bytes += size

    def _flush(self) -> None:
        """Hand over what the kernel takes now; a failure shows on the loop, never inside a caller's own work."""
        if not self._watching_writes:
            try:
                self._write()
            except _WOULD_BLOCK:
                self._watch_writes(True)
            except OSError as error:
                cause = str(error) or type(error).__name__
                self._loop.call_later(0.0, lambda: self.close(cause))

    def _write(self) -> None:
        while self._out:
            sent = self._send_tls() if self._tls else self._send_plain()
            self.unsent_bytes -= sent
            self._drop_sent(sent)
        self._watch_writes(False)

    def _send_plain(self) -> int:
        pieces: list[Piece] = []
        for piece in self._out:
            if not callable(piece):
                pieces.append(piece)
                if len(pieces) == _PIECES_PER_CALL:
                    break
        if not pieces:
            return 0
        try:
            return self._socket.sendmsg(pieces)
        except BlockingIOError:
            self._watch_writes(True)
            raise

    def _send_tls(self) -> int:
        """TLS has no scatter-gather, and a call that would block must be repeated with the same bytes: so one chunk."""
        if self._chunk is None:
            self._chunk = self._next_chunk()
        try:
            sent = self._socket.send(self._chunk) if self._chunk else 0
        except _WOULD_BLOCK:
            self._watch_writes(True)
            raise
        self._chunk = None
        return sent

    def _next_chunk(self) -> bytes:
        pieces, size = [], 0
        for piece in self._out:
            if callable(piece):
                continue
            part = memoryview(piece)[: _TLS_CHUNK_BYTES - size]
            pieces.append(part)
            size += len(part)
            if size >= _TLS_CHUNK_BYTES:
                break
        return b"".join(pieces)

    def _drop_sent(self, sent: int) -> None:
        out = self._out
        while out:
            piece = out[0]
            if callable(piece):
                out.popleft()
                piece()
                continue
            if len(piece) > sent:
                if sent:
                    out[0] = memoryview(piece)[sent:]
                return
            sent -= len(piece)
            out.popleft()

    def _watch_writes(self, wanted: bool) -> None:
        if self._watching_writes != wanted and not self.closed:
            self._watching_writes = wanted
            self._loop.watch(self._socket.fileno(), self, writable=wanted)

    def _read(self) -> None:
        """Take what has arrived. TLS may hold bytes that no selector shows, so it is read until it would block."""
        frames = 0
        while not self.closed and (self._tls or frames < 4):
            if self._frame is None:
                self._size_read += self._receive(self._size[self._size_read :])
                if self._size_read < 4:
                    continue
                (size,) = struct.unpack(">i", self._size)
                if not 4 <= size <= _MAX_FRAME_BYTES:
                    self.close(f"a frame of {size} bytes was announced")
                    return
                self._size_read = 0
                self._frame, self._frame_read = self._pool.take(size), 0
            wanted = self._frame.size - self._frame_read
            received = self._receive(self._frame.view()[self._frame_read :])
            self._frame_read += received
            if received == wanted:
                frames += 1
                frame, self._frame = self._frame, None
                self._wake_for(1)
                self._deliver(frame)
            elif not self._tls:  # all that had arrived
                self._wake_for(min(wanted - received, _WAKE_BYTES))
                return

    def _wake_for(self, size: int) -> None:
        """Let the loop sleep until so much has arrived: half a frame is of no use, and each wake-up costs."""
        if size != self._wake_bytes and not self._tls:
            self._wake_bytes = size
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def _receive(self, into: memoryview) -> int:
        received = self._socket.recv_into(into)
        if received == 0:
            raise ConnectionError("the broker closed the connection")
        return received

    def _deliver(self, frame: Buffer) -> None:
        (correlation,) = struct.unpack_from(">i", frame.memory, 0)
        if not self._pending or self._pending[0].correlation != correlation:
            frame.release()
            self.close(f"a reply to request {correlation} came, which is not the oldest open one")
            return
        request = self._pending.popleft()
        try:
            request.on_reply(frame)
        except StraitError as error:  # a malformed reply: this connection cannot be trusted any more
            request.on_lost(str(error))
            self.close(str(error))
