"""Source and destination cluster of a link. A change of either always requires an operator's decision. Pure."""

from collections.abc import Iterable, Iterator

from strait.planning.plan.planner import Proposal
from strait.planning.review.effect import Effect
from strait.state.schema import Plan, newest_of

Clusters = tuple[str, str]
"""Kafka's IDs of source and destination; "": unknown."""

UNKNOWN: Clusters = ("", "")


def planned_clusters(plans: Iterable[Plan]) -> Clusters:
    """Return the clusters of the newest plan.

    Plans of older versions record only the source, as it was when the link started.
    """
    newest = newest_of(plans)
    if newest is None:
        return UNKNOWN
    return newest.source_cluster or _known(newest.copied_from), newest.destination_cluster


def cluster_effects(proposal: Proposal) -> Iterator[Effect]:
    """Yield an effect for each end whose cluster changes."""
    before, now = planned_clusters(proposal.plans.values()), proposal.survey.clusters
    for verb, old, new in zip(("reads", "writes"), before, now, strict=True):
        if old and new and old != new:
            yield Effect(verb, f"Kafka cluster {new}", f"so far {old}")


def cluster_differences(shown: Clusters, now: Clusters) -> list[str]:
    """Return one line for each end whose cluster is not the one that was shown."""
    ends = zip(("source", "destination"), shown, now, strict=True)
    return [
        f"shown for Kafka cluster {one} as {end}, which is {other} now"
        for end, one, other in ends
        if one and one != other
    ]


def _known(told: str) -> str:
    return "" if told == "None" else told  # older versions wrote this for a cluster without an ID
