"""Signatures of plans: proof that a control plane which has the link's key published a plan, and not just any client
that may write to the plan topic.

The key is a property of the destination cluster (`state.key`), so the control planes and the applications have it from
the links file, the Connection and the application spec. Without that property, control planes use a key that they keep
in a file on their host.
"""

import hashlib
import hmac
import logging
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Self

from strait.config import credentials
from strait.config.client_properties import FORMER_STATE_KEY, STATE_KEY
from strait.config.home import home

HEADER = "strait-signature"
"""A header, not a field of the plan: versions before 0.1.0 ignore it."""
_KEY_BYTES = 32
_LOGGER = logging.getLogger(__name__)

Headers = Iterable[tuple[str, bytes | str | None]]


class Proof(Enum):
    """Whether a plan is proven to come from a control plane with one of the keys."""

    PROVEN = "signed with the link's key"
    LIMITED = "signed with the link's key for the topics that the application was started with"
    UNSIGNED = "not signed"
    OTHER_KEY = "signed with another key"

    @property
    def is_own(self) -> bool:
        """Whether a control plane with one of the keys has published the plan."""
        return self in _VERSIONS


_VERSIONS = {Proof.PROVEN: b"1:", Proof.LIMITED: b"2:"}
"""Prefixes of signatures. Older versions take the second one for that of another key."""


class Keys:
    """The keys of one link's plans: the first one signs, and each of them proves. There may be none."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = tuple(key.encode() for key in keys if key)

    @classmethod
    def of(cls, cluster: str, properties: Mapping[str, str]) -> Self:
        """Return the keys in the properties of a destination cluster. Raises ConfigError if a file with a key cannot be
        read."""
        named = {name: properties[name] for name in (STATE_KEY, FORMER_STATE_KEY) if name in properties}
        return cls(credentials.resolve(cluster, named).values())

    def __bool__(self) -> bool:
        return bool(self._keys)

    def signature(
        self, topic: str, raw_key: bytes, raw_value: bytes, proof: Proof = Proof.PROVEN
    ) -> list[tuple[str, str | bytes | None]]:
        """Return the headers of a record that is to have this proof; none if there is no key."""
        if not self._keys or not proof.is_own:
            return []
        return [(HEADER, _signature(self._keys[0], proof, topic, raw_key, raw_value))]

    def proof(self, topic: str, raw_key: bytes | None, raw_value: bytes, headers: Headers) -> Proof:
        """Return the proof that a record's headers contain."""
        told = next((value for name, value in headers if name == HEADER), None)
        if told is None:
            return Proof.UNSIGNED
        told = told.encode() if isinstance(told, str) else told
        record = topic, raw_key or b"", raw_value
        for proof in _VERSIONS:
            proven = [hmac.compare_digest(told, _signature(key, proof, *record)) for key in self._keys]
            if any(proven):
                return proof
        return Proof.OTHER_KEY


def _signature(key: bytes, proof: Proof, topic: str, raw_key: bytes, raw_value: bytes) -> bytes:
    meant = [] if proof is Proof.PROVEN else [_VERSIONS[proof]]  # no topic is named like this
    record = b"\n".join((*meant, topic.encode(), raw_key, raw_value))  # neither topics nor keys have a line break
    return _VERSIONS[proof] + hmac.new(key, record, hashlib.sha256).hexdigest().encode()


def with_key(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties of a destination cluster with a key: theirs, or that of this host, which is created if it
    is missing. Unchanged if it can be neither read nor written: plans are then not signed."""
    if STATE_KEY in properties:
        return properties
    path = home() / STATE_KEY
    try:
        return {**properties, STATE_KEY: _read_or_make(path)}
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        _LOGGER.warning("plans are not signed: %s: %s", path, why)
        return properties


def _read_or_make(path: Path) -> str:
    with suppress(FileNotFoundError):
        return path.read_text(encoding="ascii").strip()
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(secrets.token_hex(_KEY_BYTES))
    try:
        with suppress(FileExistsError):
            os.link(made, path)  # another process may have been faster; its key then applies
    finally:
        made.unlink()
    return path.read_text(encoding="ascii").strip()
