"""When the DAGs of links run: an asset that represents the link, watched by a trigger, and a time in each hour."""

import zlib

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable

from strait_airflow.settings import dag_id, watch_name
from strait_airflow.triggers import LinkTrigger

RUN_TYPES = ["scheduled", "manual", "operator_triggered", "asset_triggered"]
"""All but backfills: there is no past to run for, and on SQLite a backfill ends Airflow's scheduler."""


def watched(link: str) -> Asset:
    """Return the asset that represents everything a link depends on.

    The triggerer watches it, and its state stores the facts that runs have acted upon.
    """
    watcher = AssetWatcher(name="watch", trigger=LinkTrigger(link=link))
    return Asset(watch_name(link), uri=f"strait://watch/{dag_id(link)}", watchers=[watcher])


def when_woken(link: str, asset: Asset) -> AssetOrTimeSchedule:
    """Return the schedule: when the watch fires, and hourly in any case, at a minute derived from the link's name."""
    minute = zlib.crc32(link.encode()) % 60
    hourly = CronTriggerTimetable(f"{minute} * * * *", timezone="UTC", run_immediately=True)
    return AssetOrTimeSchedule(timetable=hourly, assets=[asset])
