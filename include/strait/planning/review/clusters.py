"""Between which clusters a link copies, and that it becomes others: always a person's decision. Pure."""

from collections.abc import Iterable, Iterator

from strait.planning.plan.planner import Proposal
from strait.planning.review.effect import Effect
from strait.state.schema import Plan

Clusters = tuple[str, str]
"""Kafka's IDs of source and destination; "": unknown."""

UNKNOWN: Clusters = ("", "")


def planned_clusters(plans: Iterable[Plan]) -> Clusters:
    """Those of the newest plan. Plans of older versions have the source's alone, as it was when the link began."""
    newest = max(plans, key=lambda plan: plan.published_at_ms, default=None)
    if newest is None:
        return UNKNOWN
    return newest.source_cluster or _known(newest.copied_from), newest.destination_cluster


def cluster_effects(proposal: Proposal) -> Iterator[Effect]:
    """One for each end that is another cluster than before."""
    before, now = planned_clusters(proposal.plans.values()), proposal.survey.clusters
    for verb, old, new in zip(("reads", "writes"), before, now, strict=True):
        if old and new and old != new:
            yield Effect(verb, f"Kafka cluster {new}", f"so far {old}")


def cluster_differences(shown: Clusters, now: Clusters) -> list[str]:
    """One line for each end that is not the cluster that was shown."""
    ends = zip(("source", "destination"), shown, now, strict=True)
    return [
        f"shown for Kafka cluster {one} as {end}, which is {other} now"
        for end, one, other in ends
        if one and one != other
    ]


def _known(told: str) -> str:
    return "" if told == "None" else told  # what older versions wrote of a cluster without an ID
