"""The replication protocol as an executable model, explored breadth-first over every interleaving at small size.

Decisions are the product's: `strait.engine.recovery.decision` and `strait.state.offset_map`. The world around them is
modelled:

- a source partition with three records and one gap;
- one destination partition: its leader's log with an unreplicated tail, high watermark, log start, the producer's
  state, records of other producers, DeleteRecords or retention, compaction of a batch, clean and unclean changes of the
  leader;
- the map, whose entries for gaps are written before the batch, and may be delayed or lost; checkpoints;
- two instances of the link, each asking the destination, reading the map, sending, losing acknowledgements or crashing;
- instead of the second instance a second link, from another source with as many records into the same partition, with a
  producer ID, a map and an instance of its own: each link's records are foreign to the other one.

Not modelled: more than one batch in flight (old records, of which a broker may forget the producer at any time, are
sent one batch at a time), different policies of two instances, a compacted or truncated source,
packing of the map, the wrap of sequences, recreated topics, and time. An instance resets its position when the
destination's leader changes, since it must learn the new leader's address first; that the same broker loses and regains
the lead is not modelled. Expiry of the producer's state while a batch is on its way is
excluded: the product excludes it by the age of records, by letting one instance send old ones, and by noticing stalls.
"""

from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from strait.engine.recovery import decision
from strait.engine.recovery.decision import Found, LogState, OnForeign, Refused, Scan, Unproven
from strait.engine.recovery.tail import Tail
from strait.state.offset_map import (
    candidates,
    covering,
    destination_offset,
    places,
    source_position,
    wire_sequence,
)
from strait.state.schema import OffsetMapping
from strait.wire.batch import Batch

SOURCE = (0, 1, 3)
"""Offsets of the source's records."""


class Limits(NamedTuple):
    """How often each fault may happen on one path."""

    expiries: int = 1
    foreign: int = 1
    deletions: int = 1
    compactions: int = 1
    elections: int = 1
    unclean: int = 0
    unclean_elections: int = 0
    crashes: int = 1
    failures: int = 1


class Entry(NamedTuple):
    """One run of the map."""

    sequence_base: int
    source_base: int
    destination_base: int
    sequence_end: int


class Stored(NamedTuple):
    """One batch of the destination's log. ``records``: source offsets; without any, it is another producer's.
    ``kept``: places of the records that the cleaner has left. ``link``: whose it is, of several."""

    base: int
    sequence: int
    records: tuple[int, ...]
    kept: tuple[int, ...] = (0,)
    link: int = 0

    @property
    def end(self) -> int:
        return self.base + max(1, len(self.records))

    def is_of(self, link: int) -> bool:
        return bool(self.records) and self.link == link


class Instance(NamedTuple):
    """One instance of the link. Phases: lost, found (the destination was asked), running, promised (waits for the map),
    ready, sent."""

    phase: str = "lost"
    sequence: int = 0
    position: int = 0
    shift: int = 0
    last_offset: int = -1
    batch: tuple[int, ...] = ()
    base: int = -1
    log_start: int = -1
    """Of the copy when its leader was asked; -1: its log was searched since."""
    located: bool = False
    """``shift`` is what the log or an acknowledgement has shown."""


class Link(NamedTuple):
    """``known``: the last sequence that the leader knows. ``history``: (destination offset, source offset) of all that
    was ever appended and not taken back, deleted ones included."""

    known: int | None = None
    entries: tuple[Entry, ...] = (Entry(0, 0, 0, 0),)
    instances: tuple[Instance, ...] = (Instance(),)
    history: tuple[tuple[int, int], ...] = ()


class State(NamedTuple):
    log: tuple[Stored, ...] = ()
    start: int = 0
    end: int = 0
    watermark: int = 0
    links: tuple[Link, ...] = (Link(instances=(Instance(), Instance())),)
    left: Limits = Limits()

    def having(self, number: int, link: Link) -> "State":
        """With that link instead of the one of this number."""
        return self._replace(links=(*self.links[:number], link, *self.links[number + 1 :]))


class Violation(Exception):
    """Records were skipped or doubled, and an instance goes on without a word."""


class Result(NamedTuple):
    states: int
    depth: int
    trace: tuple[str, ...] | None
    """The actions that lead to the violation, the shortest ones; None if there is none."""


