"""Pausing and resuming a link, a topic or a partition, at once: the plans in force are edited and published anew.

Only the destination is asked. Slots see the new plan within a tenth of a second; what goes on again looks its place up
on the destination, as after any other interruption, so nothing is lost or doubled however often this happens.
"""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strait.config.links import LinksFile
from strait.errors import PlanConflict, StateError
from strait.planning.plan import pauses
from strait.planning.plan.pauses import Scope
from strait.planning.plan.planner import Draft
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.schema import Pause, Plan

_CONFLICTS_MOST = 8
_CONFLICT_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Edited:
    """What became of a link. ``published``: the plans that changed, and are in force now."""

    pauses: Sequence[Pause]
    published: Sequence[Plan]


def pause(file: LinksFile, link: str, scope: Scope, *, by: str, reason: str) -> Edited:
    """Stop copying what ``scope`` says until somebody resumes it.

    Raises:
        StateError: the link has no plan yet, or its state cannot be read.
        PlanConflict, ClusterUnavailable, NotAuthorized
    """
    added = Pause(topic=scope.topic, partition=scope.partition, by=by, at_ms=_now_ms(), reason=reason)
    return _edit(file, link, lambda before: pauses.pause(before, added))


def resume(file: LinksFile, link: str, scope: Scope) -> Edited:
    """Go on with what was paused as ``scope``. Raises as `pause`, and ConfigError where nothing is paused by that
    name."""
    return _edit(file, link, lambda before: pauses.resume(before, scope))


def _edit(file: LinksFile, link: str, change: Callable[[Sequence[Pause]], Sequence[Pause]]) -> Edited:
    destination = file.links[link].destination
    with StateReader(file.clusters[destination], destination, link) as state:
        for _ in range(_CONFLICTS_MOST):
            try:
                return _publish(ControlPublisher(file.clusters[destination], destination, link), link, state, change)
            except PlanConflict as error:
                conflict = error
                time.sleep(random.uniform(0, _CONFLICT_PAUSE_SECONDS))  # noqa: S311  only to get out of step
        raise conflict


def _publish(
    publisher: ControlPublisher, link: str, state: StateReader, change: Callable[[Sequence[Pause]], Sequence[Pause]]
) -> Edited:
    state.catch_up()
    if not state.plans:
        raise StateError(
            f"link {link}: it has no plan yet, so nothing is copied", hint="run the monitor DAG or `strait apply` first"
        )
    with publisher.exclusive(state) as publication:
        wanted = change(pauses.pauses_of(state.plans.values()))
        drafts = {group: pauses.edited(Draft.of(plan), wanted, state.runs) for group, plan in state.plans.items()}
        published = [
            draft.as_plan(
                link=link,
                group=group,
                version=plan.version + 1,
                producer_id=plan.producer_id,
                now_ms=_now_ms(),
            )
            for (group, draft), plan in zip(drafts.items(), state.plans.values(), strict=True)
            if draft != Draft.of(plan)
        ]
        if published:
            publication.publish(published)
        return Edited(wanted, published)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
