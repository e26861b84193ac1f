"""A planned pair of topics: whether both are still the topics of the plan, and their offset segments."""

from collections.abc import Iterable, Mapping

from strait.config.route_names import topic_of
from strait.kafka.admin import Admin
from strait.state.schema import OffsetMapping, PlannedTopic


def replaced_topics(topics: Mapping[str, PlannedTopic], source: Admin | None, destination: Admin) -> dict[str, str]:
    """Return the source topics that were deleted or recreated on either side since the current plan, with the change.

    The offset map still describes their predecessors.

    Args:
        source: None: it is not queried.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    found: dict[str, str] = {}
    for admin, side in ((source, "source"), (destination, "destination")):
        if admin is None:
            continue
        names = [(topic_of(getattr(topic, side)), topic) for topic in topics.values()]
        facts = admin.observe({name for name, _ in names}.__contains__).topics
        for name, topic in names:
            if name not in facts:
                found[topic.source] = f"cluster {admin.cluster} has no topic {name}"
            elif facts[name].topic_id not in ("", getattr(topic, f"{side}_id")):  # old brokers return no IDs
                found[topic.source] = f"topic {name} of {admin.cluster} is not the one that the link replicates"
    return found


def runs_about(runs: Iterable[OffsetMapping], topic: PlannedTopic) -> list[OffsetMapping]:
    """Return those of a partition's segments that belong to these two topics, not to earlier ones with their names."""
    ids = topic.destination, topic.destination_id, topic.source_id
    return [run for run in runs if (run.destination, run.destination_id, run.source_id) == ids]
