"""Pauses and resumes a link, a topic or a partition, and stops and starts a link, immediately: the current plans are
edited and published again.

Only the destination is queried. Slots see the new plan within 0.1 s; a resumed partition determines its position from
the destination, as after any other interruption, so nothing is lost or duplicated however often this happens.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from strait.errors import StateError
from strait.planning.plan import pauses
from strait.planning.plan.draft import Draft
from strait.planning.plan.pauses import Scope
from strait.planning.plan.stopping import stopped_by, with_stopped
from strait.state.link_handle import ConfiguredLink
from strait.state.publisher import Publication
from strait.state.reader import StateReader
from strait.state.schema import Pause, Plan
from strait.waiting import unix_ms


@dataclass(frozen=True, slots=True)
class Edited:
    """The result of an edit. ``scope``: the paused or resumed part of the link; ``published``: the plans that changed,
    and are current now."""

    scope: Scope
    pauses: Sequence[Pause]
    published: Sequence[Plan]


Drafts = Mapping[str, Draft]
Change = Callable[[StateReader], tuple[Scope, Sequence[Pause], Drafts]]
"""Converts the current plans to the wanted ones, by task group."""


def pause(link: ConfiguredLink, scope: Scope, *, by: str, reason: str) -> Edited:
    """Pause ``scope`` until an operator resumes it.

    Raises:
        ConfigError: the plan has no such topic.
        StateError: the link has no plan yet, or its state cannot be read.
        PlanConflict, ClusterUnavailable, NotAuthorized
    """

    def change(state: StateReader) -> tuple[Scope, Sequence[Pause], Drafts]:
        meant = scope.among(_topics(state))
        added = Pause(topic=meant.topic, partition=meant.partition, by=by, at_ms=unix_ms(), reason=reason)
        return meant, *_with_pauses(state, pauses.pause(pauses.pauses_of(state.plans.values()), added))

    return edit(link, change)


def resume(link: ConfiguredLink, scope: Scope) -> Edited:
    """Remove the pause of ``scope``. Raises as `pause`, and ConfigError if there is no pause of exactly that scope."""

    def change(state: StateReader) -> tuple[Scope, Sequence[Pause], Drafts]:
        before = pauses.pauses_of(state.plans.values())
        return (meant := _meant(scope, state)), *_with_pauses(state, pauses.resume(before, meant))

    return edit(link, change)


def is_paused(link: ConfiguredLink, scope: Scope) -> tuple[Scope, bool]:
    """Return the scope as `resume` understands it, and whether there is a pause of exactly that one. Raises as `pause`; but
    a link without a plan is not paused."""
    with link.state("plan") as state:
        state.catch_up()
        if scope.topic:
            _require_plan(link, state)
        meant = _meant(scope, state)
        return meant, meant in {Scope.of(item) for item in pauses.pauses_of(state.plans.values())}


def pause_topics(
    link: ConfiguredLink, topics: Collection[str], *, by: str, reason: str, check: Callable[[], None]
) -> Edited:
    """Pause these source topics in one edit; the reason replaces that of an earlier pause of a whole topic. Raises
    as `pause`.

    Args:
        check: as in `set_stopped`.
    """

    def change(state: StateReader) -> tuple[Scope, Sequence[Pause], Drafts]:
        before = pauses.pauses_of(state.plans.values())
        wanted = before
        there = {item.topic: item.reason for item in before if item.partition is None}
        for topic in sorted(topic for topic in topics if there.get(topic) != reason):
            wanted = pauses.pause(wanted, Pause(topic=topic, by=by, at_ms=unix_ms(), reason=reason))
        if wanted != before:
            check()
        return Scope(), *_with_pauses(state, wanted)

    return edit(link, change)


def set_stopped(
    link: ConfiguredLink, *, stopped: bool, by: str, reason: str = "", check: Callable[[], None] = lambda: None
) -> Edited:
    """Stop the link's applications, or let them run again. Applies no pending configuration change, and does not query
    the source. Raises as `pause`.

    Args:
        check: is called before a change is published, while no other process can publish; if it raises, nothing is
            published.
    """
    stop = Pause(by=by, at_ms=unix_ms(), reason=reason) if stopped else None

    def change(state: StateReader) -> tuple[Scope, Sequence[Pause], Drafts]:
        drafts = {group: Draft.of(plan) for group, plan in state.plans.items()}
        wanted = with_stopped(drafts, stop)
        if wanted != drafts:
            check()
        return Scope(), pauses.pauses_of(state.plans.values()), wanted

    return edit(link, change)


def end_publications(link: ConfiguredLink) -> None:
    """Take over publishing: a publication that another process has started is complete when this returns, or never
    happens. Raises as `pause`."""
    with link.state("plan") as state:
        link.publisher().until_published(state, lambda _: None)


def why_stopped(link: ConfiguredLink) -> str:
    """Return by whom, when and why a link was stopped, as text; empty: it is not stopped. Raises as `pause`, except for
    a link without a plan."""
    with link.state("plan") as state:
        state.catch_up()
        return stopped_by(state.plans.values())


def _topics(state: StateReader) -> set[str]:
    """Return every source topic that the plans name, copied or not."""
    plans = state.plans.values()
    return {topic.source for plan in plans for topic in plan.topics} | {
        item.topic for plan in plans for item in plan.waiting
    }


def _meant(scope: Scope, state: StateReader) -> Scope:
    """Resolve the scope of a pause among the topics that the plans name or that are paused. Raises ConfigError."""
    return scope.among(_topics(state) | {item.topic for item in pauses.pauses_of(state.plans.values())})


def _require_plan(link: ConfiguredLink, state: StateReader) -> None:
    if not state.plans:
        raise StateError(
            f"link {link.name}: it has no plan yet, so nothing is copied",
            hint="run the monitor DAG or `strait apply` first",
        )


def _with_pauses(state: StateReader, wanted: Sequence[Pause]) -> tuple[Sequence[Pause], Drafts]:
    drafts = {group: pauses.edited(Draft.of(plan), wanted, state.runs) for group, plan in state.plans.items()}
    return wanted, drafts


def edit(link: ConfiguredLink, change: Change) -> Edited:
    """Publish the current plans with a change, and nothing else. Raises as `pause`, and the errors of ``change``."""
    link = link.with_key()
    with link.state() as state:
        state.catch_up()
        _require_plan(link, state)

        def publish(publication: Publication) -> Edited:
            scope, wanted, drafts = change(state)
            published = [
                draft.as_plan(
                    link=link.name,
                    group=group,
                    version=plan.version + 1,
                    producer_id=plan.producer_id,
                    now_ms=unix_ms(),
                )
                for (group, draft), plan in zip(drafts.items(), state.plans.values(), strict=True)
                if draft != Draft.of(plan)
            ]
            if published:
                publication.publish(published)
            return Edited(scope, wanted, published)

        return link.publisher().until_published(state, publish)
