"""Plans that no control plane with the link's key has published: they are replaced, and noted in the plan that follows.
Pure.

Topics of such a plan that the settings do not select may be the link's own, deselected by an edit, or those of a foreign
client. Nothing is planned from them. That their replication ends is an effect of the edit like any other; until an
operator approves it, their entries are carried over unchanged, and the plan is signed for the spec's selection alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from strait.config import naming
from strait.config.links import Link
from strait.config.selecting import is_own
from strait.planning.plan.draft import Draft
from strait.planning.plan.planner import Proposal
from strait.planning.risks.state_safety import foreign_plan
from strait.state.schema import Plan, PlannedTopic, ReplacedPlan
from strait.state.signing import Proof

Foreign = Mapping[str, tuple[PlannedTopic, ...]]


def foreign_topics(link: Link, plans: Mapping[str, Plan], proofs: Mapping[str, Proof]) -> Foreign:
    """Return task group -> the topics of its plan that the link does not select, or not under these names, for plans
    that are not proven.

    Args:
        proofs: task group -> whether its plan is proven by this control plane's key; empty: it has none.
    """
    names = naming.Names(link)
    others = [plan for plan in plans.values() if proofs and proofs.get(plan.group) is not Proof.PROVEN]
    found = {
        plan.group: tuple(topic for topic in plan.topics if not is_own(link, names, topic.source, topic.destination))
        for plan in others
    }
    return {group: topics for group, topics in found.items() if topics}


def unproven(plans: Mapping[str, Plan], proofs: Mapping[str, Proof]) -> frozenset[str]:
    """Return the task groups whose plan no control plane with the key has published; none if there is no key."""
    ours = (Proof.PROVEN, Proof.LIMITED)
    return frozenset(group for group in plans if proofs and proofs.get(group) not in ours)


def without_foreign(plans: Mapping[str, Plan], foreign: Foreign) -> dict[str, Plan]:
    """Return the plans without these topics: the next plan may keep parts of the current one."""
    found = dict(plans)
    for group, topics in foreign.items():
        names = {(topic.source, topic.destination) for topic in topics}
        own = (topic for topic in plans[group].topics if (topic.source, topic.destination) not in names)
        found[group] = plans[group].model_copy(update={"topics": tuple(own)})
    return found


def replacing(
    proposal: Proposal, plans: Mapping[str, Plan], proofs: Mapping[str, Proof], carried: Foreign, now_ms: int
) -> Proposal:
    """Return a proposal that was made from `without_foreign` as one that follows the current plans, with a note of each
    foreign plan that it changes. An unsigned plan that needs no change, such as one of an older version, is published
    again with a signature.

    Args:
        plans: the current plans, as they are. ``proofs``: task group -> whether its plan is proven.
        carried: foreign topics that the proposal leaves in the plan, since their end is not approved.
    """
    drafts = {group: _carrying(draft, carried.get(group, ())) for group, draft in proposal.groups.items()}
    drafts = {group: draft for group, draft in drafts.items() if group not in plans or Draft.of(plans[group]) != draft}
    found = []
    for group, plan in plans.items() if proofs else ():
        proof = proofs.get(group, Proof.UNSIGNED)
        if proof in (Proof.UNSIGNED, Proof.OTHER_KEY) and group in drafts:
            note = ReplacedPlan(version=plan.version, published_at_ms=plan.published_at_ms, at_ms=now_ms)
            drafts[group] = replace(drafts[group], replaced=note)
            found.append(foreign_plan(plan.version, group, proof.value))
        elif proof is Proof.UNSIGNED or (proof is Proof.LIMITED and group not in carried):
            drafts.setdefault(group, Draft.of(plan))
    risks = (*proposal.state_risks, *found)
    return replace(proposal, plans=plans, drafts=drafts, state_risks=risks, limited=frozenset(carried))


def _carrying(draft: Draft, topics: tuple[PlannedTopic, ...]) -> Draft:
    """Return the draft with the entries of these topics; slots that it does not have are replaced by others."""
    if not topics:
        return draft

    def fitting(topic: PlannedTopic) -> Iterator[int | None]:
        return (None if slot is None else slot % draft.slots for slot in topic.slots)

    kept = {topic.source: topic.model_copy(update={"slots": tuple(fitting(topic))}) for topic in topics}
    found = {topic.source: topic for topic in draft.topics} | kept
    return replace(draft, topics=tuple(found[source] for source in sorted(found)))
