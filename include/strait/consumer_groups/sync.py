"""Consumer groups of a link: what their committed offsets are on the destination, and writing them there once.

Observe, decide (`strait.planning.consumer_groups`), commit. The destination's offsets are read after the source's, so
that what a group that moves meanwhile has committed is seen, and once more right before they are written. A commit
carries its own retention and no leader epoch (ADR 17).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from strait.config.validation import did_you_mean
from strait.consumer_groups.clusters import LinkClusters
from strait.consumer_groups.offsets import Offsets
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.net import consumer_groups as net
from strait.net import error_policy
from strait.planning.consumer_groups import (
    SHARE,
    GroupStatus,
    OffsetState,
    Side,
    can_move,
    status_of,
    written,
)
from strait.state.translation import Translation
from strait.wire import error_codes

RETENTION_MS = 365 * 86_400_000
"""So long the destination keeps an offset that was written here, whatever its own retention is. What a group commits
itself, once it consumes there, is kept by the broker's rules again."""
_AT_ONCE = 200
"""Groups whose offsets are read once more, then written: so many take a moment."""
_CHANGED = OffsetState.HELD_MOVED, "its offset on the destination has just changed"


class _Observed(NamedTuple):
    """``here``, ``there``: groups of either side; ``ours``: offsets on the source, of the link's topics; ``present``:
    offsets on the destination; ``refused``: why a group's offsets cannot be read."""

    here: Mapping[str, Side]
    there: Mapping[str, Side]
    ours: Mapping[str, net.Offsets]
    present: Mapping[str, net.Offsets]
    refused: Mapping[str, str]


class GroupSync:
    """For one link. ``include_moved``: write, forward, also for groups that have consumed on the destination.

    Raises (every method):
        ConfigError: the source has no group of a name that was given, or the link has no plan.
        ClusterUnavailable, NotAuthorized, StateError: a cluster or the state topics cannot be read.
    """

    def __init__(self, clusters: LinkClusters, *, include_moved: bool = False) -> None:
        self._clusters = clusters
        self._include_moved = include_moved
        self._offsets = Offsets(clusters)

    def status(self, groups: Iterable[str] = ()) -> list[GroupStatus]:
        """How groups stand: those named, or all that have offsets in the link's topics. Writes nothing."""
        with self._at(self._clusters.source) as source, self._at(self._clusters.destination) as destination:
            return self._decide(self._observe(source, destination, set(groups)))

    def sync(self, groups: Iterable[str] = ()) -> list[GroupStatus]:
        """Write what may be written; how the groups stand then."""
        with self._at(self._clusters.source) as source, self._at(self._clusters.destination) as destination:
            observed = self._observe(source, destination, set(groups))
            found = self._decide(observed)
            wanted = {
                status.group: commits
                for status in found
                if not status.note and (commits := _commits(status, observed.ours[status.group]))
            }
            refused: dict[str, dict[TopicPartition, tuple[OffsetState, str]]] = {}
            names = sorted(wanted)
            for at in range(0, len(names), _AT_ONCE):
                some = {name: wanted[name] for name in names[at : at + _AT_ONCE]}
                refused |= _write(destination, some, observed.present)
        return [written(status, refused.get(status.group, {})) for status in found]

    def _observe(self, source: net.ConsumerGroups, destination: net.ConsumerGroups, names: set[str]) -> _Observed:
        here = _sides(source)
        self._check(names, here)
        # Whether a share group reads the link's topics is not known, so it is shown only if it is asked for.
        chosen = names or {name for name, side in here.items() if can_move(side) and side.kind != SHARE}
        topics = self._offsets.topics()
        if not topics:
            raise ConfigError(
                f"link {self._clusters.link}", ["it has no plan with topics yet"], hint="run strait apply, or start it"
            )
        refused: dict[str, str] = {}
        asked = (name for name in chosen if here[name].kind != SHARE)
        told = _readable(source.committed(asked), self._clusters.source, refused)
        ours = {
            name: {place: committed for place, committed in offsets.items() if place.topic in topics}
            for name, offsets in told.items()
        }
        wanted = [name for name, offsets in ours.items() if offsets or name in names]
        present = _readable(destination.committed(wanted), self._clusters.destination, refused)
        kept = {*wanted, *refused, *names}
        return _Observed(
            {name: side for name, side in here.items() if name in kept}, _sides(destination), ours, present, refused
        )

    def _decide(self, observed: _Observed) -> list[GroupStatus]:
        asked = [(name, place) for name in observed.present for place in observed.ours[name]]
        offsets = [(place, observed.ours[name][place].offset) for name, place in asked]
        translations: dict[str, list[Translation]] = {name: [] for name in observed.here}
        for (name, _), found in zip(asked, self._offsets.to_destination(offsets), strict=True):
            translations[name].append(found)
        return [self._status(name, observed, translations[name]) for name in sorted(observed.here)]

    def _status(self, name: str, observed: _Observed, translations: Sequence[Translation]) -> GroupStatus:
        here, there = observed.here[name], observed.there.get(name, Side())
        if name in observed.refused:
            return GroupStatus(name, here, there, refusal=observed.refused[name])
        present = observed.present.get(name, {})
        ours = {TopicPartition(found.to_topic, found.partition) for found in translations}
        return status_of(
            name,
            here,
            there,
            translations,
            {place: item.offset for place, item in present.items()},
            own={place for place, item in present.items() if item.epoch >= 0 and place in ours},
            include_moved=self._include_moved,
        )

    def _check(self, names: set[str], here: Mapping[str, Side]) -> None:
        problems = [
            f"{self._clusters.source} has no consumer group {name!r}{did_you_mean(name, here)}"
            for name in sorted(names - here.keys())
        ]
        if problems:
            hint = "a group that this principal may not DESCRIBE is not listed"
            raise ConfigError(f"link {self._clusters.link}", problems, hint=hint)

    def _at(self, cluster: str) -> net.ConsumerGroups:
        return net.ConsumerGroups(self._clusters.properties[cluster], cluster)


def _write(
    destination: net.ConsumerGroups, wanted: Mapping[str, net.Offsets], observed: Mapping[str, net.Offsets]
) -> dict[str, dict[TopicPartition, tuple[OffsetState, str]]]:
    """What was refused, and why. Written is only what is still as it was observed: a group may have come and gone."""
    now = destination.committed(wanted)
    unchanged = {name: offsets for name, offsets in wanted.items() if now[name] == observed[name]}
    codes = destination.commit(unchanged, RETENTION_MS)
    changed = {name: dict.fromkeys(wanted[name], _CHANGED) for name in wanted.keys() - unchanged.keys()}
    return changed | {name: _refusals(of_group) for name, of_group in codes.items()}


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
