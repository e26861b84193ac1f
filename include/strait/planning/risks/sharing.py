"""Destination topics that other links write to as well, by their plans. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from strait.planning.risks.risks import Risk
from strait.state.schema import Plan, PlannedTopic, TopicPolicy


@dataclass(frozen=True, slots=True)
class OtherLinks:
    """Other links into a cluster.

    Attributes:
        plans: link -> its current plans.
        unread: ``link NAME``, or another link of unknown name -> why its plans are unknown.
    """

    plans: Mapping[str, tuple[Plan, ...]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)

    def writing(self) -> dict[str, list[tuple[str, Plan, PlannedTopic]]]:
        """Return destination topic -> the links that replicate to it, each with its plan and its topic."""
        found: dict[str, list[tuple[str, Plan, PlannedTopic]]] = {}
        for link, plans in self.plans.items():
            for plan in plans:
                for topic in plan.topics:
                    found.setdefault(topic.destination, []).append((link, plan, topic))
        return found


def shared(
    names: Mapping[str, str],
    policies: Mapping[str, TopicPolicy],
    started: Collection[str],
    source_id: str,
    others: OtherLinks,
) -> tuple[Risk, ...]:
    """Return a risk for each other link that replicates to the destination topic of a topic whose replication starts.

    There is none if both links expect records of other producers and have different sources: then it is intended.

    Args:
        names: source topic -> destination topic.
        policies: source topic -> its policy, of topics whose destination topic exists.
        started: source topics whose replication starts.
        source_id: Kafka's ID of the source.
    """
    writing = others.writing()
    found = {
        risk
        for source in started
        for link, plan, topic in writing.get(names.get(source, ""), ())
        for risk in _of(source, policies.get(source), source_id, link, plan, topic)
    }
    return tuple(sorted(found, key=lambda risk: (risk.topic, risk.detail)))


def _of(
    source: str, policy: TopicPolicy | None, source_id: str, link: str, plan: Plan, topic: PlannedTopic
) -> Iterator[Risk]:
    told = f"link {link} replicates {topic.source} to {topic.destination}, too"
    if plan.source_cluster and plan.source_cluster == source_id and topic.source == source:
        detail = f"{told}, from the same source, so each record arrives twice; exclude it from one of the two links"
        yield Risk("shared_destination", source, detail)
    elif topic.policy.on_foreign == "halt" or policy is None or policy.on_foreign == "halt":
        detail = f"{told}; a partition to which both write halts, unless both have `on_foreign: expect`"
        yield Risk("shared_destination", source, f"{detail}; give it another name in `naming`, or set that")
