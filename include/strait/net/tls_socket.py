"""A TLS socket that lets OpenSSL work in memory, so that the kernel is called for many records at once.

An `ssl.SSLSocket` calls the kernel twice for each record of 16 KiB that comes and once for each that goes. By memory a
gigabyte costs about a fifth less CPU, in either direction.
"""

import contextlib
import socket
import ssl
from typing import Any

_RECEIVE_BYTES = 1 << 18


class TlsSocket(socket.socket):
    """Takes over a connected socket; it is for whoever wants to read and write its bytes through TLS.

    Where it does not block, BlockingIOError means: `send` again exactly the same bytes, as soon as the kernel takes
    more.
    """

    def __init__(self, connected: socket.socket, context: ssl.SSLContext, server_hostname: str) -> None:
        timeout = connected.gettimeout()
        super().__init__(fileno=connected.detach())
        self.settimeout(timeout)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        self._received = memoryview(bytearray(_RECEIVE_BYTES))
        self._accepted = 0  # bytes of the caller's, encrypted but not all with the kernel yet
        self._encrypted = memoryview(b"")

    def shake_hands(self) -> None:
        """Make the connection secure. It must block. Raises ssl.SSLError where the two do not trust each other."""
        try:
            while not self._shaken():
                self._push()
                if not self._pull():
                    raise ConnectionError("the broker closed the connection during the TLS handshake")
        finally:
            with contextlib.suppress(OSError):  # what ends it; or an alert, which tells the broker what we do not like
                self._push()

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """What has arrived, as much of it as there is room for; 0 at the end."""
        room = memoryview(buffer)[: nbytes or None]
        taken = 0
        while taken < len(room):
            try:
                count = int(self._tls.read(len(room) - taken, room[taken:]))
            except ssl.SSLWantReadError:
                if taken or not self._pull():
                    break
            else:
                taken += count
                if count == 0:  # the broker said farewell
                    break
        return taken

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """As `recv_into` does."""
        buffer = bytearray(bufsize)
        return bytes(buffer[: self.recv_into(buffer)])

    def send(self, data: Any, flags: int = 0) -> int:
        """All of ``data``, once the kernel has it."""
        if not self._accepted:
            self._accepted = self._tls.write(data)
        self._push()
        accepted, self._accepted = self._accepted, 0
        return accepted

    def sendall(self, data: Any, flags: int = 0) -> None:
        """As `send` does."""
        self.send(data)

    def _shaken(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def _pull(self) -> bool:
        """Take what the kernel holds; False at the end."""
        count = super().recv_into(self._received)
        self._incoming.write(self._received[:count])
        return count > 0

    def _push(self) -> None:
        """Hand the kernel what is encrypted."""
        while self._encrypted or self._outgoing.pending:
            if not self._encrypted:
                self._encrypted = memoryview(self._outgoing.read())
            self._encrypted = self._encrypted[super().send(self._encrypted) :]
