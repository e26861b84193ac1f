"""Whether a partition's two topics are still those of its offset segments, and the consequences if not. Pure.

A topic that was deleted and created again is another topic under the same name; only its ID shows that (KIP-516).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from strait.planning.topics.pairs import Pair
from strait.planning.topics.start_offsets import Resume, StartAt
from strait.reasons import Reason
from strait.state.adoption import adopted
from strait.state.offset_map import covering, destination_offset, locate
from strait.state.schema import Loss, OffsetMapping, TopicPolicy
from strait.text import plural

Action = Literal["halted", "continued", "restarted"]
_LOSSES = (Reason.SOURCE_RECREATED, Reason.DESTINATION_RECREATED, Reason.DESTINATION_DELETED)


class Change(NamedTuple):
    """A difference between the replicated topics and the current ones. ``lost``: offsets [from, to) that the lost topic
    held, on ``side``."""

    reason: Reason
    detail: str
    side: Literal["source", "destination"]
    lost: tuple[int, int]

    @property
    def is_loss(self) -> bool:
        return self.reason in _LOSSES

    def loss(self, link: str, topic: str, partition: int, action: Action, now_ms: int) -> Loss:
        """Return its entry in the loss log."""
        return Loss(
            link=link,
            topic=topic,
            partition=partition,
            side=self.side,
            cause=str(self.reason),
            from_offset=self.lost[0],
            to_offset=self.lost[1],
            at_ms=now_ms,
            action=action,
            detail=self.detail,
        )


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Replication continues. If only the source topic is another one and the policy allows it, the slot starts on that
    one."""


@dataclass(frozen=True, slots=True)
class New:
    """Replication starts with a first segment. ``change``: the change that ended the earlier replication, if there was
    any."""

    begin: StartAt
    change: Change | None = None
    action: Action = "restarted"


@dataclass(frozen=True, slots=True)
class Halted:
    """Replication stays halted until an operator resolves it."""

    change: Change


def judge(pair: Pair, past: Sequence[OffsetMapping], begin: StartAt, policy: TopicPolicy) -> Unchanged | New | Halted:
    """Compare a partition's segments with its current topics.

    Args:
        past: all its segments, by ``sequence_base``.
        ``begin``: the start offset if the link has never replicated the partition.
    """
    if not past:
        return New(begin)
    past = adopted(past, pair.destination.topic, pair.source.topic_id, pair.destination.topic_id)
    here = [run for run in past if (run.destination, run.destination_id) == _identity(pair)]
    if any(run.source_id == pair.source.topic_id for run in here):
        return Unchanged()
    last = max(here or past, key=lambda run: (run.checkpoint_at_ms, run.sequence_base))
    change = _change(pair, past, last)
    if change.reason is Reason.NAMING_CHANGED or policy.on_loss == "halt":
        return Halted(change)
    if here:
        return Unchanged()
    if policy.on_loss == "continue" and last.source_id == pair.source.topic_id:
        return New(Resume(_copied(past, last)[0]), change, "continued")
    return New("earliest", change)


def naming_changed(before: str, now: str, end: int) -> Change:
    """Return the change for a configuration that names another destination topic. ``end``: the destination offset after
    the last record replicated to the former one."""
    detail = f"replicated to {before} so far; the configuration now names {now}"
    return Change(Reason.NAMING_CHANGED, detail, "destination", (end, end))


def copied(past: Sequence[OffsetMapping]) -> tuple[int, int]:
    """Return the offsets [first, end) that are known to have existed in the destination topic to which a partition was
    last replicated."""
    last = max(past, key=lambda run: (run.checkpoint_at_ms, run.sequence_base))
    first, end = min(run.destination_base for run in _of(past, last)), _copied(past, last)[1]
    return first, max(first, end)


def _identity(pair: Pair) -> tuple[str, str]:
    return pair.destination.topic, pair.destination.topic_id


def _change(pair: Pair, past: Sequence[OffsetMapping], last: OffsetMapping) -> Change:
    position, end = _copied(past, last)
    if last.destination != pair.destination.topic:
        return naming_changed(last.destination, pair.destination.topic, end)
    source = (
        f"topic {pair.source.topic} was deleted and created again on the source: the link copied ID {last.source_id}, "
        f"the present one is {pair.source.topic_id}; what was copied stays in {last.destination}"
    )
    if last.destination_id == pair.destination.topic_id:
        return Change(Reason.SOURCE_RECREATED, source, "source", (position, position))
    first = min(run.destination_base for run in _of(past, last))
    lost = first, max(first, end)
    destination = (
        f"topic {last.destination} was deleted and created again on the destination: the link copied into ID "
        f"{last.destination_id}, the present one is {pair.destination.topic_id}; the {plural(lost[1] - first, 'record')} copied into "
        "the former one are gone with it"
    )
    if last.source_id == pair.source.topic_id:
        return Change(Reason.DESTINATION_RECREATED, destination, "destination", lost)
    return Change(Reason.SOURCE_RECREATED, f"{source}; and {destination}", "source", (position, position))


def _copied(past: Sequence[OffsetMapping], last: OffsetMapping) -> tuple[int, int]:
    """Return the source position and the destination offset after the last record that is known to be replicated."""
    runs = _of(past, last)
    sequence = max(runs[0].sequence_base, *(run.sequence_end for run in runs))
    return locate(runs, sequence), destination_offset(covering(runs, sequence), sequence)


def _of(past: Sequence[OffsetMapping], last: OffsetMapping) -> list[OffsetMapping]:
    ids = last.destination, last.destination_id, last.source_id
    return [run for run in past if (run.destination, run.destination_id, run.source_id) == ids]
