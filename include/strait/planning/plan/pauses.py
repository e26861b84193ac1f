"""Pauses set by operators: the partitions that they exclude, and how they change a current plan. Pure.

The pauses of a link are stored only in its plans; each publication carries them over. Pausing and resuming edit the
current plan. Neither cluster is observed for that, so the edit takes effect immediately and changes nothing else.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from strait.config.route_names import topic_of, typed
from strait.config.validation import did_you_mean
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.planning.assignment.budgets import backfill_dealt_anew, dealt_anew
from strait.planning.plan.draft import Draft
from strait.reasons import Reason
from strait.state.adoption import adopted
from strait.state.schema import OffsetMapping, Pause, Plan, PlannedTopic, Waiting, newest_of
from strait.text import utc

Pauses = Sequence[Pause]
Runs = Mapping[tuple[str, int], Sequence[OffsetMapping]]


class Scope(NamedTuple):
    """Scope of a pause. ``topic`` empty: the link. ``partition`` None: the whole topic."""

    topic: str = ""
    partition: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Scope":
        """Parse ``TOPIC``, ``TOPIC-PARTITION`` or ``TOPIC:PARTITION``; empty text means the link. Raises ConfigError.

        Whether ``orders-3`` is a partition or a topic depends on the topics of the link: see `among`.
        """
        topic, colon, number = text.partition(":")
        if colon and not (topic and number.isdecimal()):
            raise ConfigError(repr(text), ["is neither TOPIC nor TOPIC-PARTITION"])
        return cls(topic, int(number) if colon else None)

    def among(self, topics: Collection[str]) -> "Scope":
        """Resolve the scope: ``orders-3`` is a topic if ``topics`` contains it, else partition 3 of ``orders``. The name of a
        divided topic means all of its routes.

        Raises:
            ConfigError: no topic matches; the message suggests the nearest one.
        """
        known = {*topics, *map(topic_of, topics)}
        given = self._replace(topic=typed(self.topic))
        if not given.topic or given.topic in known:
            return given
        topic, _, number = given.topic.rpartition("-")
        if self.partition is None and topic in known and number.isdecimal():
            return Scope(topic, int(number))
        raise ConfigError(repr(self.topic), [f"the plan has no such topic{did_you_mean(self.topic, known)}"])

    @classmethod
    def of(cls, pause: Pause) -> "Scope":
        return cls(pause.topic, pause.partition)

    def covers(self, partition: TopicPartition) -> bool:
        topics = ("", partition.topic, topic_of(partition.topic))
        return self.topic in topics and self.partition in (None, partition.partition)

    def __str__(self) -> str:
        if not self.topic:
            return "the link"
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"


def pauses_of(plans: Iterable[Plan]) -> tuple[Pause, ...]:
    """Return the link's pauses, from the newest of its plans."""
    newest = newest_of(plans)
    return () if newest is None else newest.pauses


def pause(pauses: Pauses, added: Pause) -> tuple[Pause, ...]:
    """Add a pause, which replaces an earlier one of the same scope. The result is in order of scopes."""
    scope = Scope.of(added)
    return _in_order([*(item for item in pauses if Scope.of(item) != scope), added])


def resume(pauses: Pauses, scope: Scope) -> tuple[Pause, ...]:
    """Remove the pause of exactly this scope; partitions that were paused by another scope stay paused.

    Raises:
        ConfigError: no pause has this scope.
    """
    left = _in_order(item for item in pauses if Scope.of(item) != scope)
    if len(left) == len(pauses):
        others = ", ".join(str(Scope.of(item)) for item in pauses)
        raise ConfigError(str(scope), ["is not paused" + (f" by itself; paused: {others}" if others else "")])
    return left


def held(pauses: Pauses, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Pause]:
    """Return the paused partitions, each with the pause that applies; the widest scope takes precedence."""
    scopes = [(Scope.of(item), item) for item in pauses]
    found = {}
    for partition in partitions if scopes else ():
        item = next((item for scope, item in scopes if scope.covers(partition)), None)
        if item is not None:
            found[partition] = item
    return found


