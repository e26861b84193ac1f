"""The parts of a links file that are read without validating the rest, so that an invalid link affects no other."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strait.config.alerts import Alerts
from strait.config.assets import Assets
from strait.config.pools import pool_named
from strait.config.validation import read_yaml, validated
from strait.errors import ConfigError


def links_in(raw: Any, path: Path) -> dict[Any, Any]:
    """Return the `links` object of a file's content. Raises ConfigError."""
    links = raw.get("links") if isinstance(raw, dict) else None
    if not isinstance(links, dict):
        raise ConfigError(f"links file {path}", ["needs an object `links`, with the name of each link as its keys"])
    return links


def link_names(path: Path) -> tuple[str, ...]:
    """Return the names of all links, sorted; their settings are not validated. Raises ConfigError."""
    return tuple(sorted(str(name) for name in _links(path)))


def links_with_approval(path: Path) -> frozenset[str]:
    """Return the links that set `approval: required`, even if other settings are invalid. Raises ConfigError."""
    return frozenset(
        str(name)
        for name, link in _links(path).items()
        if isinstance(link, dict) and link.get("approval") == "required"
    )


def pools_of(path: Path) -> Mapping[str, str]:
    """Return link -> its pool, even if other settings are invalid. Raises ConfigError."""
    raw = read_yaml(path, f"links file {path}")
    found = {str(name): pool_named(link, raw.get("pools")) for name, link in links_in(raw, path).items()}
    return {name: pool for name, pool in found.items() if pool is not None}


def links_with_alerts(path: Path) -> dict[str, Alerts]:
    """Return the `alerts` of links that set them, even if other settings are invalid; invalid ones are absent.

    Raises ConfigError.
    """
    found = {}
    for name, link in _links(path).items():
        if isinstance(link, dict) and "alerts" in link:
            with contextlib.suppress(ConfigError):  # a run of the link fails with it
                found[str(name)] = validated(Alerts, link["alerts"], f"links.{name}.alerts")
    return found


def links_with_hours(path: Path) -> dict[str, tuple[str, ...]]:
    """Return link -> the topics of its `assets.hourly`, as `links_with_alerts`."""
    found = {}
    for name, link in _links(path).items():
        if isinstance(link, dict) and "assets" in link:
            with contextlib.suppress(ConfigError):
                found[str(name)] = validated(Assets, link["assets"], f"links.{name}.assets").hourly
    return found


def _links(path: Path) -> dict[Any, Any]:
    return links_in(read_yaml(path, f"links file {path}"), path)
