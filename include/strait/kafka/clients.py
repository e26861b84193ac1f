"""Construction of confluent-kafka's clients from a cluster's block in the links file. No client is built elsewhere.

librdkafka reads certificates and passwords only when a client is built; `Rotation` shows the owners of long-lived
clients when to build another.

Every client gets a `Watch`, which receives the errors that librdkafka reports outside of calls: a rejected password or
an unreachable broker is reported there first, while the call itself only ever reports "timed out".
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from strait.config import credentials, oauth
from strait.config.cluster_identity import for_client
from strait.errors import ClusterUnavailable, StraitError
from strait.kafka.translate import error_of, translate
from strait.tokens import sources

CONNECT_TIMEOUT_SECONDS = 8.0
STATE_ANSWER_MS = 3_000
"""Timeout, in ms, of requests that copying may wait for. Copying must resume within 5 s after a connection stops
responding."""

_SLICE_SECONDS = 0.5  # of a wait, after which the reported errors show whether waiting still makes sense
_PAUSE_SECONDS = 0.1
_LOOK_SECONDS = 1.0  # between two checks of the files that properties name

Result = TypeVar("Result")

# librdkafka's own log lines: silent unless the application configures logging, never straight to standard error.
_LOGGER = logging.getLogger("strait.librdkafka")
_LOGGER.addHandler(logging.NullHandler())


_NO_CAUSES = {
    # Reading with assign() uses no group, yet librdkafka queries for a coordinator and may be denied: harmless.
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    # It follows the error that is the cause. Clients before 2.16 report it 20 times a second, which would displace that.
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
}


class Watch:
    """Errors that librdkafka reported outside of calls about one client's cluster; newest last.

    ``cluster`` names it in errors; ``hear`` also gets every reported error, and ``read`` the kind and the text of every
    line that librdkafka logs, from inside a poll.
    """

    def __init__(
        self,
        cluster: str,
        hear: Callable[[KafkaError], None] | None = None,
        read: Callable[[str, str], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self._hear = hear
        self._read = read
        self._seen: deque[KafkaError] = deque(maxlen=20)

    def __call__(self, error: KafkaError) -> None:
        if error.code() not in _NO_CAUSES:
            self._seen.append(error)
        if self._hear is not None:
            self._hear(error)

    def log(self, level: int, form: str, kind: str, client: str, text: str) -> None:
        """Log a line, as librdkafka's logger."""
        _LOGGER.log(level, form, kind, client, text)
        if self._read is not None:
            self._read(kind, text)

    def translate(self, exception: KafkaException | KafkaError, doing: str) -> StraitError:
        """Return Strait's error for librdkafka's, with the errors reported meanwhile as its cause."""
        return translate(exception, cluster=self.cluster, doing=doing, seen=self._seen)

    def forget(self) -> None:
        """Drop the reported errors: a call has succeeded, so they no longer apply."""
        self._seen.clear()


class Rotation:
    """Whether the files that a cluster's properties name have changed since its client was built."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._built_with = self._seen = credentials.stamp(properties)
        self._look_at = 0.0

    def due(self) -> bool:
        """Whether to build another client now. Checks the files about once a second, and returns False in between."""
        now = time.monotonic()
        if not self._built_with or now < self._look_at:
            return False
        self._look_at = now + _LOOK_SECONDS
        self._seen = credentials.stamp(self._properties)
        return self._seen != self._built_with

    def done(self) -> None:
        """Record that another client was built after ``due`` returned True. Later changes are due again."""
        self._built_with = self._seen


def make_admin(properties: Mapping[str, str], watch: Watch) -> AdminClient:
    """Build an admin client. Raises ConfigError if librdkafka does not know a property, or its value or file is
    wrong."""
    return _make(AdminClient, properties, watch, {})


def make_consumer(properties: Mapping[str, str], watch: Watch, **overrides: Any) -> Consumer:
    """Build a consumer for assign(): it commits nothing. Overrides are written with ``_`` for ``.``. Raises
    ConfigError."""
    defaults = {"enable.auto.commit": False, "allow.auto.create.topics": False}
    return _make(Consumer, properties, watch, defaults | _dotted(overrides))


def make_producer(properties: Mapping[str, str], watch: Watch, **overrides: Any) -> Producer:
    """Build a producer. Overrides are written with ``_`` for ``.``. Writing to a missing topic does not create it: the
    topic would get the broker's defaults. Raises ConfigError."""
    defaults = {"acks": "all", "allow.auto.create.topics": False}
    return _make(Producer, properties, watch, defaults | _dotted(overrides))


def ask(watch: Watch, doing: str, timeout_seconds: float, call: Callable[[float], Result]) -> Result:
    """Make one blocking call in slices, so that rejected credentials end the wait immediately.

    Args:
        call: takes the seconds it may block; must also serve the client's callbacks.

    Raises:
        ClusterError: as classified by `translate`.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        began = time.monotonic()
        remaining = deadline - began
        try:
            result = call(max(0.1, min(_SLICE_SECONDS, remaining)))
        except KafkaException as exception:
            error = watch.translate(exception, doing)
            again = isinstance(error, ClusterUnavailable) and not error_of(exception).txn_requires_abort()
            if not again or remaining <= 0:
                raise error from exception
        else:
            watch.forget()
            return result
        time.sleep(max(0.0, began + _PAUSE_SECONDS - time.monotonic()))  # some errors are returned immediately


def _make(
    kind: Callable[..., Result], properties: Mapping[str, str], watch: Watch, defaults: Mapping[str, Any]
) -> Result:
    resolved = for_client(credentials.resolve(watch.cluster, properties))
    settings = {
        "client.id": "strait-control",
        "socket.connection.setup.timeout.ms": 5000,
        "socket.timeout.ms": 10_000,  # only this detects a connection that stopped responding; the default is 60 s
        "reconnect.backoff.max.ms": 1000,
        "log.connection.close": False,
        **defaults,
        **{key: value for key, value in _without_tokens(resolved).items() if key not in defaults},
        **_tokens(resolved, watch),
        "error_cb": watch,
    }
    try:
        return kind(settings, logger=watch)
    except KafkaException as exception:
        raise watch.translate(exception, "making a client") from exception


def _without_tokens(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without those of a source of tokens that librdkafka does not know."""
    if not oauth.is_own(properties):
        return dict(properties)
    return {key: value for key, value in properties.items() if not key.startswith("sasl.oauthbearer.")}


def _tokens(properties: Mapping[str, str], watch: Watch) -> dict[str, Callable[[str], Any]]:
    """Return the callback that gives librdkafka tokens, in a separate thread, if it cannot get them itself. It asks
    for another one after four fifths of a token's lifetime, and 10 s after a failure."""
    if not oauth.is_own(properties):
        return {}
    extensions = oauth.extensions_of(properties)

    def token(_: str) -> tuple[str, float, str, dict[str, str]]:
        try:
            found = sources.get(watch.cluster, properties)
        except StraitError as error:
            watch(KafkaError(KafkaError._AUTHENTICATION, str(error)))  # noqa: SLF001  librdkafka drops the text
            raise
        return found.value, found.expires_at, "", extensions

    return {"oauth_cb": token}


def _dotted(overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in overrides.items()}
