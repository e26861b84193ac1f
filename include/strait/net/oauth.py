"""Tokens for SASL OAUTHBEARER: OAuth's client credentials grant, as librdkafka does it for
``sasl.oauthbearer.method=oidc``, and those that Strait gets for both clients (strait.tokens)."""

import base64
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from strait.config.oauth import client_id, client_secret, extensions_of, is_own
from strait.errors import ClusterUnavailable, ConfigError, LoginRejected
from strait.net.tls_context import endpoint_context
from strait.tokens import sources

if TYPE_CHECKING:
    import httpx

_TIMEOUT_SECONDS = 10.0


class Tokens:
    """Gets tokens and reuses the newest for a while. Safe from any thread; blocks during a request."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._token = ""
        self._secret = ""
        self._reused_until = 0.0

    def provider(self, properties: Mapping[str, str]) -> AbstractTokenProvider:
        """Return the current token as kafka-python's token provider.

        Raises:
            ClusterUnavailable: the token endpoint cannot be reached, or returns no token now.
            LoginRejected: it rejects this client.
            ConfigError: `https.ca.*` or the endpoint's URL cannot be used.

        Also raises as `sources.get` does.
        """
        if is_own(properties):
            return _Provider(sources.get(self._cluster, properties).value, extensions_of(properties))
        with self._lock:
            secret = client_secret(properties)
            if time.monotonic() >= self._reused_until or secret != self._secret:
                self._token, life_seconds = self._ask(properties)
                self._secret, self._reused_until = secret, time.monotonic() + life_seconds * sources.REUSED_SHARE
            return _Provider(self._token, extensions_of(properties))

    def _ask(self, properties: Mapping[str, str]) -> tuple[str, float]:
        url = properties["sasl.oauthbearer.token.endpoint.url"]
        doing = f"asking {url} for a token"
        form = {"grant_type": "client_credentials"}
        if properties.get("sasl.oauthbearer.scope"):
            form["scope"] = properties["sasl.oauthbearer.scope"]
        verify = endpoint_context(f"cluster {self._cluster}", properties) if url.startswith("https:") else True
        import httpx  # here: it is slow to load, and no other SASL mechanism needs it

        try:
            reply = httpx.post(
                url,
                data=form,
                headers={"Authorization": _basic(client_id(properties), client_secret(properties))},
                timeout=_TIMEOUT_SECONDS,
                verify=verify,
            )
        except httpx.InvalidURL as error:
            raise ConfigError(
                f"cluster {self._cluster}", [f"`sasl.oauthbearer.token.endpoint.url`: {error}"]
            ) from error
        except httpx.HTTPError as error:
            raise ClusterUnavailable(self._cluster, f"{doing}: {error or type(error).__name__}") from error
        if reply.status_code in (400, 401, 403):
            raise LoginRejected(
                self._cluster,
                f"{doing}: HTTP status {reply.status_code} {_oauth_error(reply)}".rstrip(),
                hint="check `sasl.oauthbearer.client.id`, `.client.secret` and `.scope`",
            )
        if not reply.is_success:
            raise ClusterUnavailable(self._cluster, f"{doing}: HTTP status {reply.status_code}")
        return self._parse(reply, doing)

    def _parse(self, reply: "httpx.Response", doing: str) -> tuple[str, float]:
        content = _json(reply)
        token = content.get("access_token")
        if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
            raise ClusterUnavailable(self._cluster, f"{doing}: the response has no `access_token`")
        life = content.get("expires_in", 0)
        return token, float(life) if isinstance(life, int | float) else 0.0


class _Provider(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        super().__init__()
        self._token = token
        self._extensions = extensions

    def token(self) -> str:
        return self._token

    def extensions(self) -> Mapping[str, str]:
        return self._extensions


def _basic(client_id: str, secret: str) -> str:
    """Return the header of HTTP basic authentication."""
    return "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode()


def _oauth_error(reply: "httpx.Response") -> str:
    """Return the error code of RFC 6749, and nothing else of the response: the endpoint has just received a secret."""
    code = _json(reply).get("error", "")
    return code if isinstance(code, str) and code.isidentifier() else ""


def _json(reply: "httpx.Response") -> dict[str, Any]:
    try:
        content = reply.json()
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
