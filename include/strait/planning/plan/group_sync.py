"""Settings of consumer group synchronization in a plan. Pure."""

from strait.config import naming
from strait.config.links import Link
from strait.state.schema import PlannedGroupSync


def planned_sync(link: Link) -> PlannedGroupSync | None:
    """Return the settings for the application; None if nothing is to be synchronized."""
    settings = link.consumer_groups
    if not settings.sync:
        return None
    return PlannedGroupSync(
        include=settings.include,
        exclude=settings.exclude,
        interval_seconds=settings.interval_seconds,
        include_moved=settings.include_moved,
        checkpoints_topic=naming.checkpoints_topic(link) if settings.mm2_checkpoints else "",
        offset_syncs_topic=naming.offset_syncs_topic(link) if settings.mm2_checkpoints else "",
    )
