"""One-time decisions about a topic that was deleted on one side, in the current plan; the next plan follows them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from strait.config.route_names import is_meant, typed
from strait.control.pausing import Edited, edit
from strait.planning.plan.draft import Draft
from strait.planning.plan.pauses import Scope, pauses_of
from strait.planning.topics import decisions
from strait.planning.topics.lost_mappings import Begun
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.schema import Decision, Pause, Waiting
from strait.waiting import unix_ms


def resolve(
    link: ConfiguredLink, topic: str, action: Literal["continue", "restart"], *, by: str, reason: str
) -> Edited:
    """Have the next plan create the deleted topic, or accept the recreated one, and continue as ``action`` specifies.

    Raises:
        ConfigError: nothing of the topic waits for such a decision.
        StateError: the link has no plan yet, or its state cannot be read.
        PlanConflict, ClusterUnavailable, NotAuthorized
    """
    at_ms = unix_ms()

    def change(state: StateReader) -> tuple[Scope, Sequence[Pause], Mapping[str, Draft]]:
        plans = state.plans
        waiting = [item for plan in plans.values() for item in plan.waiting]
        begun = Begun.of(tuple(plans.values()), state.runs)
        held = {item.topic for item in waiting if item.reason in decisions.RESOLVABLE}
        names = sorted(name for name in held if is_meant(topic, name)) or [
            typed(topic)
        ]  # all routes of a topic that wait
        made = [Decision(topic=name, action=action, by=by, at_ms=at_ms, reason=reason) for name in names]
        others = [item for item in decisions.decisions_of(plans.values()) if item.topic not in names]
        wanted = [*others, *(found for one in made for found in decisions.resolve(waiting, begun, one))]
        drafts = {group: Draft.of(plan) for group, plan in plans.items()}
        for one in made:
            drafts = {group: _decided(draft, wanted, one) for group, draft in drafts.items()}
        return Scope(topic), pauses_of(plans.values()), drafts

    return edit(link, change)


def _decided(draft: Draft, wanted: Sequence[Decision], made: Decision) -> Draft:
    def told(item: Waiting) -> Waiting:
        if item.topic != made.topic or item.reason not in decisions.RESOLVABLE:
            return item
        return item.model_copy(update={"detail": f"{decisions.described(made)}; takes effect with the next plan"})

    return replace(draft, decisions=tuple(wanted), waiting=tuple(map(told, draft.waiting)))
