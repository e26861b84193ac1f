"""Gets tokens from a command, from a file, and from AWS's signer. Safe from any thread; blocks while a token is made."""

import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from strait.config import oauth
from strait.errors import ClusterUnavailable, ConfigError, LoginRejected
from strait.tokens.token import MOST_CHARACTERS, Token, parse

REUSED_SHARE = 0.5
"""Fraction of a token's lifetime in which it is reused. A session ends with its token, so a connection that is renewed
well before its session ends must get a newer token than it had."""
COMMAND_SECONDS = 20.0


class _Cached:
    """The newest token of one source, which all clients of this process share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._token = Token("", 0.0)
        self._reused_until = 0.0

    def get(self, cluster: str, properties: Mapping[str, str]) -> Token:
        with self._lock:
            if time.time() >= self._reused_until:
                self._token = _new(cluster, properties)
                now = time.time()
                self._reused_until = now + (self._token.expires_at - now) * REUSED_SHARE
            return self._token


_cache_lock = threading.Lock()
_cache: dict[tuple[tuple[str, str], ...], _Cached] = {}


def get(cluster: str, properties: Mapping[str, str]) -> Token:
    """Return a token from the source that the properties name, which is not `oidc`.

    Raises:
        ClusterUnavailable: there is none now.
        LoginRejected: no credentials of AWS are found, or they may not assume the role.
        ConfigError: AWS's package is not installed.
    """
    if oauth.method_of(properties) == oauth.OWN_FILE:
        return _from_file(cluster, properties[oauth.FILE])
    source = tuple((key, properties.get(key, "")) for key in (oauth.METHOD, *sorted(oauth.OWN), "bootstrap.servers"))
    with _cache_lock:
        cached = _cache.setdefault(source, _Cached())
    return cached.get(cluster, properties)


def _new(cluster: str, properties: Mapping[str, str]) -> Token:
    if oauth.method_of(properties) == oauth.MSK_IAM:
        return _signed(cluster, oauth.region_of(properties), properties.get(oauth.ROLE, ""))
    return _from_command(cluster, oauth.command_of(properties))


def _from_file(cluster: str, path: str) -> Token:
    """Read the file each time: another program replaces it to renew the token."""
    doing = f"reading a token from {path}"
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or "it is not UTF-8"
        raise ClusterUnavailable(cluster, f"{doing}: {why}") from error
    return _parsed(cluster, doing, text)


def _from_command(cluster: str, command: list[str]) -> Token:
    """Run the command. Nothing of its output is in an error: it may contain the token."""
    doing = f"running {command[0]} for a token"
    hint = "run it by hand as the same user to see why"
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterUnavailable(cluster, f"{doing}: not done after {COMMAND_SECONDS:g} s", hint=hint) from error
    except OSError as error:
        raise ClusterUnavailable(cluster, f"{doing}: {error.strerror}") from error
    if done.returncode:
        raise ClusterUnavailable(cluster, f"{doing}: exit code {done.returncode}", hint=hint)
    return _parsed(cluster, doing, done.stdout.decode("utf-8", errors="replace"))


def _parsed(cluster: str, doing: str, text: str) -> Token:
    try:
        return parse(text, time.time())
    except ValueError as error:
        raise ClusterUnavailable(cluster, f"{doing}: {error}") from error


def _signed(cluster: str, region: str, role: str) -> Token:
    """Sign a token with the credentials that AWS's SDK finds on this host, or with those of a role that they may
    assume."""
    try:  # here: it takes tens of MB, and few clusters need it
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
    except ImportError as error:
        hint = "pip install --require-hashes -r requirements-msk.lock, on each host that runs Strait or its slots"
        raise ConfigError(
            f"cluster {cluster}", ["msk_iam needs the package aws-msk-iam-sasl-signer-python"], hint=hint
        ) from error
    doing = f"signing a token for Amazon MSK in {region}"
    hint = "AWS's SDK looks for credentials in its environment variables, files, and roles of the host"
    try:
        if role:
            value, expires_ms = MSKAuthTokenProvider.generate_auth_token_from_role_arn(region, role, "strait")
        else:
            value, expires_ms = MSKAuthTokenProvider.generate_auth_token(region)
    except (AttributeError, ValueError) as error:  # of AWS's signer, which does not expect that there are none
        raise LoginRejected(cluster, f"{doing}: no credentials are found", hint=hint) from error
    except (NoCredentialsError, ClientError) as error:
        raise LoginRejected(cluster, f"{doing}: {error}", hint=hint) from error
    except BotoCoreError as error:
        raise ClusterUnavailable(cluster, f"{doing}: {error}", hint=hint) from error
    return Token(value, expires_ms / 1000)
