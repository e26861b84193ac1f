"""Ports on loopback: find free ones, and name the process that holds a taken one."""

import errno
import secrets
import socket
from collections import deque
from contextlib import ExitStack
from pathlib import Path

import psutil

from strait.errors import SetupError

_LOWEST = 10_240
_CLAIMS = 256
_claims: deque[socket.socket] = deque()
"""Claims on the newest ports that were found, so that no other process finds them before their servers listen."""
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Return different ports that nothing listens on now, and that no other process has been given here and may listen
    on soon.

    They are below the range of outgoing connections: a server that is restarted must find its port free again, and the
    kernel gives ports of that range to any process in the meantime.
    """
    highest = int(_EPHEMERAL_RANGE.read_text(encoding="ascii").split()[0])
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = _LOWEST + secrets.randbelow(highest - _LOWEST)
            listener = held.enter_context(socket.socket())
            try:
                _bind(listener, port)
                claim = _claim(port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                found.append(port)
                _keep(claim)
    return found


def _claim(port: int) -> socket.socket:
    """Claim a port by a name in the kernel that only one process can hold at a time. Raises OSError."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0strait.port.{port}")
    except OSError:
        claim.close()
        raise
    return claim


def _keep(claim: socket.socket) -> None:
    _claims.append(claim)
    if len(_claims) > _CLAIMS:
        _claims.popleft().close()


def require_free(port: int, what_for: str) -> None:
    """Raise SetupError if something listens on ``port`` of loopback, naming the process if the kernel shows it."""
    with socket.socket() as listener:
        try:
            _bind(listener, port)
        except OSError as error:
            raise SetupError(
                f"{what_for}: listening on 127.0.0.1:{port}: "
                + (f"the port is in use by {_holder(port)}" if error.errno == errno.EADDRINUSE else str(error)),
                hint="end that process or choose another port",
            ) from error


def _bind(listener: socket.socket, port: int) -> None:
    # As servers do: connections that linger in TIME_WAIT do not hold a port.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(1)


def _holder(port: int) -> str:
    for connection in psutil.net_connections("tcp"):
        listens_there = connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
        if listens_there and connection.pid:
            try:
                return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
            except psutil.NoSuchProcess:
                break
    return "another process"
