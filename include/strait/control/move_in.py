"""Continues another tool's replication with a link: observes both logs, judges them, and publishes the partitions'
first map entries.

A partition whose first map entry is published this way counts as started for every later plan. The other tool must have
been stopped: destination partitions that still grow are rejected, and the link detects records that came later by their
offsets.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from strait.config import naming
from strait.config.groups import DEFAULT_GROUP
from strait.config.rules import rule_of
from strait.config.selecting import selects
from strait.control.copy_ends import Found, ends_of, look_at_copies
from strait.control.registration import producer_id_of, register_moved_in
from strait.errors import ConfigError, PlanConflict
from strait.model import ClusterFacts, TopicPartition
from strait.net.consumer_groups import ConsumerGroups
from strait.planning.topics.lost_mappings import Begun
from strait.planning.topics.move_in import Begin, where_to_begin
from strait.planning.topics.new_partitions import NewPartition
from strait.planning.topics.pairs import Pair
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.state.moved_copies import MovedCopies
from strait.state.positions import Positions
from strait.state.reader import StateReader
from strait.state.schema import Loss, OffsetMapping, Plan
from strait.state.topics import ensure_state_topics
from strait.text import plural
from strait.waiting import unix_ms

GROWTH_SECONDS = 5.0
"""A destination partition that grows within this time is still written by another tool."""

Verdict = Literal["ready", "imported", "already", "nothing", "started", "refused"]


@dataclass(frozen=True, slots=True)
class Move:
    """One partition.

    Attributes:
        stored: the position that the other tool has stored.
        start: the first source offset that the link copies.
        forced: the destination's records do not confirm ``start``.
    """

    topic: str
    partition: int
    destination: str
    stored: int | None
    start: int | None
    verdict: Verdict
    detail: str
    destination_end: int = -1
    forced: bool = False

    @property
    def place(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def copy(self) -> TopicPartition:
        """The destination partition."""
        return TopicPartition(self.destination, self.partition)


class Force(NamedTuple):
    """The operator that forces a start at stored positions that the destination does not confirm, and the reason."""

    by: str
    reason: str


class MoveIn:
    """Starts one link at another tool's positions.

    Raises (every method):
        ConfigError: the link copies no such topic, or it has no destination topic of that name.
        ClusterUnavailable, NotAuthorized, StateError
    """

    def __init__(self, link: ConfiguredLink) -> None:
        self._name = link.name
        self._handle = link
        self._link = link.settings
        self._source, self._destination = link.admin("source"), link.admin("destination")

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return the positions of a consumer group on the source. Raises ConfigError while it has members."""
        with ConsumerGroups(*self._handle.source) as groups:
            found = groups.listed().get(group)
        where = f"cluster {self._link.source}: group {group}"
        if found is not None and found.state not in ("Empty", "Dead"):
            raise ConfigError(where, [f"has members (state {found.state})"], hint="stop the tool that uses it first")
        committed = self._source.committed(group)
        if not committed:
            raise ConfigError(where, ["has no committed offset"])
        return committed

    def propose(
        self, stored: Positions, topics: Collection[str] = (), *, force: bool = False, complete: bool = False
    ) -> list[Move]:
        """Return for each partition the offset at which the link would start. Changes nothing.

        Args:
            topics: only these, selected by the link or not yet; none: every selected topic with a stored position, with
                all its partitions.
            force: start at stored positions that the destination does not confirm.
            complete: also selected topics that have a destination topic and no stored position: a tool that stopped
                early has stored no position for the records it copied.
        """
        pairs = self._chosen(stored, topics, complete=complete)
        copies = {
            TopicPartition(topic, number): TopicPartition(pair.destination.topic, number)
            for topic, pair in pairs.items()
            for number in range(pair.source.partitions)
        }
        named = set(topics) | {place.topic for place in stored}
        with self._state() as state:
            begun = {place: why for place in copies if (why := _begun(state, place))}
            copies = {place: copy for place, copy in copies.items() if place not in begun or place.topic in named}
            runs = {place: state.runs.get(place, ()) for place in copies}
        open_copies = {place: copy for place, copy in copies.items() if place not in begun}
        at = time.monotonic()
        before = ends_of(self._destination, open_copies.values())
        compacted = {
            topic for topic, pair in pairs.items() if "compact" in pair.source.configs.get("cleanup.policy", "")
        }
        found = look_at_copies(self._source, self._destination, open_copies, stored, compacted)
        time.sleep(max(0.0, at + GROWTH_SECONDS - time.monotonic()) if any(before.values()) else 0.0)
        after = ends_of(self._destination, open_copies.values())
        moves = [
            Move(*place, copy.topic, stored.get(place), None, "started", begun[place])
            if place in begun
            else _move(place, copy, stored.get(place), found[place], (before[copy], after[copy]), runs[place], force)
            for place, copy in sorted(copies.items())
        ]
        return [move for move in moves if move.topic in named or move.verdict != "nothing"]

    def carry_out(self, moves: Sequence[Move], force: Force | None = None) -> list[Move]:
        """Publish the first map entries of all ready partitions, in one transaction; nothing if one is rejected. Before,
        record the other tool's copies, so that a link in the opposite direction does not replicate them back.

        Raises:
            PlanConflict: a destination partition has grown meanwhile, or another control plane started to copy.
        """
        if any(move.verdict == "refused" for move in moves):
            return list(moves)
        ready = [move for move in moves if move.verdict == "ready"]
        moved = [move for move in moves if move.verdict in ("ready", "already")]
        if not moved:
            return list(moves)
        pairs = self._pairs({move.topic: move.destination for move in moved})
        factor = None if self._link.replication_factor == "source" else self._link.replication_factor
        if ready:
            ensure_state_topics(self._destination, self._name, factor)
        copies = _copies(self._name, moved, pairs, self._source.cluster_id)
        register_moved_in(self._destination, copies, factor)
        if not ready:
            return list(moves)
        with self._state() as state, self._handle.publisher().exclusive(state) as publication:
            self._require_unchanged(state, ready)
            now_ms = unix_ms()
            replaced = [run for move in ready for run in state.runs.get(move.place, ())]
            runs = [_first_run(move, pairs[move.topic], now_ms) for move in ready]
            losses = [_forced(self._name, move, force, now_ms) for move in ready if move.forced and force]
            plans = () if state.plans else (self._first_plan(state, now_ms),)
            publication.publish(plans, runs, losses, [run for run in replaced if run not in runs])
        return [replace(move, verdict="imported") if move in ready else move for move in moves]

    def _first_plan(self, state: StateReader, now_ms: int) -> Plan:
        """Return the first plan of a link that has none: it copies nothing yet. Map entries without a plan would mean
        that the link's producer ID is lost."""
        producer_id = producer_id_of(self._name, state, *self._handle.destination)
        return Plan(
            link=self._name,
            group=DEFAULT_GROUP,
            version=1,
            producer_id=producer_id,
            slots=1,
            published_at_ms=now_ms,
        )

    def _require_unchanged(self, state: StateReader, ready: Sequence[Move]) -> None:
        ends = ends_of(self._destination, [move.copy for move in ready])
        for move in ready:
            grown, begun = ends[move.copy] != move.destination_end, _begun(state, move.place)
            if grown or begun:
                what = (
                    begun or f"the end offset of {move.copy} changed from {move.destination_end} to {ends[move.copy]}"
                )
                raise PlanConflict(
                    f"link {self._name}: importing the position of {move.place}: {what}; nothing was imported",
                    hint="stop the other tool, then import again",
                )

    def _chosen(self, stored: Positions, topics: Collection[str], *, complete: bool) -> dict[str, Pair]:
        named = {place.topic for place in stored}
        wanted = set(topics) or {topic for topic in named if selects(self._link.topics, topic)}
        made = [topic for topic in sorted(wanted) if self._transforms(topic)]
        if made:
            raise ConfigError(
                f"link {self._name}",
                [
                    f"topic {topic}: its rule has `transform`, which made none of the other tool's records"
                    for topic in made
                ],
                hint="copy it into a new destination topic by Strait alone, and leave it out here with `--topic`",
            )
        names = naming.Names(self._link)
        if complete and not topics:
            there = self._destination.observe(lambda _: False).topics
            on_source = self._source.observe(lambda _: False).topics
            wanted |= {
                one
                for one in on_source
                if selects(self._link.topics, one) and names.destination(one) in there and not self._transforms(one)
            }
        if not wanted:
            listed = ", ".join(sorted(named)[:5]) or "none"
            raise ConfigError(
                f"link {self._name}",
                [f"selects none of the topics that have a stored position: {listed}"],
                hint="add them to `topics`, or name them with `--topic`",
            )
        return self._pairs({topic: names.destination(topic) or "" for topic in sorted(wanted)})

    def _transforms(self, topic: str) -> bool:
        return rule_of(self._link.topics, topic).transform is not None

    def _pairs(self, names: Mapping[str, str]) -> dict[str, Pair]:
        source = self._source.observe(names.__contains__, ("cleanup.policy",))
        destination = self._destination.observe(set(names.values()).__contains__)
        found = {topic: _pair(topic, copy, source, destination) for topic, copy in names.items()}
        problems = [pair for pair in found.values() if isinstance(pair, str)]
        if problems:
            raise ConfigError(f"link {self._name}", problems)
        return {topic: pair for topic, pair in found.items() if isinstance(pair, Pair)}

    def _state(self) -> StateReader:
        state = self._handle.state()
        state.catch_up()
        return state


