"""Queries to both clusters for the steps of a failover."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from strait.config.consumer_groups import GroupFilter
from strait.config.route_names import topic_of
from strait.consumer_groups.shadow import with_refusals
from strait.consumer_groups.sync import GroupSync
from strait.control.failover.journal import Journal
from strait.control.failover.last_words import read_last_words
from strait.control.held_elsewhere import HeldRecords, links_beside
from strait.control.link_status import LinkStatus, link_groups
from strait.control.plane import Control
from strait.errors import ClusterError, ClusterUnavailable, StraitError, UnknownTopic
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.net import error_policy
from strait.net.consumer_groups import ConsumerGroups
from strait.net.producers import active_producers
from strait.planning.consumer_groups import DESCRIBABLE, SHARE, GroupOnCluster, GroupStatus, can_move
from strait.planning.failover import Attached, Ends, Member, Writer
from strait.planning.held_elsewhere import by_topic
from strait.planning.plan.pauses import pauses_of
from strait.planning.recovery_point import LastWords, missing, wanted
from strait.planning.review.effects import effects, without_approval
from strait.planning.status.rows import PartitionStatus
from strait.planning.topic_sync.heartbeats import written_by_links
from strait.planning.waves import WHOLE_LINK, Wave, moved_topics, wave_of
from strait.reasons import Reason
from strait.state.failover_records import Failover, HeldElsewhere, MissingRecords
from strait.state.group_sync_records import GroupSyncReport
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import Plan
from strait.wire.error_codes import UNSTABLE_OFFSET_COMMIT


class Observation:
    """The state of one link, or of a wave of it. Queries a cluster only if the result needs it, so the source may be
    lost.

    Raises (every method): ClusterUnavailable, NotAuthorized, ConfigError, StateError.
    """

    def __init__(self, link: ConfiguredLink, wave: Wave = WHOLE_LINK) -> None:
        self.link = link
        self.wave = wave
        settings = link.settings.consumer_groups
        self._selected = GroupFilter(settings.include, settings.exclude)
        self.synchronizes = settings.sync
        self._tail_ends: dict[str, dict[TopicPartition, int]] = {}
        self._fixed: Collection[str] | None = None

    @cached_property
    def source(self) -> Admin:
        return self.link.admin("source")

    @cached_property
    def destination(self) -> Admin:
        return self.link.admin("destination")

    def source_trouble(self) -> str:
        """Return why the source cannot be queried now; empty if it responds. A source that rejects the login counts as
        lost, too. Raises ConfigError if it could not be asked with these settings."""
        try:
            self.link.admin("source")
        except ClusterError as error:
            return str(error)
        return ""

    def status(self, *, listen_seconds: float = 0.0) -> LinkStatus:
        """Return the link's state according to its plans and its slots' reports. ``listen_seconds``: time to listen to
        a slot that seems silent, since the clock here may be ahead of the slot's."""
        return link_groups(self.link, listen_seconds=listen_seconds)

    @cached_property
    def moved(self) -> frozenset[str]:
        """Topics that waves have moved and that were not resumed since."""
        records = self.journal().all()
        return moved_topics(records, pauses_of(self.plans().values())) if any(map(wave_of, records)) else frozenset()

    def still_paused(self) -> tuple[str, ...]:
        """Return the topics that a failover of the whole link leaves as earlier waves have left them: moved and paused."""
        return () if self.wave else tuple(sorted(self.moved))

    def journal(self) -> Journal:
        """Return the journal of the link's failovers."""
        return Journal(self.link)

    def fix_topics(self, topics: Collection[str]) -> None:
        """Select these source topics alone from now on, also those that a wave has moved."""
        self._fixed = frozenset(topics)

    def takes(self, topic: str) -> bool:
        """Return whether a source topic that the link copies is moved."""
        return topic in self._fixed if self._fixed is not None else self.wave.takes(topic) and topic not in self.moved

    def among(self, rows: Iterable[PartitionStatus]) -> list[PartitionStatus]:
        """Return the rows whose topics are moved."""
        return [row for row in rows if self.takes(row.topic)]

    def topics(self) -> set[str]:
        """Return the source topics that are moved: planned ones, except heartbeat topics."""
        return {row.topic for row in self.among(self.status().rows)} - self.heartbeats()

    def topics_left(self) -> int:
        """Return the number of other topics that the link copies and that no wave has moved."""
        planned = {row.topic for row in self.status().rows} - self.heartbeats()
        return sum(not self.takes(topic) and topic not in self.moved for topic in planned)

    def plans(self, link: str | None = None) -> dict[str, Plan]:
        """Return the current plans by task group. ``link``: another link of the links file."""
        with self._other(link).state("plan") as state:
            state.catch_up()
            return dict(state.plans)

    def transformed(self) -> set[str]:
        """Return those of the topics that are moved, by their names in plans, whose records on the destination a rule makes, or
        has made before it was changed."""
        plans = self.plans().values()
        halted = {item.topic for plan in plans for item in plan.waiting if item.reason == Reason.TRANSFORM_CHANGED}
        return {topic for plan in plans for topic in {*plan.transformed, *halted} if self.takes(topic)}

    def heartbeats(self) -> set[str]:
        """Return the topics on the source that only links write to."""
        return written_by_links(self.link.settings, self.plans().values(), self.link.file.clusters)

    def plan_versions(self) -> dict[str, int]:
        """Return task group -> version of its current plan."""
        return {group.group: group.plan_version for group in self.status().groups}

    def pending(self) -> list[str]:
        """Return the changes that a new plan would make; because of them, data on the source may not be copied yet."""
        with Control(self.link.file, self.link.name) as control:
            proposal = control.propose()
        link = self.link.settings
        return [effect.line for effect in sorted([*effects(link, proposal), *without_approval(link, proposal)])]

    def ends(self, places: Iterable[TopicPartition]) -> Ends:
        """Return the end offsets of the source's partitions, open transactions included."""
        return self.source.offsets(places, "end")

    def writers(self, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, Sequence[Writer]]:
        """Return the producers whose state the source still keeps, by partition."""
        found = active_producers(*self.link.source, places)
        return {
            place: [Writer(item.producer_id, item.last_ms, item.open_since) for item in producers]
            for place, producers in found.items()
        }

    def groups(self, *, sync: bool, include_moved: bool) -> list[GroupStatus]:
        """Return the state of the link's consumer groups, and of groups that are not synchronized but have offsets in
        its topics. ``sync``: first commit the offsets of the synchronized groups on the destination."""
        if not self.synchronizes:
            return []
        include_moved = include_moved or self.link.settings.consumer_groups.include_moved
        how: Any = {"include_moved": include_moved, "leave": self.moved}
        look = GroupSync(self.link, selected=self._selected, **how)
        if not self._partial:
            return look.sync(unselected=True) if sync else look.status(unselected=True)
        found = [self._of_wave(status) for status in look.status(unselected=True) if self._touches(status)]
        if sync:
            names = {status.group for status in found if status.selected}
            done = GroupSync(self.link, selected=names.__contains__, **how).sync(names)
            written = {status.group: status for status in done}
            found = [written.get(status.group, status) for status in found]
        return found

    @property
    def _partial(self) -> bool:
        return bool(self.wave or self.moved)

    def _of_wave(self, status: GroupStatus) -> GroupStatus:
        if self.wave.takes_group(status.group):
            return status
        return replace(status, selected=False, left_out="--groups does not name it")

    def _touches(self, status: GroupStatus) -> bool:
        """Return whether the group has offsets in the topics that are moved; also true if its offsets cannot be
        read."""
        return bool(status.refusal) or any(self.takes(item.topic) for item in status.offsets)

    def held_elsewhere(self) -> tuple[tuple[HeldElsewhere, ...], dict[str, str]]:
        """Return the records that destinations of other links from the source have and this link's lacks; and the links
        of which that is unknown, with the reasons."""
        found: list[HeldElsewhere] = []
        unknown = {}
        for other in links_beside(self.link):
            try:
                held = HeldRecords(self.link, other).held
            except StraitError as error:
                unknown[other] = str(error)
            else:
                found += by_topic(other, [one for one in held if self.takes(one.part.topic)])
        return tuple(found), unknown

    def groups_there(self) -> tuple[list[str], dict[str, str]]:
        """Return the groups that have offsets in the link's destination topics, according to the destination; and those
        of which that is unknown, with the name of the error. None if the link does not synchronize groups. Share groups have
        no offsets in this sense, and are not among them."""
        if not self.synchronizes:
            return [], {}
        topics = self.copies()
        with ConsumerGroups(*self.link.destination) as groups:
            sides = {name: GroupOnCluster(*group) for name, group in groups.listed().items() if self._selected(name)}
            asked = [name for name, side in sides.items() if can_move(name, side) and side.kind != SHARE]
            found = groups.committed(asked, last_stable=True)  # so that transactions on other topics are no obstacle
        there, unread = [], {}
        for name, offsets in sorted(found.items()):
            if isinstance(offsets, int):
                unread[name] = error_policy.name(offsets)
            elif of_link := [item for place, item in offsets.items() if place.topic in topics]:
                if any(item.pending for item in of_link):
                    unread[name] = error_policy.name(UNSTABLE_OFFSET_COMMIT)
                else:
                    there.append(name)
        return there, unread

    def copies(self, *, besides: Collection[str] = ()) -> set[str]:
        """Return the destination topics of the topics that are moved, without those of the source topics ``besides``."""
        return {
            topic.destination
            for plan in self.plans().values()
            for topic in plan.topics
            if self.takes(topic.source) and topic.source not in besides
        }

    def trial(self, *, include_moved: bool) -> list[GroupStatus]:
        """Return the state of the link's consumer groups, including the commits that the destination would reject."""
        return with_refusals(self.link, self.groups(sync=False, include_moved=include_moved))

    def attached(self, statuses: Iterable[GroupStatus], topics: Collection[str]) -> Attached:
        """Return the selected groups that are active on these topics on the source, whether or not they have committed an
        offset yet; also active groups whose topics are unknown. Share and Streams groups, which cannot be described, are
        returned only if they have committed an offset."""
        committed = {status.group for status in statuses if status.selected and status.source.active}
        with ConsumerGroups(*self.link.source) as groups:
            sides = {name: GroupOnCluster(*group) for name, group in groups.listed().items()}
        moving = {name for name in sides if self._selected(name) and self.wave.takes_group(name)}
        active = {name for name, side in sides.items() if side.active and can_move(name, side) and name in moving}
        described = self.source.members_each(sorted(active | committed))
        found: dict[str, list[Member]] = {}
        unknown: dict[str, str] = {}
        for group in sorted(active | committed):
            members = described.results.get(group, ())
            if group not in committed and not any(member.topics and member.topics & set(topics) for member in members):
                if any(member.topics is None for member in members):
                    unknown[group] = "the group rebalances, so the topics of its members are unknown"
                elif group in described.failures and sides[group].kind in DESCRIBABLE:
                    unknown[group] = f"the topics of its members are unknown: {described.failures[group].message}"
                else:
                    continue
            found[group] = [Member(member.client_id, member.host) for member in members]
        return Attached(found, unknown)

    def last_words(self, link: str | None = None) -> tuple[LastWords, GroupSyncReport | None]:
        """Return the last reports, within a day, of a link's applications about each planned partition and about
        consumer groups. ``link``: another link of the links file."""
        words, group_sync = read_last_words(self._other(link), self.plans(link))
        if link is None:
            words = {place: word for place, word in words.items() if self.takes(place.topic)}
        return words, group_sync

    def copying_back(self) -> list[str]:
        """Return the links in the opposite direction that have a plan and concern this failover: those that copy topics
        which are moved, or all if none does, since names may differ between the directions. Others belong to other links
        of this direction, and may be stopped since those were failed over."""
        planned = {name: plans.values() for name in self.opposites() if (plans := self.plans(name))}
        copies = self.copies(besides=self.heartbeats())
        about = [
            name
            for name, plans in planned.items()
            if any(topic_of(item) in copies for plan in plans for item in _selected_by(plan))
        ]
        return about or list(planned)

    def opposite_failover(self) -> Failover | None:
        """Return the failover in the opposite direction that was started and is not over. Queries the source, which
        holds its journal."""
        for name in self.opposites():
            found = Journal(self.link.other(name)).all()
            newest = next((record for record in reversed(found) if record.kind != "rehearsal"), None)
            if newest is not None and newest.outcome == "running":
                return newest
        return None

    def opposites(self) -> list[str]:
        """Return the links of the links file that copy in the opposite direction."""
        ends = self.link.destination.name, self.link.source.name
        return [name for name, other in self.link.file.links.items() if (other.source, other.destination) == ends]

    def _other(self, name: str | None) -> ConfiguredLink:
        return self.link if name is None else self.link.other(name)

    def tail(self, link: str) -> tuple[tuple[MissingRecords, ...], tuple[ClusterUnavailable, ...]]:
        """Return the records that the destination had at the first call and that the link in the opposite direction has
        not copied yet; and why the end offsets of other partitions cannot be read now. A later call reads these again."""
        words, _ = self.last_words(link)
        if self._partial:
            copies = self.copies()
            words = {place: word for place, word in words.items() if place.topic in copies}
        ends = self._tail_ends.setdefault(link, {})
        unread = []
        if new := words.keys() - ends.keys():
            found = self.destination.offsets_each(sorted(new), "end")
            ends |= found.results
            for place, error in found.failures.items():
                if isinstance(error, UnknownTopic):
                    ends[place] = 0  # a topic that does not exist has no records
                elif isinstance(error, ClusterUnavailable):
                    unread.append(error)
                else:
                    raise error
        positions = {place: max(0, word.position) for place, word in words.items()}
        return missing(positions, wanted(ends, words)), tuple(unread)

    def has_plan(self, link: str) -> bool:
        """Return whether a plan of that link was ever published. Queries its destination."""
        return bool(self.plans(link))


def _selected_by(plan: Plan) -> list[str]:
    """Return the source topics that a plan copies, and those that wait."""
    return [*(topic.source for topic in plan.topics), *(item.topic for item in plan.waiting)]
