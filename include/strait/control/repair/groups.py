"""The offsets of consumer groups in a topic that is repaired, and their equivalents in the new one."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from strait.consumer_groups.commits import MARK
from strait.consumer_groups.offsets import Offsets
from strait.consumer_groups.sync import RETENTION_MS
from strait.consumer_groups.translating import translation
from strait.control.repair.numbers import Equivalents
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed, ConsumerGroups
from strait.net.error_policy import name
from strait.state.link_handle import ConfiguredLink

_IDLE = ("Empty", "Dead")


@dataclass(frozen=True)
class _Now:
    """The groups at one time.

    Attributes:
        offsets: group -> its offsets in the topic, of groups that have some.
        active: groups with members.
        unread: group -> why its offsets cannot be read.
    """

    offsets: Mapping[str, Mapping[TopicPartition, Committed]]
    active: frozenset[str]
    unread: Mapping[str, str]


@dataclass
class GroupOffsets:
    """The groups that have committed offsets in a destination topic.

    A repair may copy for hours, and groups continue meanwhile. So offsets and states are read when the new offsets are committed;
    before, only to raise an error of the cluster before records are copied.
    """

    link: ConfiguredLink
    topic: str
    _equivalents: dict[TopicPartition, Equivalents] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._read()

    def add(self, copy: TopicPartition, equivalents: Equivalents) -> None:
        """Add the equivalents of the offsets of one partition that was copied."""
        self._equivalents[copy] = equivalents

    def commit(self, into: str) -> tuple[dict[str, int], dict[str, str]]:
        """Commit the offsets in the new topic. Return the number of each group's offsets, and of the groups that lack some,
        the remaining steps."""
        now = self._read()
        equivalents = self._translated(
            {(place, item.offset) for of in now.offsets.values() for place, item in of.items()}
        )
        wanted: dict[str, dict[TopicPartition, Committed]] = {}
        left = {
            group: f"{why}: its offsets cannot be read; if it has some in {self.topic}, set them in {into}"
            for group, why in now.unread.items()
        }
        for group, offsets in now.offsets.items():
            places = {place: equivalents.get((place, item.offset)) for place, item in offsets.items()}
            new = {
                TopicPartition(into, place.partition): Committed(at, offsets[place].metadata or MARK)
                for place, at in places.items()
                if at is not None
            }
            unknown = {place: offsets[place] for place, at in places.items() if at is None}
            steps = []
            if group in now.active:
                steps.append(f"it has members; stop them, then set its offsets: {_listed(new)}")
            elif new:
                wanted[group] = new
            if unknown:
                steps.append(f"no record is known at {_listed(unknown)}: set the equivalents in {into}")
            if steps:
                left[group] = "; ".join(steps)
        with ConsumerGroups(*self.link.destination) as groups:
            codes = groups.commit(wanted, RETENTION_MS)
        for group, of_group in codes.items():
            if wrong := {name(code) for code in of_group.values() if code}:
                left[group] = f"{', '.join(sorted(wrong))}: set its offsets: {_listed(wanted[group])}"
        committed = {group: sum(not code for code in codes[group].values()) for group in wanted}
        return {group: count for group, count in committed.items() if count}, left

    def _read(self) -> _Now:
        with ConsumerGroups(*self.link.destination) as groups:
            listed = groups.listed()
            told = groups.committed(listed)
        offsets = {
            group: {place: item for place, item in found.items() if place.topic == self.topic}
            for group, found in told.items()
            if not isinstance(found, int)
        }
        return _Now(
            {group: found for group, found in offsets.items() if found},
            frozenset(group for group, item in listed.items() if item.state not in _IDLE),
            {group: name(code) for group, code in told.items() if isinstance(code, int)},
        )

    def _translated(self, offsets: Collection[tuple[TopicPartition, int]]) -> dict[tuple[TopicPartition, int], int]:
        """Return the equivalents of offsets of the old copy, as far as they are known."""
        known = [(copy, offset, self._equivalents[copy]) for copy, offset in offsets if copy in self._equivalents]
        found = {(copy, offset): one.of_old(offset) for copy, offset, one in known if offset <= one.copy_to}
        later = [(copy, offset, one) for copy, offset, one in known if offset > one.copy_to]
        links = Offsets(self.link).known({copy for copy, _, _ in later}, reverse=True) if later else {}
        for copy, offset, one in later:
            # The new topic has the records that the source deleted since: an offset before them is not raised.
            at = translation(copy, offset, links[copy]._replace(start=one.source_from), reverse=True)
            if at.to_offset is not None:
                found[copy, offset] = one.of_source(at.to_offset)
        return found


def _listed(offsets: Mapping[TopicPartition, Committed]) -> str:
    return ", ".join(f"{place} {item.offset}" for place, item in sorted(offsets.items()))
