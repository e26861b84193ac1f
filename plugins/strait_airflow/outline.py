"""The outline of the links file: which links get which DAGs. Cheap, as the DAG file reads it whenever it is parsed."""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from strait_airflow.settings import link_names, links_file, links_with_approval

if TYPE_CHECKING:
    from strait.config.links import Alerts

log = logging.getLogger(__name__)


class Outline(NamedTuple):
    """The parts of the links file that the DAG file uses."""

    links: tuple[str, ...]
    with_approval: frozenset[str]
    alerts: "Mapping[str, Alerts]"
    hourly: Mapping[str, tuple[str, ...]]
    """Link -> topics whose hours get events."""


def outline() -> Outline:
    """Return the outline of the links file; if that cannot be read, the last one that could, without alerts: a run of
    each link then fails with the error, instead of all DAGs disappearing.

    Raises:
        ConfigError: it cannot be read, and never could.
    """
    from strait.config.home import home
    from strait.config.outline import links_with_alerts, links_with_hours
    from strait.errors import ConfigError

    kept = home() / "links-outline.json"
    try:
        path = links_file()
        found = Outline(link_names(), links_with_approval(), links_with_alerts(path), links_with_hours(path))
    except ConfigError:
        if (last := _last_outline(kept)) is None:
            raise
        return last
    _keep_outline(kept, found)
    return found


def _last_outline(path: Path) -> Outline | None:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["file"] != str(links_file()):
            return None
        hourly = {str(link): tuple(map(str, topics)) for link, topics in stored.get("hourly", {}).items()}
        return Outline(tuple(map(str, stored["links"])), frozenset(map(str, stored["with_approval"])), {}, hourly)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _keep_outline(path: Path, found: Outline) -> None:
    """Store it if it has changed. Without it, an unreadable links file hides the DAGs; that is no reason to fail."""
    outlined = {"links": found.links, "with_approval": sorted(found.with_approval), "hourly": dict(found.hourly)}
    text = json.dumps({"file": str(links_file()), **outlined}, indent=1)
    try:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}.tmp")
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        log.warning("links file: its outline is not kept: %s: %s", path, error.strerror)
