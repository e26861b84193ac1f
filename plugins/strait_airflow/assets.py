"""Assets for other DAGs: the hours of replicated topics."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from airflow.sdk import Asset

_SCHEME = "strait://"
_HOUR_CHARACTERS = len("2026-01-01T14")


def hourly(link: str, topic: str) -> Asset:
    """Return the asset that gets an event with a partition key for each hour of a source topic, once the link has replicated
    it. The topic must be in `assets.hourly` of the link."""
    return Asset(f"{_SCHEME}{quote(link, safe='')}/{quote(topic, safe='')}")


def topic_of(asset: Asset) -> str:
    """Return the topic of an asset of `hourly`."""
    return unquote(asset.uri.rpartition("/")[2])


def hour_of(context: Mapping[str, Any], asset: Asset) -> dict[str, Any]:
    """Return the facts of the hour that the run is for, as `docs/how-to/wait-for-data.md` lists them.

    Args:
        context: of a task in a run that events of the asset have started.

    Raises:
        ValueError: the run has no such event, or its partition key is coarser than an hour.
    """
    key, found = _events_of(context, asset)
    for start, facts in found.items():
        compared = min(len(start), len(key))  # a mapper to hours cuts minutes and seconds off
        if compared >= _HOUR_CHARACTERS and start[:compared] == key[:compared]:
            return facts
    raise _no_hour(context, key, asset, "hour")


def hours_of(context: Mapping[str, Any], asset: Asset) -> list[dict[str, Any]]:
    """Return the facts of all hours of the run's events that are in its day, month or year, oldest first: for a partition
    mapper that is coarser than an hour.

    Args:
        context: see `hour_of`.

    Raises:
        ValueError: the run has no such event.
    """
    key, found = _events_of(context, asset)
    if key and (starts := [start for start in sorted(found) if start.startswith(key)]):
        return [found[start] for start in starts]
    raise _no_hour(context, key, asset, "prefix of an hour")


def _events_of(context: Mapping[str, Any], asset: Asset) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the run's partition key, and the hours of its events."""
    events = context["triggering_asset_events"].get(asset, ())
    return str(context["dag_run"].partition_key or ""), hours_in(event.extra for event in events)


def _no_hour(context: Mapping[str, Any], key: str, asset: Asset, what: str) -> ValueError:
    return ValueError(f"run {context['dag_run'].run_id}: partition key {key!r} is no {what} of asset {asset.name}")


def hours_in(extras: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Return partition key -> facts of the hour, of all that these events tell."""
    found: dict[str, dict[str, Any]] = {}
    for extra in extras:
        hours = extra.get(HOURS) if isinstance(extra, Mapping) else None
        found |= hours if isinstance(hours, Mapping) else {}
    return found


HOURS = "hours"
"""Key of an event's extra: partition key -> facts, of all hours that were given to the asset at the same time."""
