"""One non-blocking connection on the loop: requests out by scatter-gather I/O, replies in order into pooled buffers."""

import fcntl
import itertools
import socket
import struct
import termios
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from strait.errors import ProtocolError, StraitError
from strait.net.buffers import Buffer, BufferPool
from strait.net.event_loop import Loop
from strait.net.frames import Frames
from strait.net.handshake import CLIENT_ID, Connection, decoded, request_head
from strait.net.send_buffer import Outgoing, Piece, SendBuffer
from strait.net.tls_socket import TlsSocket
from strait.net.traffic import Traffic

ANSWER_SECONDS = 2.5
"""How long a reply may take to start arriving. Copying must resume within 5 s after a connection stops responding; a
broker that is too slow for this limit gets more `patience`."""
MOST_PATIENCE = 8.0

_READS_PER_TURN = 8  # then other sockets get their turn; epoll reports the remaining bytes again
_WAKE_BYTES = 1 << 20
NO_REPLY = "no reply in time"


class _Pending(NamedTuple):
    correlation: int
    on_reply: Callable[[Buffer], None]
    on_lost: Callable[[str], None]
    sent_at: float


class _Held(NamedTuple):
    """A request that waits for the next connection."""

    outgoing: Outgoing
    pending: _Pending


class Channel:
    """Sends requests to one broker. Exactly one of a request's two callbacks is called: ``on_reply`` with the frame, or
    ``on_lost`` with the cause.

    The receiver of a frame releases it. ``unsent_bytes``: number of bytes that the kernel has not taken yet. All bytes
    are added to ``traffic``.
    """

    def __init__(
        self,
        loop: Loop,
        pool: BufferPool,
        connection: Connection,
        on_closed: Callable[[str], None],
        traffic: Traffic | None = None,
    ) -> None:
        self._loop = loop
        self._traffic = traffic or Traffic()
        self._pool = pool
        self._on_closed = on_closed
        self._next: Connection | None = None
        self._held: deque[_Held] = deque()
        self._pending: deque[_Pending] = deque()
        self._out = SendBuffer()
        self._correlation = 1 << 20  # far from the handshake's correlation IDs
        self._heard_at = loop.now
        self._handed_bytes = 0  # to the kernel on this connection
        self._taken_bytes = 0  # of those, by the peer's kernel, at the last check
        self._unread_bytes = 0  # held by the kernel, at the last check
        self.unsent_bytes = 0
        self.patience = 1.0
        """Factor by which a reply may exceed `ANSWER_SECONDS`: more than 1 after replies that did not come, since a
        request that takes longer would otherwise be resent forever; 1 again once a reply has come within
        `ANSWER_SECONDS`."""
        self.answered = False
        """Whether a reply has come within `ANSWER_SECONDS`."""
        self.closed = False
        self._take(connection)

    def go_on_with(self, connection: Connection) -> None:
        """Send new requests over another connection, once every reply to the earlier ones has arrived.

        So requests are served in order, as on one connection: a batch never overtakes the one before it.
        """
        if self._next is not None:
            self._next.close()
        self._next = connection
        self._change_over()

    def version(self, api_key: int, versions: tuple[int, int]) -> int:
        """Return the highest version of a request within ``versions`` that the broker serves. Raises ProtocolError."""
        return self._connection.version(api_key, *versions)

    def served(self, api_key: int) -> tuple[int, int]:
        """Return the versions of a request that the broker serves; (0, -1) if it does not know the request."""
        return self._connection.versions.get(api_key, (0, -1))

    def send(
        self,
        api_key: int,
        version: int,
        body: Sequence[Piece],
        *,
        on_reply: Callable[[Buffer], None],
        on_lost: Callable[[str], None],
        on_sent: Callable[[], None] | None = None,
    ) -> None:
        """Queue a request with a flexible header. ``on_sent``: its memory may be reused, since the kernel has taken all
        of it or the connection is closed."""
        self._correlation += 1
        head = request_head(api_key, version, self._correlation)
        size = len(head) + sum(len(piece) for piece in body)
        pending = _Pending(self._correlation, on_reply, on_lost, self._loop.now)
        self._queue(Outgoing([struct.pack(">i", size) + head, *body], size + 4, on_sent), pending)

    def ask(
        self,
        request: Any,
        response_class: Any,
        *,
        on_reply: Callable[[Any], None],
        on_lost: Callable[[str], None],
    ) -> None:
        """Queue one of kafka-python's requests; ``on_reply`` gets the decoded reply."""

        def decode(frame: Buffer) -> None:
            try:
                reply = decoded(response_class, frame.view(), request)
            finally:
                frame.release()
            on_reply(reply)

        self._correlation += 1
        request.with_header(correlation_id=self._correlation, client_id=CLIENT_ID)
        data = bytes(request.encode(framed=True, header=True))
        pending = _Pending(self._correlation, decode, on_lost, self._loop.now)
        self._queue(Outgoing([data], len(data), None), pending)

    def on_ready(self, readable: bool, writable: bool) -> None:
        try:
            if writable:
                self._write()
            if readable:
                self._read()
        except BlockingIOError:
            return
        except (OSError, ProtocolError) as error:
            self.close(str(error) or type(error).__name__)

    @property
    def heard_at(self) -> float:
        """When the last byte arrived, in the loop's time in seconds; before the first byte, when the connection was
        made."""
        return self._heard_at

    @property
    def idle(self) -> bool:
        """Whether no reply is outstanding."""
        return not self._pending and not self._held

    @property
    def behind_seconds(self) -> float:
        """For how long the oldest request has been waiting for its reply; 0 if none is."""
        return self._loop.now - self._pending[0].sent_at if self._pending else 0.0

    def expire(self) -> None:
        """Close if nothing was received for as long as the oldest request may take. Called a few times a second.

        A large reply over a slow network may take longer as long as bytes keep arriving; so may a large request as long
        as the peer keeps taking bytes.
        """
        if self._pending:
            self._notice_taking()
            self._notice_coming()
            oldest = self._pending[0]
            if max(oldest.sent_at, self._heard_at) + ANSWER_SECONDS * self.patience < self._loop.now:
                self.close(NO_REPLY)

    def be_patient(self, seconds: float) -> None:
        """Extend the deadline: the broker has announced that it serves nothing more on this connection for
        ``seconds``."""
        self._heard_at = max(self._heard_at, self._loop.now + seconds)

    def _notice_taking(self) -> None:
        """Extend the deadline while the peer's kernel keeps taking bytes that ours holds. Once ours holds none, the
        reply is due."""
        held = self._kernel_says(termios.TIOCOUTQ)
        taken = self._handed_bytes - held
        if held and taken > self._taken_bytes:
            self._heard_at = max(self._heard_at, self._loop.now)
        self._taken_bytes = taken

    def _notice_coming(self) -> None:
        """Extend the deadline if more bytes have arrived. The loop sleeps until a good part of a reply has arrived (see
        `_wake_for`), which over a slow network may take longer than a reply may take to start."""
        unread = self._kernel_says(termios.FIONREAD)
        if unread > self._unread_bytes:
            self._heard_at = max(self._heard_at, self._loop.now)
        self._unread_bytes = unread

    def _kernel_says(self, request: int) -> int:
        """Return the number of bytes that an ioctl on the socket reports."""
        (size,) = struct.unpack("i", fcntl.ioctl(self._socket.fileno(), request, b"\0\0\0\0"))
        return int(size)

    def close(self, cause: str) -> None:
        """Close, and pass the cause to every waiting request. Does nothing the second time."""
        if self.closed:
            return
        self.closed = True
        self._loop.forget(self._socket.fileno())
        self._socket.close()
        self._frames.drop()
        if self._next is not None:
            self._next.close()
        held, self._held = self._held, deque()
        pending, self._pending = self._pending, deque()
        for unsent in (*self._out.drain(), *(waiting.outgoing for waiting in held)):
            unsent.free()
        for request in (*pending, *(waiting.pending for waiting in held)):
            request.on_lost(cause)
        self._on_closed(cause)

    def _take(self, connection: Connection) -> None:
        """Start to use a connection on which nothing was sent yet."""
        self._connection = connection
        self._socket = connection.socket
        self._frames = Frames(self._pool)
        self._tls = isinstance(self._socket, TlsSocket)
        self._wake_bytes = 1
        self._watching_writes = False
        self._handed_bytes = self._taken_bytes = self._unread_bytes = 0
        self._socket.setblocking(False)
        self._loop.watch(self._socket.fileno(), self, writable=False)

    def _change_over(self) -> None:
        """Change to the next connection once no reply is outstanding on the current one."""
        if self._next is None or self._pending or self.closed:
            return
        self._loop.forget(self._socket.fileno())
        self._socket.close()
        connection, self._next = self._next, None
        self._take(connection)
        held, self._held = self._held, deque()
        for waiting in held:
            self.unsent_bytes -= waiting.outgoing.size
            self._queue(*waiting)

    def _queue(self, outgoing: Outgoing, pending: _Pending) -> None:
        if self.closed:  # a caller that waited meanwhile may still hold it
            outgoing.free()
            self._loop.call_later(0.0, lambda: pending.on_lost("the connection is closed"))
            return
        self.unsent_bytes += outgoing.size
        if self._next is not None:
            self._held.append(_Held(outgoing, pending))
            return
        self._out.append(outgoing)
        self._pending.append(pending)
        self._flush()

    def _flush(self) -> None:
        """Hand over as much as the kernel takes now. A failure is reported through the loop, never inside the caller's
        own work."""
        if not self._watching_writes:
            try:
                self._write()
            except BlockingIOError:
                return
            except OSError as error:
                cause = str(error) or type(error).__name__
                self._loop.call_later(0.0, lambda: self.close(cause))

    def _write(self) -> None:
        while self._out:
            if self._loop.stood_still:
                raise TimeoutError("the process stood still")
            try:
                sent = self._out.hand_over(self._socket, tls=self._tls)
            except BlockingIOError:
                self._watch_writes(True)
                raise
            self.unsent_bytes -= sent
            self._handed_bytes += sent
            self._traffic.sent += sent
            self._out.taken(sent)
        self._watch_writes(False)

    def _watch_writes(self, wanted: bool) -> None:
        if self._watching_writes != wanted and not self.closed:
            self._watching_writes = wanted
            self._loop.watch(self._socket.fileno(), self, writable=wanted)

    def _read(self) -> None:
        """Read the bytes that have arrived. TLS may hold bytes that epoll does not report, so it is read until it would
        block."""
        turns: Iterable[int] = itertools.count() if self._tls else range(_READS_PER_TURN)
        for _ in turns:
            frames = self._frames
            space = frames.space()
            received = self._receive(space)
            for frame in frames.received(received):
                self._deliver(frame)
                if self.closed or self._frames is not frames:
                    return
            self._wake_for(min(max(frames.missing, 1), _WAKE_BYTES))
            if received < len(space) and not self._tls:
                return  # nothing else had arrived

    def _wake_for(self, size: int) -> None:
        """Make the loop sleep until ``size`` bytes have arrived: an incomplete frame is of no use, and each wake-up has
        a cost."""
        if size != self._wake_bytes and not self._tls:
            self._wake_bytes = size
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def _receive(self, into: memoryview) -> int:
        received = self._socket.recv_into(into)
        if received == 0:
            raise ConnectionError("the broker closed the connection")
        self._heard_at = max(self._heard_at, self._loop.now)
        self._traffic.received += received
        return received

    def _distrust(self, request: _Pending, cause: str) -> None:
        request.on_lost(cause)
        self.close(cause)

    def _deliver(self, frame: Buffer) -> None:
        (correlation,) = struct.unpack_from(">i", frame.memory, 0)
        if not self._pending or self._pending[0].correlation != correlation:
            frame.release()
            self.close(f"a reply to request {correlation} came, which is not the oldest open one")
            return
        request = self._pending.popleft()
        if self._loop.now <= request.sent_at + ANSWER_SECONDS:
            self.patience, self.answered = 1.0, True
        try:
            request.on_reply(frame)
        except StraitError as error:  # a malformed reply: this connection cannot be trusted any more
            self._distrust(request, str(error))
        except LookupError as error:
            self._distrust(request, f"the reply names what was not asked for, or lacks what was: {error!r}")
        self._change_over()
