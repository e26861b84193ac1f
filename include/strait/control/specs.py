"""The settings that an application needs to run a plan."""

from collections.abc import Mapping
from pathlib import Path

from strait.config.app_spec import AppSpec
from strait.config.cluster_identity import expecting
from strait.config.links import Link
from strait.config.racks import in_rack
from strait.config.selecting import Selected
from strait.planning.history.load import cores_for
from strait.planning.review.clusters import planned_clusters
from strait.state.schema import Plan
from strait.state.signing import with_key


def spec_of(
    name: str,
    link: Link,
    properties: tuple[Mapping[str, str], Mapping[str, str]],
    plan: Plan,
    ledger_dir: Path,
    checkpoint_dir: Path,
    *,
    standby: bool,
) -> AppSpec:
    """Return the settings of an application, from its link's settings, and only for the clusters of its plan.

    Args:
        link: with its heartbeats topics selected.
        properties: of source and destination, as configured.
    """
    source, destination = properties
    source_id, destination_id = planned_clusters([plan])
    rack = link.groups[plan.group].rack
    ledger, checkpoint = link.spark.directories(str(ledger_dir.resolve()), str(checkpoint_dir.resolve()))
    return AppSpec(
        link=name,
        group=plan.group,
        source_name=link.source,
        source=in_rack(expecting(source, source_id), rack),
        destination_name=link.destination,
        destination=in_rack(expecting(with_key(destination), destination_id), rack),
        selected=Selected.of(link),
        standby=standby,
        slots=cores_for(link, plan),
        slot_memory_bytes=link.slot_memory_mib << 20,
        ledger_seconds=link.ledger_seconds,
        ledger_dir=ledger,
        checkpoint_dir=checkpoint,
    )
