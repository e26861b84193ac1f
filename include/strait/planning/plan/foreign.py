"""Plans that no control plane with the link's key has published: they are replaced, and noted in the plan that follows.
Pure."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from strait.config import naming
from strait.config.links import Link
from strait.config.selecting import selects
from strait.planning.plan.planner import Draft, Proposal
from strait.planning.risks.state_safety import foreign_plan
from strait.state.schema import Plan, ReplacedPlan
from strait.state.signing import Proof


def curtailed(
    link: Link, plans: Mapping[str, Plan], proofs: Mapping[str, Proof]
) -> tuple[dict[str, Plan], frozenset[str]]:
    """Return the plans without the topics that the link does not select, or not under these names, if they are not
    proven; and the task groups whose plans had such topics. The next plan may keep parts of the current one."""
    names = naming.Names(link)
    found = dict(plans)
    for group, plan in plans.items():
        if proofs.get(group) is not Proof.PROVEN:
            own = (
                topic
                for topic in plan.topics
                if selects(link.topics, topic.source) and names.destination(topic.source) == topic.destination
            )
            found[group] = plan.model_copy(update={"topics": tuple(own)})
    return found, frozenset(group for group, plan in plans.items() if found[group] != plan)


def replacing(proposal: Proposal, proofs: Mapping[str, Proof], without: Collection[str], now_ms: int) -> Proposal:
    """Return the proposal with a note of each plan that is not proven and that it changes. An unsigned plan that needs
    no change, such as one of an older version, is published again with a signature.

    Args:
        without: task groups whose plans have been curtailed.
        proofs: task group -> whether its current plan is proven by this control plane's key.
    """
    unproven = {group: proofs.get(group) for group in proposal.plans if proofs.get(group) is not Proof.PROVEN}
    drafts, found = dict(proposal.drafts), []
    for group, proof in unproven.items():
        plan = proposal.plans[group]
        if group in drafts or group in without:
            note = ReplacedPlan(version=plan.version, published_at_ms=plan.published_at_ms, at_ms=now_ms)
            drafts[group] = replace(drafts.get(group) or Draft.of(plan), replaced=note)
            found.append(foreign_plan(plan.version, group, (proof or Proof.UNSIGNED).value))
        elif proof is Proof.UNSIGNED:
            drafts[group] = Draft.of(plan)
    return replace(proposal, drafts=drafts, state_risks=(*proposal.state_risks, *found))
