"""Secrets that stand in files: what a cluster's properties refer to, read when it is needed.

A value may hold ``${directory:DIR:NAME}``. Such a secret is in no links file and no application spec, and a new one is
used from the next connect on.
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
    """The properties with each reference replaced by what its file holds now, without the line end behind it.

    Raises:
        ConfigError: a file cannot be read; every such property is in it.
    """
    resolved, problems = {}, []
    for key, value in properties.items():
        try:
            resolved[key] = REFERENCE.sub(lambda match: _content(match), value)
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"`{key}`: {value} cannot be read: {_why(error)}")
    if problems:
        raise ConfigError(f"cluster {cluster}", problems)
    return resolved


def stamp(properties: Mapping[str, str]) -> Stamp:
    """Equal as long as none of the files that the properties name, for secrets or certificates, has changed."""
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
    """Without the text that could not be decoded: it is a secret."""
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "it is not UTF-8"
