"""Consumer groups of a link: translates their committed offsets and writes them to the destination.

Observe, plan (`strait.planning.consumer_groups`), commit. The destination's offsets are read after the source's, so
that the commits of a group that moves meanwhile are seen, and again immediately before they are written. A commit
carries its own retention and no leader epoch (ADR 17).
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import NamedTuple, Self

from strait.config.route_names import topic_of
from strait.config.validation import did_you_mean
from strait.consumer_groups.commits import before_pending, commits_of, in_sync, of_others, refusals, with_mark_alone
from strait.consumer_groups.observed import ABSENT, ObservedGroups, groups_of, names_of
from strait.consumer_groups.offsets import Offsets
from strait.consumer_groups.two_way import TwoWay
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.net import consumer_groups as net
from strait.net import error_policy
from strait.net.group_coordinators import Codes
from strait.net.share_groups import ShareGroups
from strait.pieces import pieces
from strait.planning.consumer_groups import (
    SHARE,
    GroupOnCluster,
    GroupStatus,
    OffsetState,
    can_move,
    reserved,
    status_of,
    written,
)
from strait.state.link_handle import LinkHandle
from strait.state.schema import Plan
from strait.state.signing import Proof
from strait.state.translation import Translation

RETENTION_MS = 365 * 86_400_000
"""How long the destination keeps an offset that was written here, regardless of the broker's setting. Offsets that a
group commits itself, once it consumes there, are kept by the broker's setting again."""
_AT_ONCE = 200
"""Groups whose offsets are read again, then written, at a time, so that little time passes between the two."""
_REMEMBERED_SECONDS = 60.0
"""After this time the destination is queried again even if nothing has changed on the source: another client may have
committed there."""
_CHANGED = OffsetState.HELD_MOVED, "its offset on the destination has just changed"


Ours = dict[str, Mapping[TopicPartition, int]]
_Refused = dict[str, dict[TopicPartition, tuple[OffsetState, str]]]


class _Look(NamedTuple):
    """``present``: offsets on the destination of the groups that were queried again."""

    found: list[GroupStatus]
    observed: ObservedGroups
    present: Mapping[str, net.Offsets]


class _Known(NamedTuple):
    """The status of a group, and the facts from which it was derived."""

    facts: tuple[object, ...]
    status: GroupStatus
    until: float


