"""The properties of librdkafka that a cluster's block may have. All others are rejected: some of them load code
(`plugin.library.paths`, `ssl.engine.location`), which a user with permission to edit an Airflow Connection must not be
able to do."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from strait.config import oauth
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
        "https.ca.location", "https.ca.pem", *oauth.OWN,
    }
)  # fmt: skip
"""Properties that secure a connection; the engine supports them too."""

RACK = "client.rack"
"""Rack of the slots, for fetches only: clients of state topics read from leaders (see strait.config.racks)."""
MAX_AGE = "metadata.max.age.ms"
_BOTH = frozenset({"bootstrap.servers", "security.protocol", "enable.ssl.certificate.verification", RACK, MAX_AGE})
_LIBRDKAFKA_ONLY = frozenset(
    {
        "client.id", "client.dns.lookup", "broker.address.family", "broker.address.ttl",
        "socket.timeout.ms", "socket.connection.setup.timeout.ms", "socket.keepalive.enable", "socket.nagle.disable",
        "socket.max.fails", "socket.send.buffer.bytes", "socket.receive.buffer.bytes", "connections.max.idle.ms",
        "reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms", "retry.backoff.max.ms",
        "request.timeout.ms", "topic.metadata.refresh.interval.ms",
        "topic.metadata.refresh.fast.interval.ms", "topic.metadata.propagation.max.ms", "metadata.recovery.strategy",
        "metadata.recovery.rebootstrap.trigger.ms", "message.max.bytes", "receive.message.max.bytes",
        "api.version.request", "api.version.request.timeout.ms", "api.version.fallback.ms", "broker.version.fallback",
        "log.connection.close", "log_level",
    }
)  # fmt: skip
CLUSTER_ID = "cluster.id"
"""Strait's own property, not passed to clients: the expected cluster's ID (see strait.config.cluster_identity)."""
STATE_KEY, FORMER_STATE_KEY = "state.key", "state.key.former"
"""Strait's own too: the key that signs a link's plans on this destination, and the one before it, which is still
accepted (see strait.state.signing)."""
OWN = frozenset({CLUSTER_ID, STATE_KEY, FORMER_STATE_KEY})
_SHORTEST_KEY = 32
ALLOWED = SECURITY | _BOTH | _LIBRDKAFKA_ONLY | OWN

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_SERVERS, _PROTOCOL, _MECHANISM, _ITS_OTHER_NAME = (
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.mechanisms"
)  # fmt: skip
_TWO_NAMES = (
    (_MECHANISM, _ITS_OTHER_NAME),
    ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.credentials.client.id"),
    ("sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"),
)
"""Names of one property each. Of both, librdkafka uses the one that it is given last; the engine has a fixed preference."""
_WORDS = {
    "ssl.endpoint.identification.algorithm": ("https", "none"),
    "enable.ssl.certificate.verification": ("true", "false"),
}
"""Property -> the values that mean the same to both clients, in any case. librdkafka also reads `0` as false."""
_LONGEST_AGE_MS = 86_400_000
_INSTEAD = {"AWS_MSK_IAM": f"; set OAUTHBEARER with `{oauth.METHOD}: {oauth.MSK_IAM}`"}

REFERENCE = re.compile(r"\$\{directory:(?P<directory>[^:}]+):(?P<name>[^:/}]+)\}")
"""Kafka's notation (of its DirectoryConfigProvider) for the content of the file NAME in DIR."""


_NEEDS = {
    "ssl.key.password": ("ssl.key.location", "ssl.key.pem", "ssl.certificate.location", "ssl.certificate.pem"),
    "ssl.keystore.password": ("ssl.keystore.location",),
    "ssl.key.location": ("ssl.certificate.location", "ssl.certificate.pem"),
    "ssl.key.pem": ("ssl.certificate.location", "ssl.certificate.pem"),
}
"""Property of a client's certificate -> those of which one must be there, too: the broker gets no certificate otherwise."""

_OTHER_REFERENCE = re.compile(r"\$\{(?!directory:)[A-Za-z][\w-]*:[^}]*\}")
"""Notation of other configuration providers, which would be sent to the broker literally."""


