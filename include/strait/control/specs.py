"""The settings that an application needs to run a plan."""

from pathlib import Path

from strait.config.app_spec import AppSpec
from strait.config.links import Link
from strait.config.racks import in_rack
from strait.config.selecting import Selected
from strait.planning.history.load import cores_for
from strait.planning.review.clusters import planned_clusters
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import Plan


def spec_of(
    handle: ConfiguredLink,
    link: Link,
    plan: Plan,
    ledger_dir: Path,
    checkpoint_dir: Path,
    *,
    standby: bool,
) -> AppSpec:
    """Return the settings of an application, from its link's settings, and only for the clusters of its plan.

    Args:
        link: its settings, with its heartbeats topics selected.
    """
    handle = handle.with_key().expecting(*planned_clusters([plan]))
    rack = link.groups[plan.group].rack
    ledger, checkpoint = link.spark.directories(str(ledger_dir.resolve()), str(checkpoint_dir.resolve()))
    return AppSpec(
        link=handle.name,
        group=plan.group,
        source_name=handle.source.name,
        source=in_rack(handle.source.properties, rack),
        destination_name=handle.destination.name,
        destination=in_rack(handle.destination.properties, rack),
        selected=Selected.of(link),
        standby=standby,
        slots=cores_for(link, plan),
        slot_memory_bytes=link.slot_memory_mib << 20,
        ledger_seconds=link.ledger_seconds,
        ledger_dir=ledger,
        checkpoint_dir=checkpoint,
        transforms=bool(plan.transformed),
    )