def _pair(topic: str, copy: str, source: ClusterFacts, destination: ClusterFacts) -> Pair | str:
    if topic not in source.topics:
        return f"cluster {source.name} has no topic {topic}"
    if source.topics[topic].denied:
        return f"cluster {source.name}: topic {topic}: {source.topics[topic].denied}"
    if copy not in destination.topics:
        return f"cluster {destination.name} has no topic {copy or '(no name)'} for {topic}; set `naming` as in the other tool"
    pair = Pair(source.topics[topic], destination.topics[copy])
    if pair.destination.partitions < pair.source.partitions:
        has = f"{plural(pair.destination.partitions, 'partition')}, {topic} {pair.source.partitions}"
        return f"topic {copy} has {has}; add the missing ones"
    return pair


def _begun(state: StateReader, place: TopicPartition) -> str:
    """Return why the partition counts as started; "" if it does not. A first map entry that no plan follows is not a
    start."""
    runs = state.runs.get(place, ())
    begun = Begun.of(tuple(state.plans.values()), {place: runs} if runs else {})
    if begun.lost(place):
        return "the link has replicated it"
    planned = any(place.topic in {topic.source for topic in plan.topics} for plan in state.plans.values())
    planned |= any(place.topic in {topic.source for topic in plan.left} for plan in state.plans.values())
    if runs and (planned or any(run.sequence_end for run in runs)):
        return f"the link started it at source offset {runs[0].source_base}"
    return ""


