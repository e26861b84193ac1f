"""Leaves the changes that need approval out of a proposal, so that they do not delay those that need none. Pure."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from strait.config.links import BackfillBudget, Link
from strait.planning.plan.draft import Draft
from strait.planning.plan.planner import Proposal
from strait.planning.review.clusters import cluster_effects
from strait.planning.review.effects import effects, is_decided, replicated
from strait.planning.topic_sync.actions import CreateTopic, GrowTopic
from strait.planning.topics.unapproved import Unapproved


def unapproved_of(link: Link, proposal: Proposal, foreign: Collection[str] = ()) -> Unapproved | None:
    """Return the changes of a proposal that need approval; None if there are none, or if no part of it may be carried
    out without: before the first plan, and if a cluster is another one.

    Args:
        foreign: source topics that are not planned without approval, since the current plan may have them from a
            foreign client.
    """
    pending = effects(link, proposal)
    if not pending or proposal.before is None or any(cluster_effects(proposal)):
        return None
    told: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for effect in pending:
        told[effect.verb][effect.subject].append(effect.detail)
    current = replicated(proposal)
    keeping = (told["changes"].keys() | told["leaves"].keys()) & current.keys() - set(foreign)
    policies = {topic.source: topic.policy for topic in proposal.before.topics if topic.source in keeping}
    names = {topic: current[topic] for topic in keeping}
    limits = {budget.topic_class: budget.bytes_per_second for budget in proposal.before.budgets}
    starts = {topic: f"copying it {details[0]}" for topic, details in told["copies"].items()}
    changed = {topic: ", ".join(details) for topic, details in told["changes"].items()}
    return Unapproved(
        starts=starts | {topic: text for topic, text in changed.items() if topic in foreign},
        names=names,
        policies=policies,
        limits=limits if told["budget"] else None,
        backfill=_backfill(proposal.before),
        targets=_targets(proposal) | {destination: topic for topic, destination in names.items()},
        changes=changed,
    )


def without_actions(proposal: Proposal) -> Proposal:
    """Return a proposal that was made without unapproved changes, without the actions that need approval, too."""
    create = tuple(item for item in proposal.create if is_decided(item, proposal))
    survey = replace(proposal.survey, create_heartbeats=None)
    return replace(proposal, create=create, survey=survey, sync=replace(proposal.sync, actions=()))


def _backfill(before: Draft) -> BackfillBudget | None:
    """Return the current limits of the backfill task group; None: it has none."""
    if before.backfill is None:
        return None
    rate, hours, timezone = before.backfill.limits
    return BackfillBudget(bytes_per_second=rate, hours=hours, timezone=timezone)


def _targets(proposal: Proposal) -> dict[str, str]:
    """Return the destination topics that are not created or given more partitions -> their source topics."""
    return {
        action.topic: action.source
        for action in proposal.actions
        if isinstance(action, CreateTopic | GrowTopic) and not is_decided(action, proposal)
    }
