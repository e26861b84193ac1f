"""TLS and SASL for the engine's sockets, from the same librdkafka properties that confluent-kafka gets.

Files are read at each connect, so rotated certificates and passwords are used from the next connection on. Errors never
contain a secret.
"""

import logging
import re
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any

from kafka.net.sasl import get_sasl_mechanism
from kafka.net.sasl.scram import SaslMechanismScram

from strait.config import credentials, oauth
from strait.config.client_properties import MECHANISMS, PROTOCOLS, SECURITY
from strait.config.cluster_identity import expected_id, require_expected
from strait.config.validation import did_you_mean
from strait.errors import ConfigError
from strait.net import tls_context
from strait.net.oauth import Tokens

log = logging.getLogger(__name__)
logging.getLogger("kafka.net.sasl").setLevel(logging.ERROR)  # it warns at each connection, and names no cluster

_LEAST_ITERATIONS = 4096
"""The minimum of RFC 7677, which Kafka's brokers and Java clients require too. An attacker in a broker's place could
request a single iteration, and then find the password by trial."""


class Security:
    """How to secure connections to one cluster. ``cluster`` is its name, for errors."""

    def __init__(self, cluster: str, properties: Mapping[str, str]) -> None:
        self._cluster = cluster
        self._where = f"cluster {cluster}"
        self._properties = properties
        self._tokens = Tokens(cluster)
        unknown = sorted(key for key in properties if _secures(key) and key not in SECURITY)
        if unknown:
            raise ConfigError(
                self._where,
                [f"`{key}` is not supported{did_you_mean(key, SECURITY)}" for key in unknown],
                hint=f"supported: {', '.join(sorted(SECURITY))}",
            )
        self.protocol = properties.get("security.protocol", "plaintext").upper()
        if self.protocol not in PROTOCOLS:
            raise ConfigError(self._where, [f"`security.protocol` {self.protocol!r} is not one of {PROTOCOLS}"])
        self.mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "")).upper()
        if self.uses_sasl and self.mechanism not in MECHANISMS:
            raise ConfigError(self._where, [f"`sasl.mechanism` {self.mechanism!r} is not one of {MECHANISMS}"])
        problems = oauth.problems(properties) if self.uses_sasl and self.mechanism == "OAUTHBEARER" else []
        if problems:
            raise ConfigError(self._where, problems)

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    @property
    def expects_cluster(self) -> bool:
        """Whether the expected Kafka cluster ID is known."""
        return bool(expected_id(self._properties))

    def require_cluster(self, told: str | None, who: str) -> None:
        """Raise OtherCluster if a broker's cluster is not the expected one."""
        require_expected(self._cluster, self._properties, told, who)

    def tls_context(self) -> ssl.SSLContext:
        """Return a new context from the current content of the files. Raises ConfigError if a file cannot be used."""
        return tls_context.broker_context(self._where, credentials.resolve(self._cluster, self._properties))

    def sasl(self, host: str) -> Any:
        """Return a new SASL exchange: kafka-python's mechanism object. Also raises as `Tokens` does."""
        properties = credentials.resolve(self._cluster, self._properties)
        if not self.uses_tls and self.mechanism in ("PLAIN", "OAUTHBEARER"):
            _warn_of_plain_text(self._cluster)
        if self.mechanism == "OAUTHBEARER":
            return get_sasl_mechanism(self.mechanism)(sasl_oauth_token_provider=self._tokens.provider(properties))
        username, is_plain = properties.get("sasl.username", ""), self.mechanism == "PLAIN"
        return (get_sasl_mechanism(self.mechanism) if is_plain else _Scram)(
            security_protocol=self.protocol,
            sasl_mechanism=self.mechanism,
            sasl_plain_username=username if is_plain else _escaped(username),
            sasl_plain_password=properties.get("sasl.password", ""),
            host=host,
        )


class _Scram(SaslMechanismScram):  # type: ignore[misc]
    """Rejects a broker that requests too few iterations, with a ValueError."""

    def receive(self, auth_bytes: bytes) -> bool:
        asked = re.search(rb",i=(\d{1,9})", auth_bytes)
        if asked is not None and int(asked[1]) < _LEAST_ITERATIONS:
            raise ValueError(f"{int(asked[1])} iterations are asked for, fewer than {_LEAST_ITERATIONS}")
        return bool(super().receive(auth_bytes))


@cache
def _warn_of_plain_text(cluster: str) -> None:
    """Warn once per process."""
    log.warning("cluster %s: its credentials are sent unencrypted (set `security.protocol` to sasl_ssl)", cluster)


def _secures(key: str) -> bool:
    return key.startswith(("ssl.", "sasl.", "https."))


def _escaped(username: str) -> str:
    """Escape a user name for SCRAM: its messages are comma-separated key=value pairs, so RFC 5802 requires these two
    characters to be escaped; kafka-python does not do so."""
    return username.replace("=", "=3D").replace(",", "=2C")