def explore(on_foreign: OnForeign, limits: Limits, most_states: int, links: int = 1) -> Result:
    """Visit every state that can be reached, nearest first, up to ``most_states``.

    Args:
        links: one, with two instances, or two, with one each.
    """
    first = State(left=limits) if links == 1 else State(left=limits, links=(Link(),) * links)
    parents: dict[State, tuple[State, str] | None] = {first: None}
    waiting, depth = deque([(first, 0)]), 0
    while waiting and len(parents) < most_states:
        state, depth = waiting.popleft()
        for action, following in _actions(state, on_foreign):
            if isinstance(following, Violation):
                return Result(len(parents), depth + 1, (*_trace(parents, state), f"{action}: {following}"))
            if following not in parents:
                parents[following] = state, action
                waiting.append((following, depth + 1))
    return Result(len(parents), depth, None)


def _trace(parents: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    actions: list[str] = []
    while (parent := parents[state]) is not None:
        state, action = parent
        actions.append(action)
    return actions[::-1]


def _actions(state: State, on_foreign: OnForeign) -> Iterator[tuple[str, State | Violation]]:
    for at, link in enumerate(state.links):
        for number in range(len(link.instances)):
            if number and link.instances[0] == link.instances[1]:
                break  # both may do the same
            for action, following in _of_instance(state, at, number, on_foreign):
                yield f"{action} (instance {number + 1} of link {at + 1})", following
    yield from _of_brokers(state)


def _of_instance(  # noqa: C901
    state: State, at: int, number: int, on_foreign: OnForeign
) -> Iterator[tuple[str, State | Violation]]:
    link, left = state.links[at], state.left
    me = link.instances[number]

    def become(changed: Instance, world: State = state) -> State:
        instances = list(world.links[at].instances)
        instances[number] = changed
        return world.having(at, world.links[at]._replace(instances=tuple(sorted(instances))))

    if me.phase != "lost" and left.crashes:
        yield "crash", become(Instance(), state._replace(left=left._replace(crashes=left.crashes - 1)))
    if me.phase == "lost":
        found = _ask(state, at, on_foreign)
        if found is not None:
            asked = Instance("found", found.sequence, last_offset=found.last_offset, log_start=state.start)
            yield f"ask: next is record {found.sequence}", become(asked)
    elif me.phase == "found":
        if _is_missing(state, at, me, on_foreign):
            found = _search(state, at)
            if found is not None:
                searched = Instance("found", found.sequence, last_offset=found.last_offset)
                yield f"search the log: next is record {found.sequence}", become(searched)
        elif (placed := _place(state, at, me, on_foreign)) is not None:
            yield f"go on at source offset {placed.position}", become(placed)
    elif me.phase == "running":
        for count in (1, 2):
            batch = tuple(offset for offset in SOURCE if offset >= me.position)[:count]
            if len(batch) < count or batch[-1] - batch[0] >= count:
                continue  # nothing is there, or a gap divides them
            gap = batch[0] != me.position
            yield f"fetch {batch}", become(me._replace(phase="promised" if gap else "ready", batch=batch))
        entry = covering(_runs(link.entries), me.sequence)
        confirmed = Entry(entry.sequence_base, entry.source_base, entry.sequence_base + me.shift, me.sequence)
        behind_it = me.sequence > max(one.sequence_end for one in link.entries)
        if behind_it and source_position(_run(confirmed), me.sequence) == me.position:
            others = [one for one in link.entries if one[:3] != confirmed[:3]]
            yield "checkpoint", state.having(at, link._replace(entries=tuple(sorted([*others, confirmed]))))
    elif me.phase == "promised":
        entry = Entry(me.sequence, me.batch[0], me.sequence + me.shift, max(0, me.sequence - 1))
        others = [one for one in link.entries if one[:3] != entry[:3]]
        yield (
            "write the gap",
            become(
                me._replace(phase="ready"),
                state.having(at, link._replace(entries=tuple(sorted([*others, entry])))),
            ),
        )
        if left.failures:
            yield (
                "fail to write the gap",
                become(Instance(), state._replace(left=left._replace(failures=left.failures - 1))),
            )
    elif me.phase == "ready":
        if link.known is not None and me.sequence != link.known + 1:
            yield "send: refused", become(Instance())
        else:
            stored = Stored(state.end, me.sequence, me.batch, tuple(range(len(me.batch))), at)
            history = tuple((stored.base + place, offset) for place, offset in enumerate(me.batch))
            written = link._replace(known=me.sequence + len(me.batch) - 1, history=(*link.history, *history))
            world = state._replace(log=(*state.log, stored), end=stored.end).having(at, written)
            yield f"send {me.batch} as record {me.sequence}", become(me._replace(phase="sent", base=stored.base), world)
    elif me.phase == "sent":
        yield "lose the acknowledgement", become(Instance())
        if state.watermark >= me.base + len(me.batch):
            appended = decision.judge_append(me.base, me.sequence + me.shift, on_foreign, located=me.located)
            if appended not in ("expected", "shifted"):
                yield f"acknowledge: {appended}", become(Instance())
            else:
                sequence = me.sequence + len(me.batch)
                running = Instance("running", sequence, me.batch[-1] + 1, me.base - me.sequence, located=True)
                yield "acknowledge", _judged(become(running), link.history)


def _judged(following: State, history: tuple[tuple[int, int], ...]) -> State | Violation:
    copied = tuple(offset for _, offset in history)
    if copied != SOURCE[: len(copied)]:
        return Violation(f"the destination holds source offsets {copied}")
    return following


def _of_brokers(state: State) -> Iterator[tuple[str, State]]:
    left = state.left
    if state.watermark < state.end:
        yield "replicate", state._replace(watermark=state.end)
    yield from _expiries(state)
    if left.foreign:
        yield (
            "another producer writes",
            state._replace(
                log=(*state.log, Stored(state.end, -1, ())),
                end=state.end + 1,
                left=left._replace(foreign=left.foreign - 1),
            ),
        )
    if left.deletions and state.watermark > state.start:
        log = tuple(batch for batch in state.log if batch.end > state.watermark)
        yield (
            "all readable records are deleted",
            state._replace(log=log, start=state.watermark, left=left._replace(deletions=left.deletions - 1)),
        )
    if left.compactions:
        for at, batch in enumerate(state.log):
            if len(batch.kept) > 1 and batch.end <= state.watermark:
                log = (*state.log[:at], batch._replace(kept=batch.kept[1:]), *state.log[at + 1 :])
                yield (
                    f"compact the batch at {batch.base}",
                    state._replace(log=log, left=left._replace(compactions=left.compactions - 1)),
                )
    if left.elections and state.watermark < state.end:
        yield "a new leader lacks the tail", _cut(state, state.watermark, left._replace(elections=left.elections - 1))
    if left.unclean_elections and state.log and state.log[-1].end <= state.watermark:
        elected = left._replace(unclean_elections=left.unclean_elections - 1)
        yield "a new leader lacks the last batch", _cut(state, state.log[-1].base, elected)
    if left.unclean and state.log and state.log[-1].end <= state.watermark:
        to = state.log[-1].base
        # The same broker, back before any instance has noticed: nothing but the offset of an acknowledgement shows it.
        cut = _cut(state, to, left._replace(unclean=left.unclean - 1))
        for at, link in enumerate(state.links):
            instances = [Instance() if one.phase == "sent" and one.base >= to else one for one in link.instances]
            cut = cut.having(at, cut.links[at]._replace(instances=tuple(sorted(instances))))
        yield "the leader lost its last batch", cut


def _expiries(state: State) -> Iterator[tuple[str, State]]:
    left = state.left
    for at, link in enumerate(state.links):
        if (
            left.expiries
            and link.known is not None
            and not any(one.batch and one.phase != "sent" for one in link.instances)
        ):
            current = len(link.history)
            instances = tuple(
                sorted(one if one.sequence + len(one.batch) == current else Instance() for one in link.instances)
            )
            expired = state.having(at, link._replace(known=None, instances=instances))
            yield "the producer's state expires", expired._replace(left=left._replace(expiries=left.expiries - 1))


def _cut(state: State, to: int, left: Limits) -> State:
    log = tuple(batch for batch in state.log if batch.end <= to)
    links = []
    for link in state.links:
        history = tuple(one for one in link.history if one[0] < to)
        known = len(history) - 1 if link.known is not None and history else None
        links.append(Link(known, link.entries, tuple(Instance() for _ in link.instances), history))
    return state._replace(log=log, end=to, watermark=min(to, state.watermark), links=tuple(links), left=left)


def _ask(state: State, at: int, on_foreign: OnForeign) -> Found | None:
    """None: the partition waits, and says why."""
    link = state.links[at]
    runs = _runs(link.entries)
    told = LogState(state.end, link.known, state.end, state.watermark, state.start)
    outcome: Found | Scan | Refused | Unproven = decision.from_leader(runs, told, on_foreign)
    if decision.needs_replicas(outcome, on_foreign) and not decision.is_replicated(state.end, state.watermark):
        return None
    if isinstance(outcome, Scan):
        tail = _tail(state, at, max(outcome.start, state.start))
        outcome = decision.from_scan(runs, state.end, outcome, tail, on_foreign, compacted=False)
    return outcome if isinstance(outcome, Found) else None


def _is_missing(state: State, at: int, me: Instance, on_foreign: OnForeign) -> bool:
    """The last record must be in the copy, and is not: see Placement."""
    begun = [run for run in _runs(state.links[at].entries) if run.sequence_base < me.sequence]
    if me.log_start < 0 or me.last_offset >= 0 or not begun:
        return False
    expected = destination_offset(covering(begun, me.sequence - 1), me.sequence - 1)
    if not decision.is_missing(expected, me.log_start, on_foreign, compacted=False):
        return False
    wanted = wire_sequence(me.sequence - 1)
    found = any(
        batch.is_of(at) and batch.sequence <= wanted < batch.sequence + len(batch.records) and batch.end > expected
        for batch in state.log
    )
    return expected < state.watermark and not found


def _search(state: State, at: int) -> Found | None:
    if not decision.is_replicated(state.end, state.watermark):
        return None
    runs = _runs(state.links[at].entries)
    tail = _tail(state, at, max(decision.least_offset(runs), state.start))
    outcome = decision.from_whole_log(runs, state.end, tail, compacted=False)
    return outcome if isinstance(outcome, Found) else None


def _tail(state: State, at: int, start: int) -> Tail:
    tail = Tail(start)
    for batch in state.log:
        if start < batch.end <= state.watermark:
            if batch.is_of(at):
                last = decision.last_sequence_of(_header(batch))
                tail = tail.joined(Tail(batch.base, last, batch.end - 1, first_sequence=batch.sequence))
            else:
                tail = tail._replace(foreign=batch.base)
    return tail


def _place(state: State, link: int, me: Instance, on_foreign: OnForeign) -> Instance | None:
    """As the coordinator does: read both sides' last record, and compare. None: not proven, and it says so."""
    runs, sequence = _runs(state.links[link].entries), me.sequence
    shift = destination_offset(covering(runs, sequence), sequence) - sequence
    position = places(runs, sequence)[0]
    running = Instance("running", sequence, position, shift)
    begun = [run for run in runs if run.sequence_base < sequence]
    if not begun:
        return running
    at = me.last_offset if me.last_offset >= 0 else destination_offset(covering(begun, sequence - 1), sequence - 1)
    if at >= state.watermark:
        return None  # the destination does not show the record yet: it is asked again
    copied, offset = _copied(state, link, wire_sequence(sequence - 1))
    if offset >= 0 and on_foreign != "halt":
        running = running._replace(shift=offset + 1 - sequence, located=True)
    others = any(batch.base <= at < batch.end and not batch.is_of(link) for batch in state.log)
    behind, different = candidates(begun, sequence), others and (on_foreign == "halt" or me.last_offset >= 0)
    for one in behind if copied is not None else ():
        if one - 1 == copied:
            return running._replace(position=position if one == behind[0] else one)
        different |= one - 1 in SOURCE
    if not different and decision.map_is_enough(runs, sequence, len(behind), compacted=False):
        return running
    return None


def _copied(state: State, link: int, sequence: int) -> tuple[int | None, int]:
    """The record's source offset, None if it is not there, and its destination offset."""
    for batch in state.log:
        place = sequence - batch.sequence
        if batch.is_of(link) and 0 <= place < len(batch.records) and batch.end <= state.watermark:
            return batch.records[place] if place in batch.kept else None, batch.base + place
    return None, -1


def _header(batch: Stored) -> Batch:
    delta = len(batch.records) - 1
    return Batch(batch.base, 0, -1, 2, 0, 0, delta, 0, 0, 9, 0, batch.sequence, len(batch.kept), memoryview(b""))


@cache
def _runs(entries: tuple[Entry, ...]) -> tuple[OffsetMapping, ...]:
    return tuple(_run(entry) for entry in entries)


@cache
def _run(entry: Entry) -> OffsetMapping:
    return OffsetMapping(
        topic="t",
        partition=0,
        destination="t",
        source_id="s",
        destination_id="d",
        checkpoint_at_ms=0,
        **entry._asdict(),
    )
