"""The offsets of consumer groups in a topic that is repaired, and their equivalents in the new one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from strait.consumer_groups.commits import MARK
from strait.consumer_groups.offsets import Offsets
from strait.consumer_groups.sync import RETENTION_MS
from strait.model import TopicPartition
from strait.net.consumer_groups import Committed, ConsumerGroups
from strait.net.error_policy import name
from strait.state.link_handle import ConfiguredLink

_IDLE = ("Empty", "Dead")


@dataclass
class _Places:
    """The new offsets of one partition. ``wanted``: number of records before an offset -> the old offsets."""

    wanted: Mapping[int, list[int]]
    found: dict[int, int]

    def see(self, number: int, offset: int) -> None:
        """Process the record with this number."""
        for old in self.wanted.get(number, ()):
            self.found[old] = offset


@dataclass
class GroupOffsets:
    """The groups that have committed offsets in a destination topic."""

    link: ConfiguredLink
    topic: str
    _offsets: dict[str, dict[TopicPartition, Committed]] = field(init=False)
    _active: set[str] = field(init=False)
    _unread: dict[str, str] = field(init=False)
    _keys: dict[TopicPartition, dict[int, tuple[bool, int]]] = field(default_factory=dict)
    _new: dict[TopicPartition, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with ConsumerGroups(*self.link.destination) as groups:
            listed = groups.listed()
            told = groups.committed(listed)
        self._active = {one for one, group in listed.items() if group.state not in _IDLE}
        self._offsets = {}
        self._unread = {one: name(code) for one, code in told.items() if isinstance(code, int)}
        for one, offsets in told.items():
            if not isinstance(offsets, int):
                here = {place: item for place, item in offsets.items() if place.topic == self.topic}
                if here:
                    self._offsets[one] = here

    def marks(self, copy: TopicPartition, copy_to: int) -> tuple[list[int], list[int]]:
        """Return the offsets whose place is wanted: of the old copy, before ``copy_to``, and of the source."""
        old = sorted({offsets[copy].offset for offsets in self._offsets.values() if copy in offsets})
        later = [offset for offset in old if offset > copy_to]
        translated = Offsets(self.link).to_source([(copy, offset) for offset in later])
        keys = {offset: (True, offset) for offset in old if offset <= copy_to}
        keys |= {
            offset: (False, found.to_offset)
            for offset, found in zip(later, translated, strict=True)
            if found.to_offset is not None
        }
        self._keys[copy] = keys
        return _those(keys.values(), is_copy=True), _those(keys.values(), is_copy=False)

    def places(self, partition: int, indexes: Mapping[tuple[bool, int], int], end: int) -> _Places:
        """Return the collector of the new offsets of one partition; ``end``: of offsets after the last record."""
        copy = TopicPartition(self.topic, partition)
        wanted: dict[int, list[int]] = {}
        for old, key in self._keys[copy].items():
            wanted.setdefault(indexes[key], []).append(old)
        self._new[copy] = dict.fromkeys(self._keys[copy], end)
        return _Places(wanted, self._new[copy])

    def commit(self, into: str) -> tuple[dict[str, int], dict[str, str]]:
        """Commit the offsets in the new topic. Return the number of each group's offsets, and of the groups that lack some,
        the remaining steps."""
        wanted: dict[str, dict[TopicPartition, Committed]] = {}
        left = {
            group: f"{why}: its offsets cannot be read; if it has some in {self.topic}, set them in {into}"
            for group, why in self._unread.items()
        }
        for group, offsets in self._offsets.items():
            places = {place: self._new.get(place, {}).get(item.offset) for place, item in offsets.items()}
            new = {
                TopicPartition(into, place.partition): Committed(at, offsets[place].metadata or MARK)
                for place, at in places.items()
                if at is not None
            }
            unknown = {place: offsets[place] for place, at in places.items() if at is None}
            if group in self._active:
                left[group] = f"it has members; stop them, then set its offsets: {_listed(new)}"
                continue
            if new:
                wanted[group] = new
            if unknown:
                left[group] = f"no record is known at {_listed(unknown)}: set the equivalents in {into}"
        with ConsumerGroups(*self.link.destination) as groups:
            codes = groups.commit(wanted, RETENTION_MS)
        for group, of_group in codes.items():
            if wrong := {name(code) for code in of_group.values() if code}:
                left[group] = f"{', '.join(sorted(wrong))}: set its offsets: {_listed(wanted[group])}"
        committed = {group: sum(not code for code in codes[group].values()) for group in wanted}
        return {group: count for group, count in committed.items() if count}, left


def _those(keys: Iterable[tuple[bool, int]], *, is_copy: bool) -> list[int]:
    return sorted({offset for of_copy, offset in keys if of_copy == is_copy})


def _listed(offsets: Mapping[TopicPartition, Committed]) -> str:
    return ", ".join(f"{place} {item.offset}" for place, item in sorted(offsets.items()))
