"""The properties of librdkafka that a cluster's block may have. All others are rejected: some of them load code
(`plugin.library.paths`, `ssl.engine.location`), which a user with permission to edit an Airflow Connection must not be
able to do."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from strait.config.validation import did_you_mean

SECURITY = frozenset(
    {
        "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location",
        "ssl.key.pem", "ssl.key.password", "ssl.keystore.location", "ssl.keystore.password",
        "ssl.endpoint.identification.algorithm",
        "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password",
        "sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.scope", "sasl.oauthbearer.extensions",
        "https.ca.location", "https.ca.pem",
    }
)  # fmt: skip
"""Properties that secure a connection; the engine supports them too."""

_BOTH = frozenset({"bootstrap.servers", "security.protocol", "enable.ssl.certificate.verification"})
_LIBRDKAFKA_ONLY = frozenset(
    {
        "client.id", "client.rack", "client.dns.lookup", "broker.address.family", "broker.address.ttl",
        "socket.timeout.ms", "socket.connection.setup.timeout.ms", "socket.keepalive.enable", "socket.nagle.disable",
        "socket.max.fails", "socket.send.buffer.bytes", "socket.receive.buffer.bytes", "connections.max.idle.ms",
        "reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms", "retry.backoff.max.ms",
        "request.timeout.ms", "metadata.max.age.ms", "topic.metadata.refresh.interval.ms",
        "topic.metadata.refresh.fast.interval.ms", "topic.metadata.propagation.max.ms", "metadata.recovery.strategy",
        "metadata.recovery.rebootstrap.trigger.ms", "message.max.bytes", "receive.message.max.bytes",
        "api.version.request", "api.version.request.timeout.ms", "api.version.fallback.ms", "broker.version.fallback",
        "log.connection.close", "log_level",
    }
)  # fmt: skip
CLUSTER_ID = "cluster.id"
"""Strait's own property, not passed to clients: the expected cluster's ID (see strait.config.cluster_identity)."""
ALLOWED = SECURITY | _BOTH | _LIBRDKAFKA_ONLY | {CLUSTER_ID}

REFERENCE = re.compile(r"\$\{directory:(?P<directory>[^:}]+):(?P<name>[^:/}]+)\}")
"""Kafka's notation (of its DirectoryConfigProvider) for the content of the file NAME in DIR."""


def problems(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each property that a cluster may not have."""
    for key in properties:
        if key not in ALLOWED:
            yield f"`{key}` is not a property that a cluster may have{did_you_mean(key, ALLOWED)}"


def file_problems(properties: Mapping[str, str], folder: Path | None) -> Iterator[str]:
    """Yield a line for each property that refers to a file outside ``folder``; None: to any file.

    A client sends the file's content to a broker, and the author of the properties chooses that broker.
    """
    for key, value in properties.items():
        for reference in REFERENCE.finditer(value):
            directory = Path(reference["directory"])
            if folder is None or not directory.resolve().is_relative_to(folder.resolve()):
                yield f"`{key}` refers to a file in {directory}, which is not below the folder for secrets"
