"""Differences between two plans, human-readable and as plain data. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from strait.model import TopicPartition
from strait.planning.assignment.slots import slots_by_partition
from strait.planning.plan.draft import Draft
from strait.state.schema import TopicPolicy, Waiting
from strait.text import listed


@dataclass(frozen=True, slots=True)
class Changes:
    """Partitions by kind of change, in order; ``waiting``: all that wait afterwards, not only the new ones.

    ``policies``: source topic -> changes of its policy, for topics that were replicated before.

    ``budgets``: the new bandwidth limits if they changed, else empty.
    """

    added: tuple[TopicPartition, ...]
    removed: tuple[TopicPartition, ...]
    moved: tuple[TopicPartition, ...]
    waiting: tuple[Waiting, ...]
    policies: Mapping[str, str] = field(default_factory=dict)
    budgets: str = ""


def changes(before: Draft | None, after: Draft, *, without: Collection[str] = ()) -> Changes:
    """Compare two drafts by partition and slot. ``without``: policy fields to ignore."""
    old = {} if before is None else slots_by_partition(before.topics)
    new = slots_by_partition(after.topics)
    return Changes(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        moved=tuple(sorted(partition for partition in old.keys() & new.keys() if old[partition] != new[partition])),
        waiting=after.waiting,
        policies={} if before is None else _policies(before, after, without),
        budgets="" if _limits(before) == _limits(after) else _limits(after) or "none",
    )


def _policies(before: Draft, after: Draft, without: Collection[str]) -> dict[str, str]:
    old = {topic.source: topic.policy for topic in before.topics}
    names = [name for name in TopicPolicy.model_fields if name not in without]
    told = {
        topic.source: _difference(old.get(topic.source, topic.policy), topic.policy, names) for topic in after.topics
    }
    return {topic: text for topic, text in told.items() if text}


def _difference(old: TopicPolicy, new: TopicPolicy, names: Iterable[str]) -> str:
    fields = [name for name in names if getattr(old, name) != getattr(new, name)]
    return ", ".join(f"{name} {_shown(getattr(old, name))} -> {_shown(getattr(new, name))}" for name in fields)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return listed(list(map(str, value))) or "none"
    return str(value).lower() if isinstance(value, bool) or value is None else str(value) or "none"


def _limits(draft: Draft | None) -> str:
    """Return the budgets as text, without the shares of slots, which follow from the assignment of partitions."""
    budgets = () if draft is None else draft.budgets
    found = [f"{item.topic_class or 'link'} {item.bytes_per_second:,} bytes/s" for item in budgets]
    if draft is not None and draft.backfill is not None:
        found.append(f"backfill {draft.backfill.described}")
    return ", ".join(found)
