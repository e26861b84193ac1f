"""Open a connection to a broker: TCP, TLS, ApiVersions, SASL. Blocking, with a time limit; the loop gets the socket
after.

Handshakes are rare and have many steps, so they are plain sequential code on a short-lived thread.
"""

import math
import socket
import ssl
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from kafka.errors import KafkaConfigurationError
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from strait import __version__
from strait.errors import ClusterUnavailable, LoginRejected, ProtocolError, UnsupportedRequest
from strait.net.security import Security
from strait.net.served import NAMES, End, missing
from strait.net.tls_socket import TOO_SLOW, TlsSocket

CLIENT_ID = f"strait-{__version__}"
CONNECT_SECONDS = 3.0  # an unreachable host is retried sooner than the kernel would
_UNACKNOWLEDGED_MS = 5_000  # then its host counts as unreachable; the kernel alone would retry for a quarter of an hour
_MAX_HANDSHAKE_FRAME_BYTES = 1 << 20
_SLOWEST_BYTES_PER_SECOND = 16 << 10  # of a reply: one that is slower is given up, however steady
_CORRELATION_BYTES = 4
_SIZE = struct.Struct(">i")
_OLDEST = "`strait validate --connect` lists what is missing; Apache Kafka has it since 2.8"
_BROKERS_ALONE = (3, 9, 12)
_CREDENTIALS = {"OAUTHBEARER": "check what the identity provider puts into tokens, and `sasl.oauthbearer.*`"}


_HEAD = struct.Struct(">hhi")
_CLIENT_ID = struct.pack(">h", len(CLIENT_ID)) + CLIENT_ID.encode() + b"\0"  # header version 2 ends with 0 tags


def request_head(api_key: int, version: int, correlation: int) -> bytes:
    """Return the bytes that precede a request's body: a flexible header, without the frame's size before it."""
    return _HEAD.pack(api_key, version, correlation) + _CLIENT_ID


def decoded(response_class: Any, frame: Any, request: Any, where: str = "") -> Any:
    """Return a reply, decoded by kafka-python's class. Raises ProtocolError, which names the broker ``where``."""
    try:
        return response_class.decode(frame, version=request.API_VERSION, header=True)
    except (IndexError, ValueError, TypeError, OverflowError, struct.error) as error:
        raise ProtocolError(f"{where}{': ' * bool(where)}a {response_class.__name__} is malformed") from error


class Answer(NamedTuple):
    """A reply, and its bytes without the correlation ID."""

    told: bytes
    reply: Any


