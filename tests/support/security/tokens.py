"""A token endpoint as an identity provider has one: OAuth's client credentials grant, over HTTP or HTTPS on
loopback."""

import base64
import json
import ssl
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from support.security.pki import Identity

AUDIENCE = "kafka"


class TokenEndpoint:
    """Gives tokens of ``life_seconds`` to ``clients`` (id -> secret); brokers check them by the keys in ``jwks``.

    With an ``identity`` it speaks HTTPS and shows that.
    """

    def __init__(
        self, clients: dict[str, str], jwks: Path, life_seconds: float = 300.0, identity: Identity | None = None
    ) -> None:
        self.clients = clients
        self.life_seconds = life_seconds
        self.given: list[str] = []
        self.asked: list[dict[str, list[str]]] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        jwks.write_text(json.dumps({"keys": [public | {"kid": "1", "alg": "RS256", "use": "sig"}]}))
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.asked.append(urllib.parse.parse_qs(form))
                status, content = endpoint._answer(self.headers.get("Authorization", ""))
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Tests need no access log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._scheme = "http" if identity is None else "https"
        if identity is not None:
            self._server.socket = _server_context(identity).wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/token"

    @contextmanager
    def running(self) -> Iterator["TokenEndpoint"]:
        """Serve until the block ends."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def _answer(self, authorization: str) -> tuple[int, dict[str, Any]]:
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if not secret or self.clients.get(client) != secret:
            return 401, {"error": "invalid_client", "error_description": "No such client, or not with this secret."}
        return 200, {"access_token": self.issue(client), "token_type": "Bearer", "expires_in": self.life_seconds}

    def issue(self, client: str) -> str:
        """A token for the client."""
        now = time.time()
        claims = {"sub": client, "iat": now, "exp": now + self.life_seconds, "aud": AUDIENCE}
        token = jwt.encode(claims, self._key, "RS256", {"kid": "1"})
        self.given.append(token)
        return token


def _server_context(identity: Identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w") as file:  # OpenSSL reads a certificate's key from files only
        file.write(identity.key_pem() + identity.pem)
        file.flush()
        context.load_cert_chain(file.name)
    return context
