"""Reads the state and the events of a link's asset. Airflow lets users edit both without a permission on the link's DAG, so
everything that Strait does not write is dropped. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Any

LAST_MS = 253_402_300_799_999
"""The last millisecond that a date can have."""

_TEXTS_MOST = 100


def object_of(stored: Any) -> Mapping[str, Any]:
    """Return a stored object; an empty one for anything else."""
    return stored if isinstance(stored, dict) else {}


def texts_of(stored: Any) -> dict[str, str]:
    """Return the texts of a stored object."""
    return {name: value for name, value in object_of(stored).items() if isinstance(value, str)}


def times_of(stored: Any) -> dict[str, int]:
    """Return the times of a stored object, in ms since 1970."""
    return {name: value for name, value in object_of(stored).items() if is_time(value)}


def time_of(stored: Any) -> int:
    """Return a stored time in ms since 1970; 0 for anything else."""
    return stored if is_time(stored) else 0


def is_time(stored: Any) -> bool:
    """Return whether this is a time in ms since 1970 that a date can have."""
    return isinstance(stored, int) and not isinstance(stored, bool) and 0 <= stored <= LAST_MS


def notices_of(extras: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the payloads of `LinkTrigger` in the extras of events. Any other event is one that a user has made: the run then
    does all pending work."""
    found = [object_of(object_of(extra).get("payload")) for extra in extras]
    return [
        {
            "reasons": _listed(one["reasons"]),
            "plan": one.get("plan") is not False,
            "silent": _listed(one.get("silent")),
            "at_ms": one["at_ms"],
            "seen": texts_of(one.get("seen")),
        }
        for one in found
        if isinstance(one.get("reasons"), list) and is_time(one.get("at_ms"))
    ]


def _listed(stored: Any) -> list[str]:
    return [one for one in stored if isinstance(one, str)][:_TEXTS_MOST] if isinstance(stored, list) else []
