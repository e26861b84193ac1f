"""Reading a cluster's `strait.producers`."""

from collections.abc import Mapping

from strait.config import naming
from strait.kafka.reading import read_topic
from strait.state.producer_registry import Registrations


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