def described(item: Pause) -> str:
    """Describe a pause: scope, operator, time and reason."""
    return f"{Scope.of(item)} was paused by {item.by} at {utc(item.at_ms)} UTC" + (
        f": {item.reason}" if item.reason else ""
    )


def waiting_of(paused: Mapping[TopicPartition, Pause]) -> Iterator[Waiting]:
    """Yield waiting entries that state why the partitions are paused."""
    return _together({partition: described(item) for partition, item in paused.items()})


def edited(draft: Draft, pauses: Pauses, runs: Runs) -> Draft:
    """Return the current plan with other pauses: nothing else changes, no other partition moves.

    A resumed partition goes to the slot with the fewest partitions. One without an offset segment for its current
    topics (never started, or a topic was recreated) waits for the next plan.

    Args:
        runs: (source topic, partition) -> its offset segments.
    """
    before = {
        TopicPartition(item.topic, number)
        for item in draft.waiting
        if item.reason == Reason.PAUSED
        for number in item.partitions
    }
    copied = {
        TopicPartition(topic.source, number)
        for topic in draft.topics
        for number, slot in enumerate(topic.slots)
        if slot is not None
    }
    paused = held(pauses, sorted(before | copied))
    fit = {partition for topic in draft.topics for partition in _firm(topic, runs)}
    resumed = sorted((before - paused.keys()) & fit)
    details = {partition: described(item) for partition, item in paused.items()}
    details |= dict.fromkeys(before - paused.keys() - fit, "resumed; starts with the next plan")
    topics = _assigned(draft.topics, draft.slots, paused, resumed)
    others = (item for item in draft.waiting if item.reason != Reason.PAUSED)
    return replace(
        draft,
        topics=topics,
        waiting=tuple(
            sorted([*others, *_together(details)], key=lambda item: (item.topic, item.partitions, item.reason))
        ),
        budgets=tuple(dealt_anew(item, topics, draft.slots) for item in draft.budgets),
        backfill=backfill_dealt_anew(draft.backfill, topics, draft.slots),
        pauses=tuple(pauses),
    )


def _assigned(
    topics: Sequence[PlannedTopic],
    slots: int,
    paused: Mapping[TopicPartition, Pause],
    resumed: Iterable[TopicPartition],
) -> tuple[PlannedTopic, ...]:
    given: dict[TopicPartition, int | None] = dict.fromkeys(paused)
    load = Counter(slot for topic in topics for slot in topic.slots if slot is not None)
    for partition in resumed:
        emptiest = min(range(slots), key=lambda slot: (load[slot], slot))
        given[partition] = emptiest
        load[emptiest] += 1

    def of(topic: PlannedTopic) -> tuple[int | None, ...]:
        return tuple(given.get(TopicPartition(topic.source, n), slot) for n, slot in enumerate(topic.slots))

    return tuple(
        topic if of(topic) == topic.slots else topic.model_copy(update={"slots": of(topic)}) for topic in topics
    )


def _firm(topic: PlannedTopic, runs: Runs) -> Iterator[TopicPartition]:
    """Yield the partitions with an offset segment for exactly these topics, so that a slot can continue them."""
    ids = topic.destination, topic.source_id, topic.destination_id
    for number in range(len(topic.slots)):
        known = adopted(runs.get((topic.source, number), ()), *ids)
        if any((run.destination, run.source_id, run.destination_id) == ids for run in known):
            yield TopicPartition(topic.source, number)


def _together(details: Mapping[TopicPartition, str]) -> Iterator[Waiting]:
    grouped: dict[tuple[str, str], list[int]] = {}
    for partition, detail in sorted(details.items()):
        grouped.setdefault((partition.topic, detail), []).append(partition.partition)
    for (topic, detail), numbers in grouped.items():
        yield Waiting(topic=topic, partitions=tuple(numbers), reason=Reason.PAUSED, detail=detail)


def _in_order(pauses: Iterable[Pause]) -> tuple[Pause, ...]:
    return tuple(sorted(pauses, key=lambda item: (item.topic, -1 if item.partition is None else item.partition)))