class GroupSync:
    """For one link. As a context manager it keeps its connections and remembers its results, so that another call costs
    little if nothing has changed.

    Args:
        selected: which groups are synchronized; the others are shown on request.
        include_moved: also write offsets, only forward, for groups that have consumed on the destination.
        take_over: also replace offsets that a client that is not a member has committed on the destination, and later
            ones.
        leave: source topics whose offsets are neither shown nor written.
        ours: offsets that were written or found in sync, by group; the caller keeps them for another instance later.
            Only these offsets may go back with the source.

    Raises (every method):
        ConfigError: the source has no group of a name that was given, or the link has no plan.
        ClusterUnavailable, NotAuthorized, StateError: a cluster or the state topics cannot be read.
    """

    def __init__(
        self,
        link: LinkHandle,
        *,
        selected: Callable[[str], bool] = lambda _: True,
        include_moved: bool = False,
        take_over: bool = False,
        leave: Collection[str] = (),
        ours: Ours | None = None,
    ) -> None:
        self._link = link
        self._ours: Ours = {} if ours is None else ours
        self._selected = selected
        self._include_moved = include_moved
        self._take_over = take_over
        self._leave = frozenset(leave)
        self._offsets = Offsets(link)
        self._two_way = TwoWay(link, self._offsets)
        self._source = net.ConsumerGroups(*link.source)
        self._destination = net.ConsumerGroups(*link.destination)
        self._shares_here = ShareGroups(self._source.coordinators)
        self._shares_there = ShareGroups(self._destination.coordinators)
        self._known: dict[str, _Known] = {}
        self._keeps = False

    def __enter__(self) -> Self:
        self._keeps = True
        self._offsets.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keeps = False
        self._known.clear()
        for each in (self._two_way, self._offsets, self._source, self._destination):
            each.__exit__(kind, error, trace)

    def follow(self, selected: Callable[[str], bool], *, include_moved: bool) -> None:
        """Use other settings from now on."""
        self._selected = selected
        self._include_moved = include_moved
        self._known.clear()

    def plans(self) -> dict[str, tuple[Plan, Proof]]:
        """Return task group of the link -> its current plan, and whether that is proven."""
        return self._offsets.plans_with_proofs()

    def last_records(self) -> dict[TopicPartition, tuple[int, int]]:
        """See `Offsets.last_records`."""
        return self._offsets.last_records()

    def status(self, groups: Iterable[str] = (), *, unselected: bool = False) -> list[GroupStatus]:
        """Return the status of groups: those named, or all selected ones that have offsets in the link's topics; with
        ``unselected`` the others too. Writes nothing."""
        with self._kept():
            return self._look(set(groups), unselected=unselected).found

    def sync(self, groups: Iterable[str] = (), *, unselected: bool = False) -> list[GroupStatus]:
        """Write the offsets that may be written; return the resulting status of the groups, selected as in
        ``status``."""
        with self._kept():
            look = self._look(set(groups), unselected=unselected)
            wanted = {
                status.group: commits
                for status in look.found
                if not status.note and (commits := commits_of(status, look.observed.replies[status.group]))
            }
            refused = self._write(wanted, look)
            found = [written(status, refused.get(status.group, {})) for status in look.found]
            for status in found:
                if not status.note:
                    self._ours[status.group] = in_sync(status, self._ours.get(status.group, {}))
            for group in self._ours.keys() - look.observed.here.keys() - look.observed.there.keys():
                del self._ours[group]  # while the destination has it, it may be created again on the source
            return found

    @contextmanager
    def _kept(self) -> Iterator[None]:
        if self._keeps:
            yield
        else:
            with self:
                yield

    # --- observing ----------------------------------------------------------------------------------------------------

    def _look(self, names: set[str], *, unselected: bool) -> _Look:
        observed = self._observe(names, unselected=unselected)
        remembered: dict[str, GroupStatus] = {}
        anew: dict[str, net.Offsets] = {}
        refusals: dict[str, str] = {}
        now = time.monotonic()
        for name, told in observed.replies.items():
            known = self._known.get(name)
            if known and known.until > now and known.facts == observed.facts(name):
                remembered[name] = known.status
            elif isinstance(told, int):
                refusals[name] = f"reading its offsets on {self._link.source.name}: {error_policy.name(told)}"
            else:
                anew[name] = observed.synchronized(told)
        decided, present = self._decide(anew, refusals, observed)
        found = remembered | decided
        for name in found.keys() - remembered.keys():
            if found[name].at_rest:
                self._known[name] = _Known(observed.facts(name), found[name], now + _REMEMBERED_SECONDS)
            else:
                self._known.pop(name, None)
        for name in self._known.keys() - observed.here.keys():
            del self._known[name]
        found |= {
            name: GroupStatus(name, observed.here[name], observed.on_destination(name)) for name in names - found.keys()
        }
        shown = (found[name] for name in sorted(found) if name in names or found[name].offsets or found[name].refusal)
        return _Look(
            [status if self._chosen(status.group) else replace(status, selected=False) for status in shown],
            observed,
            present,
        )

    def _chosen(self, name: str) -> bool:
        return self._selected(name) and not reserved(name)

    def _observe(self, names: set[str], *, unselected: bool) -> ObservedGroups:
        here = groups_of(self._source)
        self._check(names, here)
        plans = self._offsets.plans()
        topics = {topic.source for plan in plans.values() for topic in plan.topics}
        if not topics:
            raise ConfigError(
                f"link {self._link.name}", ["it has no plan with topics yet"], hint="run strait apply, or start it"
            )
        chosen = names or {
            name
            for name, side in here.items()
            if (can_move(name, side) and (unselected or self._selected(name))) or (unselected and reserved(name))
        }
        share = {name for name in chosen if here[name].kind == SHARE}
        told = self._source.committed(chosen - share, last_stable=True) | self._shares_here.starts(share)
        return ObservedGroups(
            here,
            groups_of(self._destination),
            told,
            {group: plan.version for group, plan in plans.items()},
            {*map(topic_of, topics)},
            names_of(topics - self._leave),
        )

    def _decide(
        self, ours: Mapping[str, net.Offsets], refusals: Mapping[str, str], observed: ObservedGroups
    ) -> tuple[dict[str, GroupStatus], dict[str, net.Offsets]]:
        present: dict[str, net.Offsets] = {}
        refusals = dict(refusals)
        for name, told in self._present((name for name, offsets in ours.items() if offsets), observed).items():
            if isinstance(told, int):
                refusals[name] = f"reading its offsets on {self._link.destination.name}: {error_policy.name(told)}"
            else:
                present[name] = told
        asked = [(name, place) for name in present for place in ours[name]]
        offsets = [(place, ours[name][place].offset) for name, place in asked]
        translations: dict[str, list[Translation]] = {name: [] for name in ours}
        translated = self._two_way.resolved(self._offsets.to_destination(offsets)) if offsets else []
        for (name, place), found in zip(asked, translated, strict=True):
            translations[name].append(before_pending(found) if ours[name][place].pending else found)
        decided = {
            name: self._status(name, observed, translations[name], present.get(name, {}))
            for name in ours.keys() - refusals.keys()
        }
        decided |= {
            name: GroupStatus(name, observed.here[name], observed.on_destination(name), refusal=why)
            for name, why in refusals.items()
        }
        return decided, present

    def _present(self, names: Iterable[str], observed: ObservedGroups) -> dict[str, net.Offsets | int]:
        """Return the groups' offsets on the destination, or the error code if it rejects the query."""
        names = set(names)
        share = {name for name in names if observed.here[name].kind == SHARE}
        there = {name for name in share if observed.on_destination(name).kind == SHARE}
        found = self._destination.committed(names - share) | self._shares_there.starts(there)
        past = self._shares_there.with_past(there)
        return {name: {} for name in share - there} | {
            name: _owned(told) if name in past and not isinstance(told, int) else told for name, told in found.items()
        }

    def _status(
        self, name: str, observed: ObservedGroups, translations: Sequence[Translation], present: net.Offsets
    ) -> GroupStatus:
        places = {TopicPartition(found.to_topic, found.partition) for found in translations}
        own = {place for place, item in present.items() if item.epoch >= 0 and place in places}
        here, ours = observed.here[name], self._ours.get(name, {})
        told = observed.replies[name]
        found = status_of(
            name,
            here,
            observed.on_destination(name),
            translations,
            {place: item.offset for place, item in present.items()},
            ours=ours,
            own=own,
            others=of_others(present, ours, own, share=here.kind == SHARE),
            include_moved=self._include_moved,
            take_over=self._take_over,
        )
        outside = {place.topic for place in told} - observed.planned if not isinstance(told, int) else set()
        return replace(found, outside=tuple(sorted(outside)))

    def _check(self, names: set[str], here: Mapping[str, GroupOnCluster]) -> None:
        problems = [
            f"{self._link.source.name} has no consumer group {name!r}{did_you_mean(name, here)}"
            for name in sorted(names - here.keys())
        ]
        if problems:
            hint = "a group that this principal may not DESCRIBE is not listed"
            raise ConfigError(f"link {self._link.name}", problems, hint=hint)

    # --- writing ------------------------------------------------------------------------------------------------------

    def _write(self, wanted: Mapping[str, net.Offsets], look: _Look) -> _Refused:
        """Write the offsets; return those that were rejected, and why. Only groups that are still as observed are
        written: one may have been active meanwhile."""
        refused: _Refused = {}
        names = sorted(wanted)
        sides = groups_of(self._destination) if names else {}
        for piece in pieces(names, _AT_ONCE):
            some = {name: wanted[name] for name in piece}
            now = self._present(some, look.observed)
            unchanged = {
                name: offsets
                for name, offsets in some.items()
                if now[name] == look.present[name] and sides.get(name, ABSENT) == look.observed.on_destination(name)
            }
            codes = self._commit(unchanged, look.observed)
            refused |= {name: dict.fromkeys(some[name], _CHANGED) for name in some.keys() - unchanged.keys()}
            refused |= {name: refusals(of_group) for name, of_group in codes.items()}
        return refused

    def _commit(self, wanted: Mapping[str, net.Offsets], observed: ObservedGroups) -> dict[str, Codes]:
        starts = {name: offsets for name, offsets in wanted.items() if observed.here[name].kind == SHARE}
        offsets = {name: offsets for name, offsets in wanted.items() if name not in starts}
        codes = self._destination.commit(offsets, RETENTION_MS)
        again = {name: with_mark_alone(offsets[name], of_group) for name, of_group in codes.items()}
        for name, of_group in self._destination.commit({n: o for n, o in again.items() if o}, RETENTION_MS).items():
            codes[name] = {**codes[name], **of_group}
        return codes | self._shares_there.alter(starts)


def _owned(starts: net.Offsets) -> net.Offsets:
    """Return the start offsets as if the share group's members had committed them."""
    return {place: start._replace(epoch=0) for place, start in starts.items()}
