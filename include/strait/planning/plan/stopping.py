"""Stops a link and starts it again by editing its current plans. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from strait.config.groups import DEFAULT_GROUP
from strait.planning.plan.draft import Draft
from strait.reasons import Reason
from strait.state.schema import Pause, Plan
from strait.text import utc


def with_stopped(drafts: Mapping[str, Draft], stop: Pause | None) -> dict[str, Draft]:
    """Return a link's drafts by task group, stopped by ``stop`` or, if it is None, started; nothing else changes.

    A link that is already stopped keeps the operator, time and reason of its first stop.

    A task group other than `default` without a partition to replicate stays stopped: its application would do nothing.
    """
    if stop is not None and all(of.stopped for of in drafts.values()):
        return dict(drafts)
    return {
        group: replace(of, stopped=stop is not None or not _has_work(group, of), stop=stop)
        for group, of in drafts.items()
    }


def stopped_by(plans: Iterable[Plan]) -> str:
    """Describe by whom a link was stopped, when and why; empty if it is not stopped."""
    found = list(plans)
    if not found or not all(plan.stopped for plan in found):
        return ""
    stop = next((plan.stop for plan in found if plan.stop is not None), None)
    if stop is None:
        return "the link was stopped; by whom is not known"
    return f"the link was stopped by {stop.by} at {utc(stop.at_ms)} UTC" + (f": {stop.reason}" if stop.reason else "")


def _has_work(group: str, draft: Draft) -> bool:
    assigned = any(slot is not None for topic in draft.topics for slot in topic.slots)
    return group == DEFAULT_GROUP or assigned or any(item.reason == Reason.PAUSED for item in draft.waiting)
