"""Serves metrics over HTTP: GET /metrics, to clients that send the token if there is one."""

import hmac
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from strait.errors import SetupError

log = logging.getLogger(__name__)

App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    address_family = socket.AF_INET


class _SixServer(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    """Logs requests at debug level only: a line for each scrape would fill the log."""

    timeout = 30.0

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)


class MetricsServer:
    """Listens from its construction, and responds from `start`.

    Args:
        address, port: to listen on; port 0: any free one, then in ``port``.
        token: a scrape must send it as `Authorization: Bearer`; "": every request is answered.
        certificate, key: PEM files; with them the server uses TLS.

    Raises:
        SetupError: it cannot listen there, or the files cannot be used.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        address: str,
        port: int,
        *,
        token: str = "",
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        kind = _SixServer if ":" in address else _Server
        try:
            self._server = make_server(address, port, _app(registry, token), kind, handler_class=_Quiet)
            if certificate is not None:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate, key, password="")  # otherwise it would prompt on a terminal
                self._server.socket = context.wrap_socket(
                    self._server.socket, server_side=True, do_handshake_on_connect=False
                )  # otherwise a client that sends nothing would block all others
        except OSError as error:
            raise SetupError(
                f"exporter: listening on {address} port {port}: {error.strerror or error}",
                hint="choose another --address or --port, and check --certificate and --key",
            ) from error
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop responding, and close the socket."""
        self._server.shutdown()
        self._server.server_close()


def _app(registry: CollectorRegistry, token: str) -> App:
    metrics = make_wsgi_app(registry)
    wanted = f"Bearer {token}".encode()

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        given = environ.get("HTTP_AUTHORIZATION", "").encode("latin-1", "replace")
        if token and not hmac.compare_digest(given, wanted):
            start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer")])
            return [b"a bearer token is needed\n"]
        if environ.get("PATH_INFO") != "/metrics":
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"metrics are at /metrics\n"]
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            start_response("405 Method Not Allowed", [("Allow", "GET, HEAD")])
            return [b""]
        found: Iterable[bytes] = metrics(environ, start_response)
        return found

    return answer