def problems(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each property that a cluster may not have, or whose value cannot work."""
    yield from _value_problems(properties)
    for key in properties:
        if key not in ALLOWED:
            yield f"`{key}` is not a property that a cluster may have{did_you_mean(key, ALLOWED)}"
    for names in _TWO_NAMES:
        if all(name in properties for name in names):
            yield f"`{names[0]}` and `{names[1]}` are names of one property; set one of them"
    age = properties.get(MAX_AGE, "1")
    if not re.fullmatch("[0-9]{1,9}", age) or not 1 <= int(age) <= _LONGEST_AGE_MS:
        yield f"`{MAX_AGE}` must be a number of milliseconds, 1 to {_LONGEST_AGE_MS}"
    if REFERENCE.search(properties.get(oauth.COMMAND, "")):
        yield f"`{oauth.COMMAND}` must not refer to a secret: every user of a host can read command lines"
    for key in (STATE_KEY, FORMER_STATE_KEY):
        value = properties.get(key)
        if value is not None and REFERENCE.search(value) is None and len(value) < _SHORTEST_KEY:
            yield f"`{key}` has {len(value)} characters, fewer than {_SHORTEST_KEY}; `openssl rand -hex 32` makes one"


def _value_problems(properties: Mapping[str, str]) -> Iterator[str]:
    for key, value in properties.items():
        if found := _OTHER_REFERENCE.search(value):
            yield f"`{key}`: {found[0]} is not supported; ${{directory:DIR:NAME}} stands for the content of a file"
    properties = {key: value for key, value in properties.items() if "${" not in value}  # known when it is used
    servers = properties.get(_SERVERS, "")
    items = [part for part in map(str.strip, servers.split(",")) if part]
    if servers and not items:
        yield f"`{_SERVERS}`: {servers!r} has no host:port"
    for item in items:
        host, _, port = item.rpartition("://")[2].rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            yield f"`{_SERVERS}`: {item!r} is not host:port"
    protocol = properties.get(_PROTOCOL, "plaintext")
    if protocol.upper() not in PROTOCOLS:
        yield f"`{_PROTOCOL}`: {protocol!r} is not one of {', '.join(PROTOCOLS).lower()}"
    for key in (_MECHANISM, _ITS_OTHER_NAME):
        mechanism = properties.get(key, MECHANISMS[0])
        if mechanism.upper() in MECHANISMS and mechanism not in MECHANISMS:
            yield f"`{key}`: {mechanism!r} must be in upper case: {mechanism.upper()}"
        elif mechanism not in MECHANISMS:
            instead = _INSTEAD.get(mechanism.upper(), f"; supported: {', '.join(MECHANISMS)}")
            yield f"`{key}`: {mechanism!r} is not supported{instead}"
    for key, words in _WORDS.items():
        if (value := properties.get(key, words[0])).lower() not in words:
            yield f"`{key}`: {value!r} is not one of {', '.join(words)}{did_you_mean(value.lower(), words)}"


def overridden(properties: Mapping[str, str], over: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with the others over them. One that has two names replaces the other name, too."""
    others = {name for names in _TWO_NAMES if any(map(over.__contains__, names)) for name in names}
    return {key: value for key, value in properties.items() if key not in others} | dict(over)


def missing(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each property without which no connection succeeds, or others have no effect."""
    if any(REFERENCE.search(properties.get(key, "")) for key in (_PROTOCOL, _MECHANISM, _ITS_OTHER_NAME)):
        return
    sasl = properties.get(_PROTOCOL, "").lower().startswith("sasl")
    tls = properties.get(_PROTOCOL, "").lower().endswith("ssl")
    mechanism = properties.get(_MECHANISM, properties.get(_ITS_OTHER_NAME, "")).upper()
    idle = [key for key in properties if (key.startswith("ssl.") and not tls) or (key.startswith("sasl.") and not sasl)]
    if idle:
        wanted = "sasl_ssl or sasl_plaintext" if any(key.startswith("sasl.") for key in idle) else "ssl or sasl_ssl"
        yield f"`{idle[0]}` has no effect without `{_PROTOCOL}`: {wanted}"
    for key, others in _NEEDS.items():
        if tls and key in properties and not any(map(properties.get, others)):
            yield f"`{key}` has no effect without `{others[0]}`"
    if sasl and not mechanism:
        yield f"`{_MECHANISM}` is missing: one of {', '.join(MECHANISMS)}"
    elif sasl and mechanism == "OAUTHBEARER":
        yield from oauth.problems(properties)
    elif sasl:
        yield from (f"`{key}` is missing" for key in ("sasl.username", "sasl.password") if not properties.get(key))


def file_problems(properties: Mapping[str, str], folder: Path | None) -> Iterator[str]:
    """Yield a line for each property by which the author of an Airflow Connection would use secrets of the host.

    A client sends a file's content, a command's token or one that AWS's signer makes to a broker, which the author
    chooses. So files and programs must be below ``folder`` (None: there is none), and AWS's tokens go to AWS only.
    """
    for key, value in properties.items():
        for reference in REFERENCE.finditer(value):
            directory = Path(reference["directory"])
            if not _is_below(directory, folder):
                yield f"`{key}` refers to a file in {directory}, which is not below the folder for secrets"
    if oauth.FILE in properties and not _is_below(Path(properties[oauth.FILE]), folder):
        yield f"`{oauth.FILE}` is not below the folder for secrets"
    program = next(iter(oauth.command_of(properties)), "")
    if oauth.COMMAND in properties and not _is_below(Path(program), folder):
        yield f"`{oauth.COMMAND}` runs a program that is not below the folder for secrets"
    signs = properties.get(oauth.METHOD) == oauth.MSK_IAM or oauth.ROLE in properties
    if signs and not oauth.is_msk(properties):
        yield (
            f"`{oauth.METHOD}`: {oauth.MSK_IAM} needs `bootstrap.servers` of Amazon MSK beside it, and its certificates "
            "verified: whoever gets a token may use the principal's rights"
        )


def _is_below(path: Path, folder: Path | None) -> bool:
    return folder is not None and path.is_absolute() and path.resolve().is_relative_to(folder.resolve())
