"""Consumer groups as the two clusters of a link list them, with their offsets on the source."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from strait.config.route_names import topic_of
from strait.net import consumer_groups as net
from strait.planning.consumer_groups import GroupOnCluster

ABSENT = GroupOnCluster()
"""A group that a cluster does not have."""


class ObservedGroups(NamedTuple):
    """The groups of a link, as observed on both clusters.

    Attributes:
        here, there: groups of the source and of the destination.
        replies: their offsets on the source, or an error code.
        plans: task group of the link -> version of its current plan.
        planned: source topics that the link replicates.
        topics: those of them whose offsets are synchronized -> their names in plans, those of its routes if one is divided.
    """

    here: Mapping[str, GroupOnCluster]
    there: Mapping[str, GroupOnCluster]
    replies: Mapping[str, net.Offsets | int]
    plans: Mapping[str, int]
    planned: Set[str]
    topics: Mapping[str, Sequence[str]]

    def on_destination(self, name: str) -> GroupOnCluster:
        """Return a group on the destination."""
        return self.there.get(name, ABSENT)

    def synchronized(self, told: net.Offsets) -> net.Offsets:
        """Return those of a group's offsets on the source that are synchronized, for each route of a divided topic."""
        return {
            place if topic == place.topic else place._replace(topic=topic): item
            for place, item in told.items()
            for topic in self.topics.get(place.topic, ())
        }

    def facts(self, name: str) -> tuple[object, ...]:
        """Return the facts that a group's status follows from, except for the link's progress and other clients'
        commits for it."""
        return self.here[name], self.on_destination(name), self.replies[name], self.plans


def names_of(topics: Iterable[str]) -> dict[str, list[str]]:
    """Return the topics of the source -> their names in plans, which ``topics`` are."""
    found: dict[str, list[str]] = {}
    for name in topics:
        found.setdefault(topic_of(name), []).append(name)
    return found


def groups_of(cluster: net.ConsumerGroups) -> dict[str, GroupOnCluster]:
    """Return the groups that a cluster lists, by name. Raises ClusterUnavailable, NotAuthorized."""
    return {name: GroupOnCluster(*group) for name, group in cluster.listed().items()}
