"""A plan of one task group or of a whole link, without the fields that each publication sets. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest

from strait.config.groups import DEFAULT_GROUP, MOST_SLOTS
from strait.state.schema import (
    Budget,
    Decision,
    GivenAcl,
    LeftTopic,
    Pause,
    Plan,
    PlannedBackfill,
    PlannedGroupSync,
    PlannedHeartbeat,
    PlannedSettings,
    PlannedTopic,
    ReplacedPlan,
    TopicBound,
    Waiting,
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan without version, producer ID and time: everything that follows from facts.

    Equal drafts make equal plans.
    """

    slots: int
    stopped: bool
    topics: tuple[PlannedTopic, ...]
    waiting: tuple[Waiting, ...]
    budgets: tuple[Budget, ...]
    heartbeat: PlannedHeartbeat | None = None
    consumer_groups: PlannedGroupSync | None = None
    settings: PlannedSettings | None = None
    pauses: tuple[Pause, ...] = ()
    copied_from: str = ""
    acls: tuple[GivenAcl, ...] = ()
    registered: bool = True
    left: tuple[LeftTopic, ...] = ()
    stop: Pause | None = None
    source_cluster: str = ""
    destination_cluster: str = ""
    decisions: tuple[Decision, ...] = ()
    backfill: PlannedBackfill | None = None
    replaced: ReplacedPlan | None = None
    bounds: tuple[TopicBound, ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> "Draft":
        """Return the draft that a published plan was made from."""
        return cls(**{item.name: getattr(plan, item.name) for item in fields(cls)})

    def as_plan(self, *, link: str, group: str, version: int, producer_id: int, now_ms: int) -> Plan:
        """Return the plan to publish."""
        return Plan(
            link=link,
            group=group,
            version=version,
            producer_id=producer_id,
            published_at_ms=now_ms,
            **{item.name: getattr(self, item.name) for item in fields(self)},
        )


def joined(drafts: Mapping[str, Draft], groups: Sequence[str]) -> Draft | None:
    """Combine the drafts of a link's task groups into one; None if there are none.

    Slots are numbered so that no two task groups share a number.

    Args:
        groups: order of the task groups, which determines the slot numbers.
    """
    if not drafts:
        return None
    whole = drafts.get(DEFAULT_GROUP) or next(iter(drafts.values()))
    if len(drafts) == 1:
        return whole
    topics: dict[str, PlannedTopic] = {}
    for number, group in enumerate(groups):
        for topic in drafts[group].topics if group in drafts else ():
            slots = tuple(None if slot is None else slot + number * MOST_SLOTS for slot in topic.slots)
            if topic.source in topics:
                both = zip_longest(topics[topic.source].slots, slots)
                slots = tuple(one if other is None else other for one, other in both)
            topics[topic.source] = topic.model_copy(update={"slots": slots})
    running = [draft for draft in drafts.values() if draft.topics or draft.waiting]
    return replace(
        whole,
        slots=sum(draft.slots for draft in running) or whole.slots,
        topics=tuple(topics[source] for source in sorted(topics)),
        waiting=in_order(item for draft in drafts.values() for item in draft.waiting),
        backfill=next((draft.backfill for draft in drafts.values() if draft.backfill is not None), None),
    )


def in_order(waiting: Iterable[Waiting]) -> tuple[Waiting, ...]:
    """Sort waiting entries as plans contain them."""
    return tuple(sorted(waiting, key=lambda item: (item.topic, item.partitions, item.reason)))


def next_plans(
    drafts: Mapping[str, Draft], plans: Mapping[str, Plan], link: str, producer_id: int, now_ms: int
) -> list[Plan]:
    """Return the plans that follow the current ones, made from the task groups' drafts."""
    versions = {group: plan.version for group, plan in plans.items()}
    return [
        draft.as_plan(
            link=link, group=group, version=versions.get(group, 0) + 1, producer_id=producer_id, now_ms=now_ms
        )
        for group, draft in sorted(drafts.items())
    ]