class Connection:
    """A connection that is ready for requests.

    ``versions``: API key -> (lowest, highest) that the broker serves. ``session_seconds``: how long the broker accepts
    requests on it before the client must re-authenticate (KIP-368); 0.0: forever.
    """

    def __init__(self, cluster: str, address: tuple[str, int], sock: socket.socket) -> None:
        self.cluster = cluster
        self.address = address
        self.socket = sock
        self.versions: Mapping[int, tuple[int, int]] = {}
        self.session_seconds = 0.0
        self._correlation = 0

    def version(self, api_key: int, lowest: int, highest: int) -> int:
        """Return the highest version of a request that both sides support. Raises UnsupportedRequest if there is
        none."""
        low, high = self.versions.get(api_key, (0, -1))
        chosen = min(high, highest)
        if chosen < max(low, lowest):
            name = NAMES.get(api_key, f"request {api_key}")
            served = (
                f"versions {low} to {high} of {name}, Strait sends {lowest} to {highest}" if high >= 0 else f"no {name}"
            )
            raise UnsupportedRequest(f"{self.where} of {self.cluster} serves {served}", hint=_OLDEST)
        return chosen

    def ask(self, request: Any, response_class: Any, most_bytes: int = _MAX_HANDSHAKE_FRAME_BYTES) -> Any:
        """Send one of kafka-python's requests and wait for its reply. Raises ClusterUnavailable, and ProtocolError for
        a reply of more than ``most_bytes``."""
        return self.ask_each([request], response_class, most_bytes)[0]

    def ask_each(
        self, requests: Sequence[Any], response_class: Any, most_bytes: int = _MAX_HANDSHAKE_FRAME_BYTES
    ) -> list[Any]:
        """Send several requests together, and wait for their replies, which arrive in the same order. All of them must
        fit into the kernel's buffers. Raises as ``ask``."""
        frames = self._exchange(requests, most_bytes)
        return [
            decoded(response_class, frame, request, self.where) for request, frame in zip(requests, frames, strict=True)
        ]

    def ask_again(
        self, request: Any, response_class: Any, before: Answer | None, most_bytes: int = _MAX_HANDSHAKE_FRAME_BYTES
    ) -> Answer:
        """Ask as ``ask`` does; if the reply equals ``before`` byte for byte, return that instead of decoding it
        again."""
        return self.ask_each_again([request], response_class, [before], most_bytes)[0]

    def ask_each_again(
        self,
        requests: Sequence[Any],
        response_class: Any,
        before: Sequence[Answer | None],
        most_bytes: int = _MAX_HANDSHAKE_FRAME_BYTES,
    ) -> list[Answer]:
        """Ask as ``ask_each`` does; a reply that equals the one in ``before`` byte for byte is not decoded again."""
        answers = []
        for request, frame, known in zip(requests, self._exchange(requests, most_bytes), before, strict=True):
            told = frame[_CORRELATION_BYTES:]
            if known is not None and known.told == told:
                answers.append(known)
            else:
                answers.append(Answer(told, decoded(response_class, frame, request, self.where)))
        return answers

    def ask_raw(self, api_key: int, version: int, body: bytes, most_bytes: int) -> memoryview:
        """Send a request whose body is encoded and whose header is flexible; return the reply's bytes, the correlation
        ID included. Raises as ``ask``."""
        self._correlation += 1
        frame = request_head(api_key, version, self._correlation) + body
        with self._failing():
            self.socket.sendall(_SIZE.pack(len(frame)) + frame)
            return self._frame(most_bytes)

    def require(self, end: End) -> None:
        """Raise UnsupportedRequest if the broker lacks a request without which this end of a link cannot be copied."""
        for need in missing(self.versions, end):
            if need.is_required:
                self.version(need.key, *need.versions)

    def close(self) -> None:
        self.socket.close()

    def _exchange(self, requests: Sequence[Any], most_bytes: int) -> list[bytes]:
        frames = bytearray()
        for request in requests:
            self._correlation += 1
            request.with_header(correlation_id=self._correlation, client_id=CLIENT_ID)
            frames += request.encode(framed=True, header=True)
        with self._failing():
            self.socket.sendall(frames)
            return [bytes(self._frame(most_bytes)) for _ in requests]

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ClusterUnavailable(self.cluster, f"{self.where}: {error or type(error).__name__}") from error

    def _frame(self, most_bytes: int) -> memoryview:
        (size,) = _SIZE.unpack(self._receive(_SIZE.size))
        if not _CORRELATION_BYTES <= size <= most_bytes:
            raise ProtocolError(f"{self.where} sent a frame of {size} bytes; this is not a Kafka listener's answer")
        return self._receive(size)

    def _receive(self, size: int) -> memoryview:
        data = memoryview(bytearray(size))
        received = 0
        with _deadline(self.socket, size / _SLOWEST_BYTES_PER_SECOND) as deadline:
            while received < size:
                count = self.socket.recv_into(data[received:])
                if not count:
                    raise ConnectionError("the broker closed the connection")
                received += count
                if received < size and time.monotonic() > deadline:
                    raise TimeoutError(TOO_SLOW)
        return data

    @property
    def where(self) -> str:
        """The broker, as named in errors."""
        return f"broker {self.address[0]}:{self.address[1]}"


