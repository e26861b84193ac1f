"""The source of tokens for SASL OAUTHBEARER: `sasl.oauthbearer.method` and the properties that belong to it. Pure.

librdkafka knows `oidc` alone. The other methods are Strait's own, for both clients.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

METHOD = "sasl.oauthbearer.method"
COMMAND = "sasl.oauthbearer.token.command"
FILE = "sasl.oauthbearer.token.file"
REGION = "sasl.oauthbearer.aws.region"
ROLE = "sasl.oauthbearer.aws.role.arn"
EXTENSIONS = "sasl.oauthbearer.extensions"
OIDC, MSK_IAM, OWN_COMMAND, OWN_FILE = "oidc", "msk_iam", "command", "file"
METHODS = (OIDC, MSK_IAM, OWN_COMMAND, OWN_FILE)
OWN = frozenset({COMMAND, FILE, REGION, ROLE})
"""Properties that no client but Strait knows."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MSK_BROKER = re.compile(
    r"[\w.-]+\.kafka(?:-serverless)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:\d+", re.ASCII
)


def method_of(properties: Mapping[str, str]) -> str:
    """Return the source of tokens; "" if these properties log in without tokens."""
    sasl = properties.get("security.protocol", "").lower().startswith("sasl")
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms", ""))
    return properties.get(METHOD, "default") if sasl and mechanism.upper() == "OAUTHBEARER" else ""


def is_own(properties: Mapping[str, str]) -> bool:
    """Return whether Strait gets the tokens, for librdkafka too."""
    return method_of(properties) not in ("", OIDC)


def problems(properties: Mapping[str, str]) -> list[str]:
    """Return the problems that prevent getting a token with these properties; empty if there are none."""
    method, found = properties.get(METHOD, "default"), []
    if method not in METHODS:
        found.append(f"`{METHOD}` must be one of {', '.join(METHODS)}; unsecured tokens are not supported")
    elif method == OIDC:
        found += _oidc_problems(properties)
    elif method == MSK_IAM:
        if not region_of(properties):
            found.append(f"`{REGION}` is required, since `bootstrap.servers` names none of Amazon MSK's brokers")
        if properties.get("security.protocol", "").lower() != "sasl_ssl":
            found.append("`security.protocol` must be sasl_ssl: a token gives its receiver the principal's rights")
    elif method == OWN_COMMAND and not command_of(properties):
        found.append(f"`{COMMAND}` must be a command line; it is run without a shell")
    elif method == OWN_FILE and not properties.get(FILE):
        found.append(f"`{FILE}` must be the path of the file that holds the token")
    pairs = properties.get(EXTENSIONS, "").split(",")
    if any(pair and "=" not in pair for pair in pairs):
        found.append(f"`{EXTENSIONS}` must be key=value,key=value")
    return found


def _oidc_problems(properties: Mapping[str, str]) -> Iterator[str]:
    if not client_id(properties):
        yield "`sasl.oauthbearer.client.id` is required for OAUTHBEARER"
    url = properties.get("sasl.oauthbearer.token.endpoint.url", "")
    if not url.startswith(("https://", "http://")):
        yield "`sasl.oauthbearer.token.endpoint.url` must be the URL of a token endpoint"
    elif url.startswith("http://") and urlsplit(url).hostname not in _LOOPBACK:
        yield "`sasl.oauthbearer.token.endpoint.url` must begin with https://: the client's secret is sent to it"


def client_id(properties: Mapping[str, str]) -> str:
    return _either(properties, "client.id")


def client_secret(properties: Mapping[str, str]) -> str:
    return _either(properties, "client.secret")


def _either(properties: Mapping[str, str], name: str) -> str:
    """Return a property for which librdkafka has two names."""
    long = properties.get(f"sasl.oauthbearer.client.credentials.{name}", "")
    return long or properties.get(f"sasl.oauthbearer.{name}", "")


def extensions_of(properties: Mapping[str, str]) -> dict[str, str]:
    pairs = filter(None, properties.get(EXTENSIONS, "").split(","))
    return {key: value for key, _, value in (pair.partition("=") for pair in pairs)}


def command_of(properties: Mapping[str, str]) -> list[str]:
    """Return the words of the command line that prints a token; empty if there is none, or its quotes do not match."""
    try:
        return shlex.split(properties.get(COMMAND, ""))
    except ValueError:
        return []


def region_of(properties: Mapping[str, str]) -> str:
    """Return the AWS region of the brokers, from their names if it is not set; "" if it is unknown."""
    first = properties.get("bootstrap.servers", "").split(",")[0].strip()
    named = _MSK_BROKER.fullmatch(first)
    return properties.get(REGION) or (named["region"] if named else "")


def is_msk(properties: Mapping[str, str]) -> bool:
    """Return whether all addresses are of Amazon MSK, and prove it by certificates of public authorities."""
    addresses = [address.strip() for address in properties.get("bootstrap.servers", "").split(",")]
    return (
        all(map(_MSK_BROKER.fullmatch, addresses))
        and properties.get("ssl.endpoint.identification.algorithm", "https").lower() == "https"
        and properties.get("enable.ssl.certificate.verification", "true").lower() == "true"
        and not any(key.startswith("ssl.ca.") for key in properties)
    )
