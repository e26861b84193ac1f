"""Consumer groups of a link: what their committed offsets are on the destination, and writing them there once.

Observe, decide (`strait.planning.consumer_groups`), commit. The destination's offsets are read after the source's, so
that what a group that moves meanwhile has committed is seen. A commit carries its own retention and no leader epoch
(ADR 17).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strait.config.links import LinksFile
from strait.config.validation import did_you_mean
from strait.control.offsets import Offsets
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.net import consumer_groups as net
from strait.net import error_policy
from strait.planning.consumer_groups import (
    SHARE,
    GroupStatus,
    OffsetState,
    Side,
    Target,
    can_move,
    status_of,
    written,
)
from strait.state.translation import Fit
from strait.wire import error_codes

RETENTION_MS = 365 * 86_400_000
"""So long the destination keeps an offset that was written here, whatever its own retention is. What a group commits
itself, once it consumes there, is kept by the broker's rules again."""


class _Observed(NamedTuple):
    """``here``, ``there``: groups of either side; ``ours``: offsets on the source, of the link's topics; ``present``:
    offsets on the destination; ``refused``: why a group's offsets cannot be read."""

    here: Mapping[str, Side]
    there: Mapping[str, Side]
    ours: Mapping[str, net.Offsets]
    present: Mapping[str, net.Offsets]
    refused: Mapping[str, str]


class GroupSync:
    """For one link.

    Raises (every method):
        ConfigError: the source has no group of a name that was given.
        ClusterUnavailable, NotAuthorized, StateError: a cluster or the state topics cannot be read.
    """

    def __init__(self, file: LinksFile, link: str) -> None:
        self._name = link
        self._link = file.links[link]
        self._offsets = Offsets(file, link)
        self._clusters = {side: file.clusters[side] for side in (self._link.source, self._link.destination)}

    def status(self, groups: Iterable[str] = ()) -> list[GroupStatus]:
        """How groups stand: those named, or all that have offsets in the link's topics. Writes nothing."""
        with self._at(self._link.source) as source, self._at(self._link.destination) as destination:
            return self._decide(self._observe(source, destination, set(groups)))

    def sync(self, groups: Iterable[str] = ()) -> list[GroupStatus]:
        """Write what may be written; how the groups stand then."""
        with self._at(self._link.source) as source, self._at(self._link.destination) as destination:
            observed = self._observe(source, destination, set(groups))
            found = self._decide(observed)
            wanted = {
                status.group: _commits(status, observed.ours[status.group]) for status in found if not status.note
            }
            codes = destination.commit({name: offsets for name, offsets in wanted.items() if offsets}, RETENTION_MS)
        return [written(status, _refusals(codes.get(status.group, {}))) for status in found]

    def _observe(self, source: net.ConsumerGroups, destination: net.ConsumerGroups, names: set[str]) -> _Observed:
        here = _sides(source)
        self._check(names, here)
        chosen = names or {name for name, side in here.items() if can_move(side)}
        topics = self._offsets.topics()
        refused: dict[str, str] = {}
        told = _readable(
            source.committed(name for name in chosen if here[name].kind != SHARE), self._link.source, refused
        )
        ours = {
            name: {place: committed for place, committed in offsets.items() if place.topic in topics}
            for name, offsets in told.items()
        }
        wanted = [name for name, offsets in ours.items() if offsets or name in names]
        present = _readable(destination.committed(wanted), self._link.destination, refused)
        kept = {name: side for name, side in here.items() if name in {*wanted, *refused, *(chosen - told.keys())}}
        return _Observed(kept, _sides(destination), ours, present, refused)

    def _decide(self, observed: _Observed) -> list[GroupStatus]:
        asked = [(name, place) for name in observed.present for place in observed.ours[name]]
        offsets = [(place, observed.ours[name][place].offset) for name, place in asked]
        targets: dict[str, dict[TopicPartition, Target]] = {name: {} for name in observed.present}
        for (name, place), found in zip(asked, self._offsets.to_destination(offsets), strict=True):
            targets[name][place] = Target(found.to_topic, found.to_offset, found.fit, ahead=found.fit == Fit.AHEAD)
        statuses = []
        for name, here in sorted(observed.here.items()):
            there = observed.there.get(name, Side())
            if name in observed.refused:
                statuses.append(GroupStatus(name, here, there, refusal=observed.refused[name]))
                continue
            committed = {place: item.offset for place, item in observed.ours.get(name, {}).items()}
            present = {place: item.offset for place, item in observed.present.get(name, {}).items()}
            statuses.append(status_of(name, here, there, committed, targets.get(name, {}), present))
        return statuses

    def _check(self, names: set[str], here: Mapping[str, Side]) -> None:
        problems = [
            f"{self._link.source} has no consumer group {name!r}{did_you_mean(name, here)}"
            for name in sorted(names - here.keys())
        ]
        if problems:
            raise ConfigError(f"link {self._name}", problems)

    def _at(self, cluster: str) -> net.ConsumerGroups:
        return net.ConsumerGroups(self._clusters[cluster], cluster)


def _sides(cluster: net.ConsumerGroups) -> dict[str, Side]:
    return {name: Side(*group) for name, group in cluster.listed().items()}


def _readable(told: Mapping[str, net.Offsets | int], cluster: str, refused: dict[str, str]) -> dict[str, net.Offsets]:
    """Without the groups whose offsets the cluster does not tell; why not goes into ``refused``."""
    found = {}
    for name, offsets in told.items():
        if isinstance(offsets, int):
            refused[name] = f"reading its offsets on {cluster}: {error_policy.name(offsets)}"
        else:
            found[name] = offsets
    return found


def _commits(status: GroupStatus, ours: net.Offsets) -> net.Offsets:
    """What the consumer wrote beside its offset goes with it: Kafka Streams keeps its time there."""
    return {
        item.target: net.Committed(item.to_offset, ours[TopicPartition(item.topic, item.partition)].metadata)
        for item in status.offsets
        if item.to_write and item.to_offset is not None
    }


def _refusals(codes: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[OffsetState, str]]:
    return {
        place: (
            OffsetState.HELD_ACTIVE if code == error_codes.UNKNOWN_MEMBER_ID else OffsetState.REFUSED,
            error_policy.name(code),
        )
        for place, code in codes.items()
        if code
    }
