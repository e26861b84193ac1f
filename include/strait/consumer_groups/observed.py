"""Consumer groups as the two clusters of a link list them, with their offsets on the source."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

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
        topics: those of them whose offsets are synchronized.
    """

    here: Mapping[str, GroupOnCluster]
    there: Mapping[str, GroupOnCluster]
    replies: Mapping[str, net.Offsets | int]
    plans: Mapping[str, int]
    planned: Collection[str]
    topics: Collection[str]

    def on_destination(self, name: str) -> GroupOnCluster:
        """Return a group on the destination."""
        return self.there.get(name, ABSENT)

    def facts(self, name: str) -> tuple[object, ...]:
        """Return the facts that a group's status follows from, except for the link's progress and other clients'
        commits for it."""
        return self.here[name], self.on_destination(name), self.replies[name], self.plans


def groups_of(cluster: net.ConsumerGroups) -> dict[str, GroupOnCluster]:
    """Return the groups that a cluster lists, by name. Raises ClusterUnavailable, NotAuthorized."""
    return {name: GroupOnCluster(*group) for name, group in cluster.listed().items()}
