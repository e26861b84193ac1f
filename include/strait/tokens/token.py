"""A bearer token and its lifetime, from the text that a command prints or a file holds. Pure."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from strait.json_text import value_of

UNKNOWN_LIFE_SECONDS = 300.0
"""Assumed lifetime of a token that does not show its own. It is replaced after half of it."""
MOST_CHARACTERS = 1 << 16
_NAMES = ("access_token", "accessToken", "token")
_ENDS = ("expires_on", "expiresOn", "expires_at", "expiry", "expiration")
_MILLISECONDS = 1e11
"""A number above this, as seconds since 1970, would be in the year 5138; it is in milliseconds."""


class Token(NamedTuple):
    """A token, and when it expires, in seconds since 1970."""

    value: str
    expires_at: float

    def __repr__(self) -> str:
        return f"Token(expires_at={self.expires_at})"


def parse(text: str, now: float) -> Token:
    """Return the token in a text: the token alone, or JSON with it and its lifetime, as identity providers' tools print
    it. Raises ValueError, which contains nothing of the text."""
    text = text.strip()
    found: Mapping[str, Any] = {}
    if text.startswith("{"):
        found = _object(text)
        text = next((found[name] for name in _NAMES if isinstance(found.get(name), str)), "")
    if not text or len(text) > MOST_CHARACTERS or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("it is neither a token alone nor JSON with `access_token`")
    return Token(text, _end(found, now) or _end_of_jwt(text) or now + UNKNOWN_LIFE_SECONDS)


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = value_of(text)
    except ValueError:
        raise ValueError("it is not JSON") from None
    return found if isinstance(found, dict) else {}


def _end(found: Mapping[str, Any], now: float) -> float | None:
    life = _number(found.get("expires_in"))
    if life is not None:
        return now + life
    for name in _ENDS:
        end = _number(found.get(name))
        if end is None and isinstance(found.get(name), str):
            end = _date(found[name])
        if end is not None:
            return end / 1000 if end > _MILLISECONDS else end
    return None


def _number(value: Any) -> float | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value[:20])
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _date(text: str) -> float | None:
    """Return an ISO date, but only with its time zone: some tools print local time, of the host on which they ran."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if date.tzinfo is None else date.astimezone(UTC).timestamp()


def _end_of_jwt(token: str) -> float | None:
    """Return the claim `exp` of a JSON Web Token. Its signature is the broker's to verify."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    return _number(claims.get("exp")) if isinstance(claims, dict) else None
