"""Reading a cluster's `strait.producers`: which links write there, and whose records a link skips."""

from collections.abc import Collection, Mapping

from strait.config import naming
from strait.errors import StateError
from strait.kafka.reading import read_topic
from strait.state.moved_copies import clusters_left_out
from strait.state.producer_registry import Registrations
from strait.state.schema import Registration


def registrations(properties: Mapping[str, str], cluster: str, link: str = "") -> Registrations:
    """Return the registered links into a cluster. Raises ClusterUnavailable, NotAuthorized.

    Args:
        link: the link that reads them, if any: its name is in that of the consumer group.
    """
    found = Registrations()
    reader = naming.plan_topic(link) if link else ""
    for message in read_topic(properties, cluster, naming.PRODUCERS_TOPIC, reader=reader):
        found.apply(message.key(), message.value(), message.offset() or 0)
    return found


def require_readable(known: Registrations, cluster: str) -> None:
    """Raise StateError if a record of the cluster's `strait.producers` cannot be read: it might name any link."""
    if known.trouble:
        raise StateError(
            f"cluster {cluster}: reading which links write there: {known.trouble}",
            hint="upgrade Strait if a newer version wrote the record; otherwise write a tombstone with the same key to "
            f"{naming.PRODUCERS_TOPIC}",
        )


def producers_left_out(
    copies: str, writing: Collection[Registration], source_id: str, destination_id: str
) -> frozenset[int]:
    """Return the producers whose batches a link does not copy, by the same rule as its slots.

    Args:
        copies: the policy of the topic.
        writing: the links into its source; the IDs are those of the link's clusters.
    """
    left_out = clusters_left_out(copies, source_id, destination_id)
    return frozenset(one.producer_id for one in writing if left_out is None or one.source in left_out)
