"""A gateway before two Kafka clusters, as operators have one: clients know its address alone, and a file says to which
port it leads; an empty one: to none. Who is connected when that changes is cut off, and comes again."""

import contextlib
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from support.links.far import FarCluster

_LOOK_SECONDS = 0.05
_BYTES = 1 << 16


class GatedCluster(FarCluster):
    """Of one broker, which tells the clients that come through a gateway to go on coming through it."""

    def __init__(self, directory: Path, door: int) -> None:
        super().__init__(directory)
        self._doors = dict.fromkeys(self._doors, f"127.0.0.1:{door}")

    @property
    def inside(self) -> int:
        """The port to which the gateway leads."""
        return int(next(iter(self._doors)).rpartition(":")[2])

    @property
    def far_properties(self) -> dict[str, str]:
        """Links come straight."""
        return self.client_properties

    @property
    def door_properties(self) -> dict[str, str]:
        """What clients of the gateway need."""
        return self.client_properties | {"bootstrap.servers": next(iter(self._doors.values()))}


class Gateway:
    """Listens on ``door``; ``file`` says to which port it leads."""

    def __init__(self, door: int, file: Path) -> None:
        self._file = file
        self._listener = socket.create_server(("127.0.0.1", door))
        self._open: set[socket.socket] = set()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._accept, self._watch)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._listener.close()
        self._cut()

    def _accept(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError):
                client, _ = self._listener.accept()
                target = self._file.read_text()
                if not target:
                    client.close()
                    continue
                broker = socket.create_connection(("127.0.0.1", int(target)))
                self._open |= {client, broker}
                for one, other in ((client, broker), (broker, client)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(_BYTES):
                other.sendall(data)
        for end in (one, other):
            self._open.discard(end)
            _end(end)

    def _watch(self) -> None:
        led_to = self._file.read_text()
        while not self._over.is_set():
            if (leads_to := self._file.read_text()) != led_to:
                led_to = leads_to
                self._cut()
            time.sleep(_LOOK_SECONDS)

    def _cut(self) -> None:
        for end in list(self._open):
            _end(end)


def _end(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
