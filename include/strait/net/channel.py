"""One non-blocking connection on the loop: requests out by scatter-gather, replies in order into pooled buffers."""

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
from strait.net.handshake import CLIENT_ID, Connection
from strait.net.send_buffer import Outgoing, Piece, SendBuffer
from strait.net.tls_socket import TlsSocket

ANSWER_SECONDS = 2.5
"""How long a reply may take to begin. Copying is to go on five seconds after a connection has died in silence; a broker
that is too slow for it gets more `patience`."""
MOST_PATIENCE = 8.0

_READS_PER_TURN = 8  # others have their turn before more is read; the selector comes back to what is left
_WAKE_BYTES = 1 << 20
NO_REPLY = "no reply in time"
_CLIENT_ID = struct.pack(">h", len(CLIENT_ID)) + CLIENT_ID.encode() + b"\0"  # header version 2 ends in no tags


def request_head(api_key: int, version: int, correlation: int) -> bytes:
    """What stands before a request's body: a flexible header, without the frame's size before it."""
    return struct.pack(">hhi", api_key, version, correlation) + _CLIENT_ID


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
    """Exactly one of a request's two callbacks is called: ``on_reply`` with the frame, or ``on_lost`` with the cause.

    The receiver of a frame releases it. ``unsent_bytes`` is what the kernel has not taken yet.
    """

    def __init__(self, loop: Loop, pool: BufferPool, connection: Connection, on_closed: Callable[[str], None]) -> None:
        self._loop = loop
        self._pool = pool
        self._on_closed = on_closed
        self._next: Connection | None = None
        self._held: deque[_Held] = deque()
        self._pending: deque[_Pending] = deque()
        self._out = SendBuffer()
        self._correlation = 1 << 20  # far from those of the handshake
        self._heard_at = loop.now
        self._handed_bytes = 0  # to the kernel, on this connection
        self._taken_bytes = 0  # of them by the other side, as last seen
        self._unread_bytes = 0  # with the kernel, as last seen
        self.unsent_bytes = 0
        self.patience = 1.0
        """How many times longer than said a reply may take: more where replies did not come, else a request that takes
        longer would be sent for ever; no more than said once one has come in that time."""
        self.answered = False
        """Whether a reply has come in the time that is said."""
        self.closed = False
        self._take(connection)

    def go_on_with(self, connection: Connection) -> None:
        """Send what comes from now on over another connection, once every reply to what went before is here.

        So requests are served in order, as on one connection: a batch never overtakes the one before it.
        """
        if self._next is not None:
            self._next.close()
        self._next = connection
        self._change_over()

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
        on_sent: Callable[[], None] | None = None,
    ) -> None:
        """Queue a request with a flexible header. ``on_sent``: the kernel has all of it, so its memory may be
        reused."""
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
        """When the last byte came, in the loop's time; before the first one, when the connection was made."""
        return self._heard_at

    @property
    def idle(self) -> bool:
        """No reply is waited for."""
        return not self._pending and not self._held

    def expire(self) -> None:
        """Close when nothing was heard for as long as the oldest request may take. Called a few times a second.

        A large reply over a slow line may take its time, as long as it keeps coming; so may a large request, as long as
        the other side keeps taking it.
        """
        if self._pending:
            self._notice_taking()
            self._notice_coming()
            oldest = self._pending[0]
            if max(oldest.sent_at, self._heard_at) + ANSWER_SECONDS * self.patience < self._loop.now:
                self.close(NO_REPLY)

    def be_patient(self, seconds: float) -> None:
        """The broker has said that it serves nothing more on this connection for so long."""
        self._heard_at = max(self._heard_at, self._loop.now + seconds)

    def _notice_taking(self) -> None:
        """Whether the other side's kernel still takes what ours holds. Once that holds nothing, the reply is due."""
        held = self._kernel_says(termios.TIOCOUTQ)
        taken = self._handed_bytes - held
        if held and taken > self._taken_bytes:
            self._heard_at = max(self._heard_at, self._loop.now)
        self._taken_bytes = taken

    def _notice_coming(self) -> None:
        """Whether more has arrived. The loop sleeps until a good part of a reply is there (see `_wake_for`), and over a
        slow line that alone may take longer than a reply that does not begin."""
        unread = self._kernel_says(termios.FIONREAD)
        if unread > self._unread_bytes:
            self._heard_at = max(self._heard_at, self._loop.now)
        self._unread_bytes = unread

    def _kernel_says(self, request: int) -> int:
        """What an ioctl on the socket answers: a number of bytes."""
        (size,) = struct.unpack("i", fcntl.ioctl(self._socket.fileno(), request, b"\0\0\0\0"))
        return int(size)

    def close(self, cause: str) -> None:
        """Close and tell every waiting request why. Nothing happens the second time."""
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
        """Use a connection that nothing was sent on yet."""
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
        """Leave the old connection when it has nothing more to give."""
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
        if self.closed:  # whoever waited meanwhile may hold it still
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
        """Hand over what the kernel takes now; a failure shows on the loop, never inside a caller's own work."""
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
            self._out.taken(sent)
        self._watch_writes(False)

    def _watch_writes(self, wanted: bool) -> None:
        if self._watching_writes != wanted and not self.closed:
            self._watching_writes = wanted
            self._loop.watch(self._socket.fileno(), self, writable=wanted)

    def _read(self) -> None:
        """Take what has arrived. TLS may hold bytes that no selector shows, so it is read until it would block."""
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
                return  # all that had arrived

    def _wake_for(self, size: int) -> None:
        """Let the loop sleep until so much has arrived: half a frame is of no use, and each wake-up costs."""
        if size != self._wake_bytes and not self._tls:
            self._wake_bytes = size
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    def _receive(self, into: memoryview) -> int:
        received = self._socket.recv_into(into)
        if received == 0:
            raise ConnectionError("the broker closed the connection")
        self._heard_at = max(self._heard_at, self._loop.now)
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
