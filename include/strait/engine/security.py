"""TLS and SASL for the engine's sockets, from the same librdkafka properties that confluent-kafka gets.

Files are read at each connect, so rotated certificates are used from the next one on. No secret is ever in an error.
"""

import ssl
from collections.abc import Mapping
from typing import Any

from kafka.net.sasl import get_sasl_mechanism

from strait.config import did_you_mean
from strait.errors import ConfigError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SUPPORTED = frozenset(
    {
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
    }
)
"""Those that change how a connection is secured and that the engine knows; others of their kind are refused, since the
control plane's client would obey what the slots ignore."""


class Security:
    """How to secure a connection to one cluster. ``cluster`` is its name, for errors."""

    def __init__(self, cluster: str, properties: Mapping[str, str]) -> None:
        self._where = f"cluster {cluster}"
        self._properties = properties
        unknown = sorted(key for key in properties if key.startswith(("ssl.", "sasl.")) and key not in SUPPORTED)
        if unknown:
            raise ConfigError(
                self._where,
                [f"`{key}` is not supported{did_you_mean(key, SUPPORTED)}" for key in unknown],
                hint="docs/security.md lists what is",
            )
        self.protocol = properties.get("security.protocol", "plaintext").upper()
        if self.protocol not in PROTOCOLS:
            raise ConfigError(self._where, [f"`security.protocol` {self.protocol!r} is not one of {PROTOCOLS}"])
        self.mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "")).upper()
        if self.uses_sasl and self.mechanism not in MECHANISMS:
            raise ConfigError(self._where, [f"`sasl.mechanism` {self.mechanism!r} is not one of {MECHANISMS}"])

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    def tls_context(self) -> ssl.SSLContext:
        """A fresh context from the files as they are now. Raises ConfigError where one cannot be used."""
        get = self._properties.get
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
        try:
            if get("ssl.ca.location") or get("ssl.ca.pem"):
                context.load_verify_locations(cafile=get("ssl.ca.location"), cadata=get("ssl.ca.pem"))
            if get("ssl.certificate.location"):
                context.load_cert_chain(
                    get("ssl.certificate.location", ""), get("ssl.key.location"), get("ssl.key.password")
                )
        except OSError as error:  # ssl.SSLError is one too
            raise ConfigError(self._where, [f"its certificate or key files cannot be used: {error}"]) from error
        if get("ssl.endpoint.identification.algorithm", "https").lower() in ("none", ""):
            context.check_hostname = False
        if get("enable.ssl.certificate.verification", "true").lower() == "false":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def sasl(self, host: str) -> Any:
        """A fresh SASL exchange: kafka-python's mechanism object."""
        return get_sasl_mechanism(self.mechanism)(
            security_protocol=self.protocol,
            sasl_mechanism=self.mechanism,
            sasl_plain_username=self._properties.get("sasl.username", ""),
            sasl_plain_password=self._properties.get("sasl.password", ""),
            host=host,
        )