def dial(cluster: str, address: tuple[str, int], security: Security, timeout_seconds: float = 5.0) -> Connection:
    """Connect, secure, authenticate, and check that the broker belongs to the expected cluster: a broker never joins
    another one, so this holds for the connection's whole lifetime.

    Raises:
        ClusterUnavailable: nothing answers there in time, or not as a Kafka broker with this security protocol does.
        OtherCluster: the broker belongs to another cluster than the expected one.
        LoginRejected: the broker, or the token endpoint, rejects the credentials.
        ConfigError: a file with a certificate, a key or a secret cannot be used.
    """
    where = f"broker {address[0]}:{address[1]}"
    try:
        sock = socket.create_connection(address, min(CONNECT_SECONDS, timeout_seconds))
    except OSError as error:
        raise ClusterUnavailable(
            cluster, f"{where}: {error}", hint="is it running and is the address right?"
        ) from error
    try:
        sock.settimeout(timeout_seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)
        if security.uses_tls:
            sock = secured = TlsSocket(sock, security.tls_context(), address[0])
            with _deadline(secured, timeout_seconds):
                secured.shake_hands()
        connection = Connection(cluster, address, sock)
        _negotiate(connection)
        if security.uses_sasl:
            _authenticate(connection, security)
        if security.expects_cluster:
            _identify(connection, security)
    except ssl.SSLError as error:
        sock.close()
        raise ClusterUnavailable(
            cluster, f"{where}: TLS: {error.reason or error}", hint="compare `security.protocol` and the certificates"
        ) from error
    except OSError as error:
        sock.close()
        raise ClusterUnavailable(cluster, f"{where}: {error or 'timed out'}") from error
    except BaseException:
        sock.close()
        raise
    return connection


@contextmanager
def _deadline(sock: socket.socket, seconds: float) -> Iterator[float]:
    """Limit reading from the socket in this context to these seconds and its timeout; yield the end, by monotonic time."""
    timeout = sock.gettimeout()
    deadline = math.inf if timeout is None else time.monotonic() + timeout + seconds
    if not isinstance(sock, TlsSocket):
        yield deadline
        return
    sock.deadline = deadline
    try:
        yield deadline
    finally:
        sock.deadline = math.inf


def _negotiate(connection: Connection) -> None:
    request = ApiVersionsRequest(version=3, client_software_name="strait", client_software_version=__version__)
    try:
        reply = connection.ask(request, ApiVersionsResponse)
    except ClusterUnavailable as error:
        error.hint = "a TLS listener spoken to in plain text answers like this: compare `security.protocol`"
        raise
    if reply.error_code:
        raise ProtocolError(
            f"broker {connection.address} of {connection.cluster} answers ApiVersions with error {reply.error_code}",
            hint=_OLDEST,
        )
    connection.versions = {api.api_key: (api.min_version, api.max_version) for api in reply.api_keys}


def _identify(connection: Connection, security: Security) -> None:
    version = connection.version(*_BROKERS_ALONE)
    request = MetadataRequest(version=version, topics=[], allow_auto_topic_creation=False)
    security.require_cluster(connection.ask(request, MetadataResponse).cluster_id, connection.where)


def _authenticate(connection: Connection, security: Security) -> None:
    cluster, mechanism = connection.cluster, security.mechanism
    shaken = connection.ask(SaslHandshakeRequest(version=1, mechanism=mechanism), SaslHandshakeResponse)
    if shaken.error_code:
        raise LoginRejected(
            cluster, f"does not accept SASL mechanism {mechanism}", hint=f"it accepts {', '.join(shaken.mechanisms)}"
        )
    try:
        exchange = security.sasl(connection.address[0])
        while not exchange.is_done():
            request = SaslAuthenticateRequest(version=1, auth_bytes=exchange.auth_bytes())
            reply = connection.ask(request, SaslAuthenticateResponse)
            if reply.error_code:
                raise LoginRejected(
                    cluster,
                    f"refuses the login over {mechanism}: {reply.error_message or 'authentication failed'}",
                    hint=_CREDENTIALS.get(mechanism, "check `sasl.username` and `sasl.password`"),
                )
            exchange.receive(bytes(reply.auth_bytes))
            connection.session_seconds = reply.session_lifetime_ms / 1000
    except (ValueError, KeyError, KafkaConfigurationError) as error:
        raise LoginRejected(cluster, f"the {mechanism} exchange failed: {error}") from error
