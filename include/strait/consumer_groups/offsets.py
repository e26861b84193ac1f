"""Committed offsets of any client, translated between a link's clusters: ``Offsets.of(path, "a-to-b")``.

offsets = Offsets.of(Path("links.yaml"), "a-to-b")
offsets.to_destination([(TopicPartition("orders", 3), 1_200)])
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from strait.config.route_names import is_route, place_of, topic_of
from strait.config.validation import did_you_mean
from strait.consumer_groups.translating import Known, lowest_of_routes, pending, translation, untouched_routes
from strait.errors import ConfigError, OffsetsPending
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.state.link_handle import ConfiguredLink, LinkHandle, Side
from strait.state.planned_pairs import replaced_topics, runs_about
from strait.state.reader import StateReader
from strait.state.report_records import PartitionReport
from strait.state.schema import OffsetMapping, Plan, PlannedTopic, finished_ends
from strait.state.signing import Proof
from strait.state.translation import Translation, Translator
from strait.state.view import Kind

_NOTHING: Mapping[TopicPartition, int] = {}
_KINDS: tuple[Kind, ...] = ("plan", "reports", "map")
_EVERYTHING = 1 << 62
_Last = tuple[Sequence[OffsetMapping], PlannedTopic, tuple[int, int] | None]


class Offsets:
    """Translates by a link's offset map. Each call reads the map again; as a context manager, only its new entries,
    over connections that it keeps.

    Raises (every method):
        ConfigError: the link does not replicate the topic.
        ClusterUnavailable, NotAuthorized, StateError: the map or the logs' ends cannot be read.
    """

    def __init__(self, link: LinkHandle) -> None:
        self._link = link
        self._admins: dict[Side, Admin] = {}
        self._reader: StateReader | None = None
        self._keeps = False
        self._last: dict[TopicPartition, _Last] = {}

    def __enter__(self) -> Self:
        self._keeps = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keeps = False
        self._admins.clear()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    @classmethod
    def of(cls, path: Path, link: str) -> "Offsets":
        """Return the translator for a link in a links file. Raises ConfigError."""
        return cls(ConfiguredLink.load(path, link))

    def to_destination(self, committed: Iterable[tuple[TopicPartition, int]]) -> list[Translation]:
        """Return the destination's offset for each committed offset of a source partition, in the order given; of a topic
        that is divided, one for each route."""
        return self._translate(committed, reverse=False)

    def replicated(self, ends: Iterable[tuple[TopicPartition, int]]) -> list[Translation]:
        """Return `to_destination` of source offsets up to which slots have reported everything as replicated.

        A result without an offset is final: the rebuilt map does not have it, or there are no replicated records.

        Raises (besides):
            OffsetsPending: a report or a log end is missing; a later call has it.
        """
        found = self._translated(ends, reverse=False)
        for one, known in found:
            if why := pending(one, known):
                place = TopicPartition(one.topic, one.partition)
                cluster = self._link.destination.name
                raise OffsetsPending(cluster, f"translating offset {one.offset} of {place} of the source: {why}")
        return [one for one, _ in found]

    def to_source(self, committed: Iterable[tuple[TopicPartition, int]]) -> list[Translation]:
        """Return the source's offset for each committed offset of a destination partition, in the order given."""
        return self._translate(committed, reverse=True)

    def back_to_source(self, group: str) -> list[Translation]:
        """Return the source's offset for each offset that a group has committed on the destination. Of a topic that is divided,
        the lowest of its routes: the group would skip records of one of them otherwise. Of a route on which it has committed
        nothing, it has consumed nothing.

        Raises (besides): ConfigError if it has committed none for a topic of this link.
        """
        committed, sources = self.committed(group, on_destination=True), {c: t for t, c in self.topics().items()}
        found = self.to_source(committed.items())
        untouched = self.to_source((place, 0) for place in untouched_routes(committed, sources))
        none = "the group has committed no offset there; the result is that of its first record"
        found += [replace(one, detail="; ".join(filter(None, (none, one.detail)))) for one in untouched]
        return lowest_of_routes(found, sources)

    def topics(self) -> dict[str, str]:
        """Return the topics that the link replicates: name on the source -> name on the destination."""
        return {topic.source: topic.destination for plan in self.plans().values() for topic in plan.topics}

    def plans(self) -> dict[str, Plan]:
        """Return task group -> its current plan."""
        return {group: plan for group, (plan, _) in self.plans_with_proofs().items()}

    def plans_with_proofs(self) -> dict[str, tuple[Plan, Proof]]:
        """Return task group -> its current plan, and whether it is proven by the key in the destination's properties."""
        with self._state("plan") as state:
            return {group: (plan, state.proofs[group]) for group, plan in state.plans.items()}

    def last_records(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return source partition -> source offset and destination offset of the last of its records that a checkpoint
        of the map has confirmed. Partitions for which the map has none are omitted."""
        with self._state("plan", "map") as state:
            topics = {topic.source: topic for topic in _planned(state)}
            places = {TopicPartition(*place): runs for place, runs in state.runs.items() if place[0] in topics}
        found = {}
        for place, runs in places.items():
            known = self._last.get(place)
            if known is None or known[0] is not runs or known[1] is not topics[place.topic]:
                known = (
                    runs,
                    topics[place.topic],
                    _last_record(runs_about(runs, topics[place.topic]), topics[place.topic]),
                )
            found[place] = known
        self._last = found
        return {place: pair for place, (_, _, pair) in found.items() if pair is not None}

    def committed(self, group: str, *, on_destination: bool = False) -> dict[TopicPartition, int]:
        """Return the offsets that a consumer group has committed on one side for topics of this link. Raises
        ConfigError if there are none."""
        side: Side = "destination" if on_destination else "source"
        cluster = (self._link.destination if on_destination else self._link.source).name
        with self._state("plan") as state:
            topics = _planned(state)
        names = {topic.destination if on_destination else topic_of(topic.source) for topic in topics}
        found = {place: offset for place, offset in self._admin(side).committed(group).items() if place.topic in names}
        if not found:
            raise ConfigError(
                f"link {self._link.name}",
                [f"group {group!r} has no committed offset on {cluster} for a topic of the link"],
            )
        return dict(sorted(found.items()))

    def _translate(self, committed: Iterable[tuple[TopicPartition, int]], *, reverse: bool) -> list[Translation]:
        return [found for found, _ in self._translated(committed, reverse=reverse)]

    def _translated(
        self, committed: Iterable[tuple[TopicPartition, int]], *, reverse: bool
    ) -> list[tuple[Translation, Known]]:
        committed = list(committed)
        known = self.known({place for place, _ in committed}, reverse=reverse)
        routes: dict[TopicPartition, list[TopicPartition]] = {}
        for name in sorted(known):
            routes.setdefault(place_of(name), []).append(name)
        return [
            (translation(name, offset, known[name], reverse=reverse), known[name])
            for place, offset in committed
            for name in ([place] if place in known else routes[place])
        ]

    def known(
        self, places: Iterable[TopicPartition], *, reverse: bool, written: Mapping[TopicPartition, int] = _NOTHING
    ) -> dict[TopicPartition, "Known"]:
        """Return the content of the map and the reports on partitions of the source, or with ``reverse`` of the
        destination. A partition of a topic that is divided is returned as each of its routes.

        The destination's log ends are queried before the map is read: map entries are acknowledged before the records
        that they describe are sent, so the map then covers each of these. ``written``: number of records of the link
        that are known to be in the partition, at least.
        """
        places = list(places)
        with self._state("plan", "reports") as state:
            reports = _newest(state)
            planned = [(plan.producer_id, topic) for plan in state.plans.values() for topic in plan.topics]
            over = finished_ends(state.plans.values())
        by_name = {topic.destination if reverse else topic.source: (producer, topic) for producer, topic in planned}
        places = places if reverse else [name for place in places for name in _routes(place, by_name)]
        topics = {place: _known(self._link.name, by_name, place.topic) for place in places}
        copies = {place: TopicPartition(topic.destination, place.partition) for place, (_, topic) in topics.items()}
        sources = {place: TopicPartition(topic.source, place.partition) for place, (_, topic) in topics.items()}
        source, destination = self._admin("source"), self._admin("destination")
        ends = destination.offsets_each(set(copies.values()), "end")
        targets, admin = (sources, source) if reverse else (copies, destination)
        starts = admin.offsets_each(set(targets.values()), "earliest")
        gone = replaced_topics({topic.source: topic for _, topic in topics.values()}, source, destination)
        doubts = {place: gone[topic.source] for place, (_, topic) in topics.items() if topic.source in gone} | {
            place: failure.message
            for place in topics
            for failure in (ends.failures.get(copies[place]), starts.failures.get(targets[place]))
            if failure is not None
        }
        with self._state("map") as state:
            runs = {
                place: runs_about(state.runs.get(sources[place], ()), topic) for place, (_, topic) in topics.items()
            }
        return {
            place: Known(
                self._link.name,
                producer,
                topic,
                targets[place],
                starts.results.get(targets[place], 0),
                reports.get(sources[place]),
                _translator(
                    runs[place],
                    topic,
                    ends.results.get(copies[place], -1),
                    reports.get(sources[place]),
                    written.get(place, 0),
                    over=sources[place] in over,
                )
                if runs[place]
                else None,
                _shared(topic, runs[place]),
                doubts.get(place, ""),
                over.get(sources[place], -1),
            )
            for place, (producer, topic) in topics.items()
        }

    def _admin(self, side: Side) -> Admin:
        admin = self._admins.get(side) or self._link.admin(side)
        if self._keeps:
            self._admins[side] = admin
        return admin

    @contextmanager
    def _state(self, *follow: Kind) -> Iterator[StateReader]:
        if self._keeps:
            self._reader = self._reader or self._link.state(*_KINDS)
            self._reader.catch_up()
            yield self._reader
            return
        with self._link.state(*follow) as state:
            state.catch_up()
            yield state


def _planned(state: StateReader) -> list[PlannedTopic]:
    return [topic for plan in state.plans.values() for topic in plan.topics]


def _newest(state: StateReader) -> dict[TopicPartition, PartitionReport]:
    """Return the newest report on each partition, of slots that follow the current plan: an older one may describe a
    topic that was recreated since."""
    found: dict[TopicPartition, tuple[int, PartitionReport]] = {}
    for (group, _), parts in state.reports.items():
        version = state.plans[group].version if group in state.plans else 0
        for report in parts:
            for row in report.partitions if report.plan_version >= version else ():
                place = TopicPartition(row.topic, row.partition)
                if place not in found or found[place][0] < report.at_ms:
                    found[place] = report.at_ms, row
    return {place: row for place, (_, row) in found.items()}


def _translator(
    runs: Sequence[OffsetMapping],
    topic: PlannedTopic,
    end: int,
    report: PartitionReport | None,
    known: int,
    *,
    over: bool,
) -> Translator:
    """Return a partition's translator. Records in the log beyond the last report and the last checkpoint may come from
    any producer, so they do not count. Conversely, a log that ends sooner has lost records.

    Args:
        over: its copy has ended; so nothing that follows is to be copied.
    """
    shared = _shared(topic, runs)
    written = 0 if report is None else max(0, report.written)
    if not shared and end >= 0:
        written = min(written, end - runs[0].destination_base + runs[0].sequence_base)
    return Translator(
        runs,
        max(written, known),
        _EVERYTHING if over else -1 if report is None else report.position,
        shared=shared,
        compacted=topic.policy.source_compacted,
        log_end=end,
    )


def _shared(topic: PlannedTopic, runs: Sequence[OffsetMapping]) -> bool:
    """Return whether other producers may have written to the destination."""
    shifts = {run.destination_base - run.sequence_base for run in runs}
    return topic.policy.on_foreign != "halt" or any(run.shared for run in runs) or len(shifts) > 1


def _last_record(runs: Sequence[OffsetMapping], topic: PlannedTopic) -> tuple[int, int] | None:
    if not runs:
        return None
    shared = _shared(topic, runs)
    return Translator(runs, shared=shared, compacted=topic.policy.source_compacted).last_record()


def _routes(place: TopicPartition, names: Collection[str]) -> list[TopicPartition]:
    """Return the partition under its names in plans: those of its routes if its topic is divided."""
    if place.topic in names or is_route(place.topic):
        return [place]
    return [place._replace(topic=name) for name in names if topic_of(name) == place.topic] or [place]


def _known(link: str, topics: "Mapping[str, tuple[int, PlannedTopic]]", name: str) -> tuple[int, PlannedTopic]:
    if name not in topics:
        raise ConfigError(f"link {link}", [f"its plan has no topic {name!r}{did_you_mean(name, topics)}"])
    return topics[name]
