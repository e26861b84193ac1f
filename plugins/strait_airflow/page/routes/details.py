"""One partition of a link, its applications and its quarantine."""

import logging
import threading
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Query

from strait_airflow.page.observers import (
    applications_observers,
    observers,
    quarantine_observers,
    runs_observers,
)
from strait_airflow.page.routes.query import Limit, Offset, Search, asking_clusters
from strait_airflow.page.schemas.common import Looked, answers
from strait_airflow.page.schemas.details import Applications, OffsetSegments, QuarantinedContents, QuarantinedRecords
from strait_airflow.page.schemas.links import Partition
from strait_airflow.page.security import QuarantineReader, ReadsLogs, VisibleLink
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.details import applications_view, partition_details, partition_runs, quarantine_page
from strait_airflow.settings import clusters_of

MOST_RECORD_BYTES = 16 << 10
"""Of the key, the value and each header that are shown."""

log = logging.getLogger(__name__)
_records = threading.BoundedSemaphore(2)

api = APIRouter(prefix="/api/v1/links/{link}")
Number = Annotated[int, Query(ge=0)]


@api.get("/partition", **answers(Partition | Looked, 404))
def partition(name: VisibleLink, topic: str, partition: Number) -> Data:
    """Return one partition, with its losses and pauses. Until the link has been read, only whether it is, and the error."""
    found = partition_details(observers.newest(name), topic, partition)
    if found is None:
        raise HTTPException(404, f"link {name}: its plan has no partition {topic}-{partition}")
    return found


@api.get("/runs", include_in_schema=False)  # for the page
@api.get("/offset_map", **answers(OffsetSegments, 404))
def offset_map(name: VisibleLink, topic: str, partition: Number) -> Data:
    """Return the offset map of one partition: its newest segments."""
    return partition_runs(runs_observers.newest(name), topic, partition)


@api.get("/applications", **answers(Applications, 404))
def applications(name: VisibleLink, logs: ReadsLogs) -> Data:
    """Return the link's applications, as far as this host can see them."""
    return applications_view(applications_observers.newest(name), observers.newest(name), logs=logs)


@api.get("/quarantine/{at}", **answers(QuarantinedContents, 403, 404, 409, 429))
def quarantined(reader: QuarantineReader, at: Annotated[int, Path(ge=0)], value: bool = False) -> Data:
    """Return the quarantined record at this offset of the quarantine topic, with its value only if asked for. The user must
    be permitted to replay it."""
    from strait.control.quarantine import Quarantine
    from strait.state.link_handle import ConfiguredLink

    with asking_clusters(_records, "other records are being read; try again in some seconds"):
        record = Quarantine(ConfiguredLink.of(clusters_of(reader.link), reader.link)).record(at)
    if record is None:
        raise HTTPException(404, f"link {reader.link}: offset {at} of its quarantine topic holds no such record")
    part = "all" if value else "key and headers"
    log.info("user %s reads %s of quarantined record %s of link %s", reader.user, part, record.entry, reader.link)
    return record.readable(MOST_RECORD_BYTES, with_value=value)


@api.get("/quarantine", **answers(QuarantinedRecords, 404))
def quarantine(name: VisibleLink, search: Search = "", offset: Offset = 0, limit: Limit = 20) -> Data:
    """Return records in quarantine that are not settled, newest first, without their contents."""
    return quarantine_page(quarantine_observers.newest(name), search=search, offset=offset, limit=limit)