def _move(
    place: TopicPartition,
    copy: TopicPartition,
    stored: int | None,
    found: Found,
    ends: tuple[int, int],
    runs: Sequence[OffsetMapping],
    force: bool,
) -> Move:
    begin: Begin = where_to_begin(stored, found.logs, found.match)
    verdict: Verdict = begin.verdict
    offset, detail, forced = begin.offset, begin.detail, False
    if len({*ends, found.logs.copy_end}) > 1:
        verdict, offset = "refused", None
        detail = f"the destination grows: end offset {ends[0]}, later {ends[1]}; stop the other tool"
    elif verdict == "refused" and force and begin.forced is not None:
        verdict, offset, forced = "ready", begin.forced, True
        detail = f"forced to the stored position: {detail}"
    if verdict == "ready" and any(
        (run.source_base, run.destination_base, run.sequence_end) == (offset, ends[1], 0) for run in runs
    ):
        verdict = "already"
    return Move(*place, copy.topic, stored, offset, verdict, detail, ends[1], forced)


def _copies(link: str, moves: Iterable[Move], pairs: Mapping[str, Pair], source_id: str) -> list[MovedCopies]:
    """Return the other tool's records in each destination topic."""
    ends = {topic: [0] * pair.source.partitions for topic, pair in pairs.items()}
    for move in moves:
        ends[move.topic][move.partition] = move.destination_end
    return [
        MovedCopies(
            moved_in=pair.destination.topic,
            topic_id=pair.destination.topic_id,
            link=link,
            source=source_id,
            ends=tuple(ends[topic]),
        )
        for topic, pair in pairs.items()
        if any(ends[topic])
    ]


def _first_run(move: Move, pair: Pair, now_ms: int) -> OffsetMapping:
    assert move.start is not None  # set if ready
    new = NewPartition(
        move.destination, pair.source.topic_id, pair.destination.topic_id, move.start, move.destination_end
    )
    return new.first_run(move.place, now_ms)


def _forced(link: str, move: Move, force: Force, now_ms: int) -> Loss:
    assert move.start is not None  # set if ready
    return Loss(
        link=link,
        topic=move.topic,
        partition=move.partition,
        side="source",
        cause=str(Reason.START_FORCED),
        from_offset=min(move.start, move.start if move.stored is None else move.stored),
        to_offset=move.start,
        at_ms=now_ms,
        action="continued",
        detail=f"{force.by}: {force.reason} ({move.detail})",
    )
