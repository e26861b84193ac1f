"""Secrets in files that a cluster's properties refer to, read when they are needed.

A value may contain ``${directory:DIR:NAME}``. Such a secret is in no links file and no application spec, and a new
secret is used from the next connection on.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from strait.config.client_properties import REFERENCE
from strait.errors import ConfigError

_LOCATIONS = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.keystore.location",
    "https.ca.location",
)

Stamp = tuple[tuple[str, int, int, int], ...]


def resolve(cluster: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with each reference replaced by its file's current content, without trailing line breaks.

    Raises:
        ConfigError: a file cannot be read; the error lists every affected property.
    """
    return _resolved(f"cluster {cluster}", properties)


def secrets_of(where: str, references: Mapping[str, str]) -> tuple[str, ...]:
    """Return the contents of files that are referred to by name, in this order, as `resolve` does.

    Raises:
        ConfigError: a file cannot be read, or is empty: a hash without its secret could be guessed. An editor may just write it.
    """
    found = _resolved(where, references)
    if empty := [name for name, content in found.items() if not content]:
        raise ConfigError(where, [f"`{name}`: {references[name]} is empty" for name in empty])
    return tuple(found.values())


def _resolved(where: str, properties: Mapping[str, str]) -> dict[str, str]:
    resolved, problems = {}, []
    for key, value in properties.items():
        try:
            resolved[key] = REFERENCE.sub(lambda match: _content(match), value)
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"`{key}`: {value} cannot be read: {_why(error)}")
    if problems:
        raise ConfigError(where, problems)
    return resolved


def stamp(properties: Mapping[str, str]) -> Stamp:
    """Return a value that changes if a file changes that the properties name, for a secret or a certificate."""
    found = []
    for file in _files(properties):
        try:
            status = file.stat()
        except OSError:
            found.append((str(file), 0, 0, 0))
        else:
            found.append((str(file), status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found)


def _files(properties: Mapping[str, str]) -> list[Path]:
    referred = [_path(match) for value in properties.values() for match in REFERENCE.finditer(value)]
    return [*referred, *(Path(properties[key]) for key in _LOCATIONS if properties.get(key))]


def _path(reference: re.Match[str]) -> Path:
    return Path(reference["directory"]) / reference["name"]


def _content(reference: re.Match[str]) -> str:
    return _path(reference).read_text(encoding="utf-8").rstrip("\r\n")


def _why(error: OSError | UnicodeDecodeError) -> str:
    """Return the cause, without the text that could not be decoded: it is a secret."""
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "it is not UTF-8"
