"""Rebuilds the offset map of a link whose map topic was lost: both logs are read and matched, and the entries written.

A partition is rebuilt only if the source offset of its last record is exact: the link continues there. Earlier records
may stay unknown; the entries mark them, and offsets among them are then not translated. A compacted source may have lost
that record: the link then continues after the newest exact one, as after a crash, and replicates all later records again.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from strait.config.validation import did_you_mean
from strait.control.map_logs import CopyLog, SourceLog, copy_log, copy_records, source_log, source_records
from strait.control.rebuilt import Rebuilt, copied_again, dropped
from strait.control.registration import writing_links
from strait.errors import ClusterError, ConfigError, CorruptBatch, PlanConflict, StateError
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs
from strait.planning.map_rebuild.continuing import from_newest_exact
from strait.planning.map_rebuild.entries import entries, first_entry, replaced
from strait.planning.map_rebuild.matching import Rules, Stretch, Unknown, joined, match_batches, match_records
from strait.planning.topics.policies import start_of
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.state.planned_pairs import replaced_topics, runs_about
from strait.state.reader import StateReader
from strait.state.registrations import producers_left_out
from strait.state.schema import Loss, OffsetMapping, Plan, PlannedTopic
from strait.state.topics import ensure_state_topics
from strait.state.view import Kind
from strait.waiting import unix_ms
from strait.wire.batch import Batch

Tell = Callable[[str], None]
_HARMLESS = {Reason.SOURCE_DATA_LOST, Reason.FOREIGN_WRITER, Reason.START_FORCED}
"""Losses after which the link, from its start offset on, has neither skipped nor repeated a record of the source."""


class _Place(NamedTuple):
    """A partition to rebuild. ``confirmed``: number of its records that the map still confirms."""

    place: TopicPartition
    topic: PlannedTopic
    producer_id: int
    confirmed: int = 0


class _Logs(NamedTuple):
    source: PartitionLogs
    destination: PartitionLogs


class MapRebuild:
    """Rebuilds the offset map of one link.

    Raises (every method): ClusterUnavailable, NotAuthorized, StateError.
    """

    def __init__(self, link: ConfiguredLink, tell: Tell = lambda _: None) -> None:
        """``tell`` is called with a line about every step of reading."""
        self._name = link.name
        self._link = link
        self._source, self._destination = link.admin("source"), link.admin("destination")
        self._tell = tell
        self._skipped: dict[str, frozenset[int]] = {"all": frozenset()}  # by `copies`

    def propose(self, topics: Collection[str] = (), *, everything: bool = False) -> list[Rebuilt]:
        """Read both logs and return the entries that can be written for each partition. Changes nothing.

        Args:
            topics: only these source topics; none: all of the link's plans.
            everything: also partitions of which the map has entries.

        Raises:
            ConfigError: the link is not stopped, or replicates no such topic.
        """
        with self._state("plan", "map", "losses") as state:
            plans, runs, losses = list(state.plans.values()), dict(state.runs), state.losses
        self._require_stopped(plans)
        places = _places(plans)
        names = {one.topic.source for one in places}
        for topic in topics:
            if topic not in names:
                raise ConfigError(
                    f"link {self._name}", [f"its plan has no topic {topic!r}{did_you_mean(topic, names)}"]
                )
        chosen = [one for one in places if not topics or one.topic.source in topics]
        doubts = replaced_topics({one.topic.source: one.topic for one in chosen}, self._source, self._destination)
        compacted = self._compacted(chosen)
        found = []
        with ExitStack() as connections:
            logs = _Logs(
                *(connections.enter_context(PartitionLogs(*end)) for end in (self._link.source, self._link.destination))
            )
            for one in chosen:
                copy = one.topic.destination
                if one.topic.source in doubts:
                    found.append(Rebuilt(*one.place, copy, "refused", doubts[one.topic.source]))
                    continue
                if one.topic.policy.transform is not None:
                    detail = "its records are transformed on the way, so both logs cannot be compared"
                    found.append(Rebuilt(*one.place, copy, "refused", detail))
                    continue
                known = runs_about(runs.get(one.place, ()), one.topic)
                if known and not everything:
                    found.append(Rebuilt(*one.place, copy, "kept", "the map has entries"))
                else:
                    of_place = [loss for loss in losses if (loss.topic, loss.partition) == one.place]
                    at = one._replace(confirmed=max((run.sequence_end for run in known), default=0))
                    found.append(self._look(at, logs, one.topic.source in compacted, of_place))
        return found

    def carry_out(self, found: Sequence[Rebuilt]) -> list[Rebuilt]:
        """Write the entries of all ready partitions, in one transaction, in place of those that the map has of them.

        Raises:
            ConfigError: the link is not stopped any more.
            PlanConflict: a destination topic has grown since it was read; nothing was written.
        """
        ready = [one for one in found if one.verdict == "ready"]
        if not ready:
            return list(found)
        factor = self._link.settings.replication_factor
        ensure_state_topics(self._destination, self._name, None if factor == "source" else factor)
        with self._state() as state, self._link.publisher().exclusive(state) as publication:
            self._require_stopped(state.plans.values())
            ends = self._destination.offsets([TopicPartition(one.destination, one.partition) for one in ready], "end")
            for one in ready:
                end = ends[TopicPartition(one.destination, one.partition)]
                if end != one.end:
                    raise PlanConflict(
                        f"link {self._name}: rebuilding the offset map: {one.destination}-{one.partition} has grown "
                        f"from offset {one.end} to {end} since it was read; nothing was written",
                        hint=f"run `strait wait {self._name} --for stopped`, then rebuild again",
                    )
            written = [run for one in ready for run in one.entries]
            before = [run for one in ready for run in replaced(state.runs.get(one.place, ()), one.entries)]
            losses = [copied_again(self._name, one) for one in ready if one.again]
            publication.publish((), written, losses, before)
        return [replace(one, verdict="written") if one in ready else one for one in found]

    def _require_stopped(self, plans: Iterable[Plan]) -> None:
        plans = list(plans)
        if not plans:
            raise StateError(
                f"link {self._name}: it has no plan, so its producer ID is unknown",
                hint="without its plan topic a link cannot continue; use a new link name and new destination topics",
            )
        if not all(plan.stopped for plan in plans):
            raise ConfigError(
                f"link {self._name}",
                ["is not stopped; its applications would continue with the map that they have in memory"],
                hint=f"run `strait stop {self._name}` and `strait wait {self._name} --for stopped`",
            )

    def _look(self, one: _Place, logs: _Logs, compacted: bool, losses: Sequence[Loss]) -> Rebuilt:
        copy = TopicPartition(one.topic.destination, one.place.partition)
        try:
            there = copy_log(logs.destination, copy, one.producer_id, self._progress(self._destination, copy))
            here = source_log(logs.source, one.place, self._wanted(one.topic), self._progress(self._source, one.place))
            if not there.batches:
                return self._begun(one, here, there)
            rules = Rules(
                dense=not compacted,
                complete=here.start == 0,
                timed=not one.topic.policy.destination_append_time,
                lossless=all(loss.action == "halted" or loss.cause in _HARMLESS for loss in losses),
            )
            found = self._matched(one, logs, here, there, rules)
            notes = "; ".join(filter(None, (found.detail, dropped(found, losses))))
            return replace(found, detail=notes) if found.verdict == "ready" else found
        except (ClusterError, CorruptBatch) as error:
            return Rebuilt(*one.place, copy.topic, "refused", error.message)

    def _matched(self, one: _Place, logs: _Logs, here: SourceLog, there: CopyLog, rules: Rules) -> Rebuilt:
        copy = TopicPartition(one.topic.destination, one.place.partition)
        with_time = rules.timed
        found, undecided = match_batches(here.batches, there.batches, rules)
        unknown: list[Unknown] = []
        for at in undecided:
            self._tell(f"{copy}: comparing records at offsets {at.copy_from:,} to {at.copy_to - 1:,}")
            ours = copy_records(logs.destination, copy, at, there.batches, one.producer_id, with_time=with_time)
            theirs = source_records(logs.source, one.place, at, self._wanted(one.topic), with_time=with_time)
            more, left = match_records(theirs, ours, at, rules)
            found += more
            unknown += left
        exact = joined(sorted(found))
        last = there.batches[-1]
        if not exact or exact[-1].copy + exact[-1].records != last.end:
            if one.topic.policy.source_compacted:
                return self._from_newest_exact(one, exact, unknown, here, there)
            why = max(unknown, key=attrgetter("number")).reason if unknown else "it is in no batch"
            detail = f"the source offset of the last record, {copy} offset {last.end - 1}, is unknown: {why}"
            return Rebuilt(*one.place, copy.topic, "refused", detail, unknown=tuple(unknown))
        written, left_out = entries(_like(one), exact, source_epoch=_epoch(here, exact[-1]))
        unknown = sorted([*unknown, *left_out])
        return Rebuilt(
            *one.place,
            copy.topic,
            "ready",
            position=exact[-1].source + exact[-1].records,
            records=sum(stretch.records for stretch in exact) - sum(part.records for part in left_out),
            unknown=tuple(unknown),
            entries=tuple(written),
            end=there.end,
        )

    def _from_newest_exact(
        self, one: _Place, exact: Sequence[Stretch], unknown: Sequence[Unknown], here: SourceLog, there: CopyLog
    ) -> Rebuilt:
        copy = one.topic.destination
        whole = start_of(self._link.settings, one.topic.source) == "earliest"
        found = from_newest_exact(_like(one), exact, there.batches, here.start, whole=whole, confirmed=one.confirmed)
        if isinstance(found, str):
            return Rebuilt(*one.place, copy, "refused", found, unknown=tuple(unknown))
        detail = (
            f"the source has compacted the last record away; those from offset {found.position} on are replicated again"
        )
        return Rebuilt(
            *one.place,
            copy,
            "ready",
            detail,
            position=found.position,
            records=sum(stretch.records for stretch in exact) - sum(part.records for part in found.left_out),
            unknown=tuple(sorted([*unknown, *found.left_out])),
            again=found.again,
            entries=tuple(found.entries),
            end=there.end,
        )

    def _begun(self, one: _Place, here: SourceLog, there: CopyLog) -> Rebuilt:
        """Return the result for a partition without records of the link on the destination. If the destination log
        never held any record, and the source has none to copy or the rule starts at `earliest`, the link starts at the
        source's start offset."""
        copy = one.topic.destination
        if there.end:
            detail = f"{copy}-{one.place.partition} holds no record of this link, so its position is unknown"
            return Rebuilt(*one.place, copy, "refused", detail)
        if here.batches and start_of(self._link.settings, one.topic.source) != "earliest":
            detail = "nothing was replicated yet, and the start offset is unknown"
            return Rebuilt(*one.place, copy, "refused", detail)
        begin = first_entry(_like(one), here.start, 0)
        return Rebuilt(*one.place, copy, "ready", position=here.start, entries=(begin,), end=0)

    def _wanted(self, topic: PlannedTopic) -> Callable[[Batch], bool]:
        """Return whether the link copies a batch of the source, as a function: it may skip those that links wrote."""
        copies = topic.policy.copies
        if copies not in self._skipped:
            self._skipped[copies] = self._skipped_by(copies)
        skipped = self._skipped[copies]
        return lambda batch: batch.producer_id not in skipped

    def _skipped_by(self, copies: str) -> frozenset[int]:
        writing = writing_links(*self._link.source)
        return producers_left_out(copies, writing, self._source.cluster_id, self._destination.cluster_id)

    def _compacted(self, places: Collection[_Place]) -> set[str]:
        """Return the source topics that are compacted on either side."""
        topics = {one.topic for one in places}
        found = {topic.source for topic in topics if topic.policy.source_compacted}
        for end, side in ((self._source, "source"), (self._destination, "destination")):
            facts = end.observe({getattr(topic, side) for topic in topics}.__contains__, ("cleanup.policy",))
            compact = {name for name, of in facts.topics.items() if "compact" in of.configs.get("cleanup.policy", "")}
            found |= {topic.source for topic in topics if getattr(topic, side) in compact}
        return found

    def _progress(self, end: Admin, place: TopicPartition) -> Callable[[int, int], None]:
        return partial(self._tell_progress, end.cluster, place)

    def _tell_progress(self, end: str, place: TopicPartition, at: int, start: int) -> None:
        self._tell(f"{place} on {end}: read from offset {start:,} to {at:,}")

    def _state(self, *follow: Kind) -> StateReader:
        state = self._link.state(*follow)
        state.catch_up()
        return state


def _places(plans: Iterable[Plan]) -> list[_Place]:
    """Return the partitions that were started, each once: several task groups may share a topic."""
    found = {}
    for plan in plans:
        for topic in plan.topics:
            for number in set(range(len(topic.slots))) - set(topic.unbegun or ()):
                place = TopicPartition(topic.source, number)
                found[place] = _Place(place, topic, plan.producer_id)
    return [found[place] for place in sorted(found)]


def _like(one: _Place) -> OffsetMapping:
    topic = one.topic
    return OffsetMapping(
        topic=topic.source,
        partition=one.place.partition,
        destination=topic.destination,
        source_id=topic.source_id,
        destination_id=topic.destination_id,
        source_base=0,
        destination_base=0,
        sequence_base=0,
        sequence_end=0,
        shared=topic.policy.on_foreign != "halt",
        checkpoint_at_ms=unix_ms(),
    )


def _epoch(here: SourceLog, last: Stretch) -> int:
    """Return the leader epoch of the batch that holds the last record of a stretch."""
    at = bisect_right(here.batches, last.source + last.records - 1, key=attrgetter("first")) - 1
    return here.epochs[at]
