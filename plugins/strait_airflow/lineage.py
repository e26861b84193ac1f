"""OpenLineage events of the hours of topics: from the source topic to the destination topic, with the number of records. Sent
by Airflow's OpenLineage provider, with its transport, if it is installed and enabled."""

import logging
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strait.state.link_handle import ConfiguredLink

_API = "airflow.providers.openlineage.api"
_CLIENT = "openlineage.client"

log = logging.getLogger(__name__)


def emit_lineage(link: "ConfiguredLink", hours: Iterable[Mapping[str, Any]]) -> None:
    """Send a run for each hour: one job per topic. A repeated run has the same ID.

    Args:
        hours: facts of complete hours; see `strait.control.hours`.
    """
    try:
        api = import_module(_API)
    except ImportError:
        return
    try:
        if api.is_openlineage_active():
            for event in (event for hour in hours for event in run_events(link, hour)):
                api.emit(event)
    except Exception:  # lineage fails no replication
        log.exception("link %s: hours are not told to OpenLineage", link.name)


def run_events(link: "ConfiguredLink", hour: Mapping[str, Any]) -> list[Any]:
    """Return the start and the end of the run of one hour. OpenLineage needs both, also if they are sent together."""
    from airflow.configuration import conf

    v2 = import_module(f"{_CLIENT}.event_v2")
    facets = import_module(f"{_CLIENT}.facet_v2")
    start = datetime.fromisoformat(hour["hour"]).replace(tzinfo=UTC)
    nominal = facets.nominal_time_run.NominalTimeRunFacet(
        nominalStartTime=start.isoformat(), nominalEndTime=(start + timedelta(hours=1)).isoformat()
    )
    key = f"strait://{link.name}/{hour['topic']}/{hour['source_id']}/{hour['hour']}"
    run = v2.Run(runId=str(uuid.uuid5(uuid.NAMESPACE_URL, key)), facets={"nominalTime": nominal})
    namespace = conf.get("openlineage", "namespace", fallback="default")
    job = v2.Job(namespace=namespace, name=f"strait.{link.name}.{hour['topic']}")
    rows = records_of(hour)
    statistics = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows)
    source = v2.InputDataset(namespace=_cluster(link.source[0]), name=hour["topic"])
    destination = v2.OutputDataset(
        namespace=_cluster(link.destination[0]),
        name=hour["destination_topic"],
        outputFacets={} if rows is None else {"outputStatistics": statistics},
    )
    return [
        v2.RunEvent(
            eventTime=datetime.now(UTC).isoformat(),
            run=run,
            job=job,
            eventType=state,
            inputs=[source],
            outputs=[destination],
        )
        for state in (v2.RunState.START, v2.RunState.COMPLETE)
    ]


def records_of(hour: Mapping[str, Any]) -> int | None:
    """Return the number of offsets of an hour on the destination; None: one of them is unknown."""
    counted = 0
    for number, (start, end) in hour["destination"].items():
        first, last = hour["source"][number]
        if start is not None and end is not None:
            counted += end - start
        elif first < last:
            return None
    return counted


def _cluster(properties: Mapping[str, str]) -> str:
    """Return a cluster's namespace, as OpenLineage names those of Kafka."""
    return f"kafka://{properties['bootstrap.servers'].split(',')[0].strip()}"
