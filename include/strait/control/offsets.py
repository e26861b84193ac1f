"""Committed offsets of any client, translated between a link's clusters: ``Offsets.of(path, "a-to-b")``.

offsets = Offsets.of(Path("links.yaml"), "a-to-b")
offsets.to_destination([(TopicPartition("orders", 3), 1_200)])
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from strait.config.links import LinksFile, load_link
from strait.config.validation import did_you_mean
from strait.errors import ConfigError
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.state.offset_map import destination_offset, sequence_at_destination
from strait.state.reader import StateReader
from strait.state.schema import OffsetMapping, PlannedTopic
from strait.state.translation import Fit, Translator


@dataclass(frozen=True, slots=True)
class Translation:
    """One offset. ``to_offset`` None: nothing of the partition has been replicated, so it has no counterpart."""

    topic: str
    partition: int
    offset: int
    to_topic: str
    to_offset: int | None
    fit: str
    detail: str = ""

    def as_data(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


_DETAILS = {
    Fit.EXACT: "",
    Fit.AHEAD: "not replicated up to there yet; the result is the end of the replicated records",
    Fit.BEFORE_START: "older than the first replicated record; the result is that record",
    Fit.INEXACT: "the offset map is ambiguous here until the next checkpoint; some records may be read again, none skipped",
}
NOT_REPLICATED = "not_replicated"


class Offsets:
    """The offset map of one link as it is now.

    Raises (every method):
        ConfigError: the link replicates no such topic.
        ClusterUnavailable, NotAuthorized, StateError: the map or the destination's log ends cannot be read.
    """

    def __init__(self, file: LinksFile, link: str) -> None:
        self._name = link
        self._link = file.links[link]
        self._source_properties = file.clusters[self._link.source]
        self._properties = file.clusters[self._link.destination]
        with StateReader(self._properties, self._link.destination, link, follow=("plan", "map", "reports")) as state:
            state.catch_up()
            self._runs = state.runs
            self._topics = {topic.source: topic for plan in state.plans.values() for topic in plan.topics}
            self._reports = {
                TopicPartition(row.topic, row.partition): row
                for parts in state.reports.values()
                for report in sorted(parts, key=lambda report: report.at_ms)
                for row in report.partitions
            }

    @classmethod
    def of(cls, path: Path, link: str) -> "Offsets":
        """For a link in a links file. Raises ConfigError."""
        return cls(load_link(path, link), link)

    def to_destination(self, committed: Iterable[tuple[TopicPartition, int]]) -> list[Translation]:
        """The destination's offset for each committed offset of a source partition, in the order given."""
        committed = list(committed)
        places = dict.fromkeys(place for place, _ in committed)
        topics = {place: _known(self._name, self._topics, place.topic) for place in places}
        translators = self._translators(topics)
        return [
            _translation(place, offset, topics[place].destination, translators.get(place), reverse=False)
            for place, offset in committed
        ]

    def to_source(self, committed: Iterable[tuple[TopicPartition, int]]) -> list[Translation]:
        """The source's offset for each committed offset of a destination partition, in the order given."""
        committed = list(committed)
        by_name = {topic.destination: topic for topic in self._topics.values()}
        topics = {place: _known(self._name, by_name, place.topic) for place, _ in committed}
        sources = {place: TopicPartition(topic.source, place.partition) for place, topic in topics.items()}
        translators = self._translators({sources[place]: topic for place, topic in topics.items()})
        return [
            _translation(place, offset, topics[place].source, translators.get(sources[place]), reverse=True)
            for place, offset in committed
        ]

    def committed(self, group: str, *, on_destination: bool = False) -> dict[TopicPartition, int]:
        """What a consumer group has committed on one side for topics of this link. Raises ConfigError where that is
        nothing."""
        cluster = self._link.destination if on_destination else self._link.source
        properties = self._properties if on_destination else self._source_properties
        names = {topic.destination if on_destination else topic.source for topic in self._topics.values()}
        found = {
            place: offset
            for place, offset in Admin(properties, cluster).committed(group).items()
            if place.topic in names
        }
        if not found:
            raise ConfigError(
                f"link {self._name}", [f"group {group!r} has no committed offset on {cluster} for a topic of the link"]
            )
        return dict(sorted(found.items()))

    def _translators(self, places: Mapping[TopicPartition, PlannedTopic]) -> dict[TopicPartition, Translator]:
        """Of the partitions that have been replicated into the topics as they are now."""
        runs = {place: _of(self._runs.get(place, ()), topic) for place, topic in places.items()}
        own = {
            TopicPartition(topic.destination, place.partition): place
            for place, topic in places.items()
            if runs[place] and topic.policy.on_foreign == "halt"
        }
        ends = Admin(self._properties, self._link.destination).offsets_each(own, "end").results if own else {}
        written = {own[target]: _written_by(runs[own[target]], end) for target, end in ends.items()}
        return {
            place: Translator(
                of_place,
                max(written.get(place, 0), self._reports[place].written if place in self._reports else 0),
                self._reports[place].position if place in self._reports else -1,
                shared=places[place].policy.on_foreign == "expect",
            )
            for place, of_place in runs.items()
            if of_place
        }


def _of(runs: Iterable[OffsetMapping], topic: PlannedTopic) -> list[OffsetMapping]:
    ids = topic.destination, topic.destination_id, topic.source_id
    return [run for run in runs if (run.destination, run.destination_id, run.source_id) == ids]


def _written_by(runs: Sequence[OffsetMapping], end: int) -> int:
    """Records of the link in a log that only it writes to, by its end: exact also after a crash, when neither a
    checkpoint nor a report says so."""
    begun = [run for run in runs if run.destination_base <= end]
    if not begun:
        return 0
    last = max(begun, key=lambda run: (run.sequence_base, run.destination_base))
    written = sequence_at_destination(last, end)
    return written if destination_offset(last, written) == end else 0


def _known(link: str, topics: Mapping[str, PlannedTopic], name: str) -> PlannedTopic:
    if name not in topics:
        raise ConfigError(f"link {link}", [f"its plan has no topic {name!r}{did_you_mean(name, topics)}"])
    return topics[name]


def _translation(
    place: TopicPartition, offset: int, target: str, translator: Translator | None, *, reverse: bool
) -> Translation:
    if translator is None:
        detail = "no record of the partition has been replicated into the present topic"
        return Translation(*place, offset, target, None, NOT_REPLICATED, detail)
    found = translator.to_source(offset) if reverse else translator.to_destination(offset)
    return Translation(*place, offset, target, found.offset, str(found.fit), _DETAILS[found.fit])
