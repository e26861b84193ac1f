"""Keeps the set of requested partitions up to date by change: a round checks only the partitions that have changed
since the last one.

A partition's parts report their changes themselves (`ChangeSignal`); changes that are due at a time are in a heap. So a
partition with little traffic among ten thousand idle ones costs as much as it would alone.
"""

import heapq
import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from enum import Enum

from strait.engine.partition.change_signal import ChangeSignal
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.wire.fetch import FetchPosition
from strait.wire.fetch_session import FetchSession, Key, Request

MAX_WAIT_SECONDS = 0.5
QUIET_SECONDS = 10.0
"""A partition that no reply has named for this long is quiet."""
_SOON_SECONDS = 1.0


class Standing(Enum):
    """Whether a partition is requested, or why not."""

    WANTED = "asked for"
    LOST = "its position is looked up later"
    SOON = "its position is being looked up"
    BLOCKED = "the source is left alone for a while"
    HELD = "its producers are being judged, or what was fetched is being taken apart"
    FULL = "enough of it is queued, or memory is short"
    THROTTLED = "its class has used up its budget"
    OVER = "everything before the end of its copy was fetched"


_MAX_WAIT_BESIDE = {
    Standing.FULL: 0.005,  # may have room again in a moment
    Standing.HELD: 0.01,
    Standing.SOON: 0.05,
}
"""How long a broker may hold a request while other partitions cannot be requested yet, but soon can."""


class _Member:
    __slots__ = ("due", "generation", "key", "news_at", "partition", "standing", "told", "topic_class")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.topic_class = partition.policy.topic_class
        self.standing: Standing | None = None
        self.key: Key = ("", -1)
        self.told = False  # whether the session has its fetch offset, as of this generation of its position:
        self.generation = 0
        self.due = 0.0
        self.news_at = float("-inf")


class FetchSet:
    """The partitions that one broker leads, and the session in which they are fetched.

    Attributes:
        tight: memory is short, so a partition is requested only if it has nothing queued and, as far as is known,
            nothing left at the source.
        session: of the requested partitions.
    """

    def __init__(self, max_wait_seconds: float = MAX_WAIT_SECONDS, *, finds_quiet: bool = True) -> None:
        """``finds_quiet``: `quiet` is called, often."""
        self._max_wait_seconds = max_wait_seconds
        self._finds_quiet = finds_quiet
        self.tight = False
        self.session = FetchSession()
        self._members: dict[ChangeSignal, _Member] = {}
        self._classes: dict[str, set[_Member]] = defaultdict(set)
        self._changed: set[ChangeSignal] = set()
        self._standings: dict[Standing, int] = dict.fromkeys(Standing, 0)
        self._due: list[tuple[float, int, _Member]] = []
        self._order = itertools.count()
        self._behind: set[_Member] = set()  # with records queued or left at the source at the last check
        self._throttled: frozenset[str] = frozenset()
        self._limits: dict[str, float | None] = {}  # bytes that a class may request at a time
        self._moved: set[_Member] = set()  # wanted, but the session does not have the fetch offset yet
        self._asked: dict[Key, _Member] = {}
        self._awaited: set[_Member] = set()  # the reply must name them
        self._by_id: bool | None = None
        self._quiet_checks: deque[tuple[float, _Member]] = deque()  # one per member, the earliest first
        self._again = False  # the last request omits some partitions, so that the next one adds them again

    def __len__(self) -> int:
        return len(self._members)

    # --- which partitions ---------------------------------------------------------------------------------------------

    def add(self, partition: Partition, now: float) -> None:
        member = self._members[partition.signal] = _Member(partition)
        self._classes[member.topic_class].add(member)
        partition.signal.connect(self._changed)
        self._changed.add(partition.signal)
        if self._finds_quiet:
            self._quiet_checks.append((now + QUIET_SECONDS, member))

    def remove(self, partition: Partition) -> None:
        member = self._members.pop(partition.signal, None)
        if member is not None:
            partition.signal.disconnect(self._changed)
            self._enter(member, None)
            self._drop_class(member)
            self._behind.discard(member)
            member.due = -1.0

    def partitions(self) -> list[Partition]:
        return [member.partition for member in self._members.values()]

    def changed(self) -> list[Partition]:
        """Return the partitions that have changed since the last `update`."""
        return [self._members[signal].partition for signal in self._changed]

    def quiet(self, now: float, most: int) -> list[Partition]:
        """Return quiet partitions, at most ``most``; each partition is checked once in QUIET_SECONDS."""
        found: list[Partition] = []
        while self._quiet_checks and self._quiet_checks[0][0] <= now and len(found) < most:
            _, member = self._quiet_checks.popleft()
            if self._members.get(member.partition.signal) is not member:
                continue
            self._quiet_checks.append((now + QUIET_SECONDS, member))
            if self.is_quiet(member.partition, now):
                found.append(member.partition)
        return found

    def is_quiet(self, partition: Partition, now: float) -> bool:
        """Return whether the partition is requested and caught up, and no reply has named it for QUIET_SECONDS."""
        member = self._members.get(partition.signal)
        return (
            member is not None
            and member.standing is Standing.WANTED
            and member.news_at <= now - QUIET_SECONDS
            and partition.caught_up
            and not partition.awaits_word
        )

    @property
    def classes(self) -> Mapping[str, int]:
        """The number of partitions of each topic class."""
        return {topic_class: len(members) for topic_class, members in self._classes.items()}

    def _drop_class(self, member: _Member) -> None:
        members = self._classes[member.topic_class]
        members.discard(member)
        if not members:
            del self._classes[member.topic_class]

    # --- changes ------------------------------------------------------------------------------------------------------

    def follow_classes(self) -> None:
        """Apply the current topic class of each changed partition."""
        for signal in self._changed:
            member = self._members[signal]
            topic_class = member.partition.policy.topic_class
            if topic_class != member.topic_class:
                self._drop_class(member)
                member.topic_class = topic_class
                self._classes[topic_class].add(member)

    def throttle(self, classes: frozenset[str]) -> None:
        """Set the classes from which nothing is requested."""
        if classes != self._throttled:
            for topic_class in classes ^ self._throttled:
                self._changed.update(member.partition.signal for member in self._classes.get(topic_class, ()))
            self._throttled = classes

    def limit(self, limits: Mapping[str, float | None]) -> None:
        """Set how many bytes of each class its budget allows at a time; None: no limit. Partitions of a class whose
        limit has changed are requested again."""
        if limits != self._limits:
            for topic_class in limits.keys() | self._limits.keys():
                if limits.get(topic_class) != self._limits.get(topic_class):
                    members = self._classes.get(topic_class, set())
                    self._moved |= {member for member in members if member.standing is Standing.WANTED}
            self._limits = dict(limits)

    def tighten(self, *, tight: bool) -> None:
        """Exclude partitions with records queued or left at the source, or include them again."""
        if tight != self.tight:
            self.tight = tight
            self._changed.update(member.partition.signal for member in self._behind)

    def update(self, now: float, queue_bytes: int) -> None:
        """Evaluate the changed partitions again. A partition with ``queue_bytes`` queued has enough."""
        while self._due and self._due[0][0] <= now:
            at, _, member = heapq.heappop(self._due)
            if member.due == at:
                member.due = 0.0
                self._changed.add(member.partition.signal)
        members, moved = self._members, self._moved
        for signal in self._changed:
            member = members[signal]
            standing = self._judge(member, now, queue_bytes)
            if standing is not member.standing:
                self._enter(member, standing)
            if standing is Standing.WANTED:
                moved.add(member)
        self._changed.clear()

    def _judge(self, member: _Member, now: float, queue_bytes: int) -> Standing:
        position, cursor, queue = member.partition.position, member.partition.cursor, member.partition.queue
        over = cursor.at_until
        behind = bool(queue.batches) or (cursor.end > cursor.offset and not over)
        if behind:
            self._behind.add(member)
        elif member in self._behind:
            self._behind.remove(member)
        if position.phase is not Phase.REPLICATING:
            if position.retry_at < now + _SOON_SECONDS:
                return Standing.SOON
            self._look_at(member, position.retry_at - _SOON_SECONDS)
            return Standing.LOST
        if over:
            return Standing.OVER
        if cursor.blocked_until > now:
            self._look_at(member, cursor.blocked_until)
            return Standing.HELD if cursor.held else Standing.BLOCKED
        if cursor.unfinished:
            return Standing.HELD
        if (behind and self.tight) or (queue.batches and queue.bytes >= queue_bytes):
            return Standing.FULL
        return Standing.THROTTLED if member.topic_class in self._throttled else Standing.WANTED

    def _look_at(self, member: _Member, at: float) -> None:
        if member.due != at:
            member.due = at
            heapq.heappush(self._due, (at, next(self._order), member))

    def _enter(self, member: _Member, standing: Standing | None) -> None:
        if member.standing is not None:
            self._standings[member.standing] -= 1
        if member.standing is Standing.WANTED:
            self._moved.discard(member)
            self._leave(member)
        member.standing = standing
        if standing is not None:
            self._standings[standing] += 1

    # --- requests -----------------------------------------------------------------------------------------------------

    @property
    def wanted(self) -> int:
        """The number of requested partitions."""
        return self._standings[Standing.WANTED]

    @property
    def full(self) -> int:
        """The number of partitions that are not requested because enough of them is queued, or memory is short."""
        return self._standings[Standing.FULL]

    def max_wait(self, waits: Mapping[str, float]) -> float:
        """Return how many seconds the broker may hold the request that was just made. ``waits``: seconds until each
        class may be requested, 0 if it may be now."""
        if self._again:
            return 0.0
        found = [most for standing, most in _MAX_WAIT_BESIDE.items() if self._standings[standing]]
        if self._standings[Standing.THROTTLED]:
            found += [wait for wait in waits.values() if wait]
        return min([self._max_wait_seconds, *found])

    def next_request(self, *, by_id: bool, share_of: Callable[[str], int]) -> Request:
        """Return the next request. ``share_of``: how many bytes of one partition of a class may come."""
        if by_id is not self._by_id:
            self._begin_anew(by_id=by_id)
        shares = {topic_class: share_of(topic_class) for topic_class in self._classes}
        moved, self._moved = self._moved, set()
        silent = [member for member in moved if member.partition.awaits_word and self._may_be_left_out(member)]
        self._again = 0 < 2 * len(silent) <= self.wanted
        if self._again:  # the next request adds them again, so its reply must name them
            for member in silent:
                self._leave(member)
            moved.difference_update(silent)
            self._moved.update(silent)
        elif silent:
            self.session.lost()  # the reply to a new session names every partition
        for member in moved:
            partition, cursor = member.partition, member.partition.cursor
            if not member.told:
                self._tell(member)
            member.generation = partition.position.generation
            self.session.want(
                member.key,
                FetchPosition(
                    partition.number,
                    cursor.leader_epoch,
                    cursor.offset,
                    shares[member.topic_class],
                    cursor.last_epoch,
                ),
            )
            if partition.awaits_word:
                self._awaited.add(member)
        return self.session.next_request()

    def _may_be_left_out(self, member: _Member) -> bool:
        """Return whether a reply may omit the partition, although it must be named."""
        return self.session.knows(member.key if member.told else self._key(member.partition))

    def _key(self, partition: Partition) -> Key:
        return partition.source_id if self._by_id else partition.source_topic, partition.number

    def _tell(self, member: _Member) -> None:
        member.key = self._key(member.partition)
        member.told = True
        self._asked[member.key] = member

    def _leave(self, member: _Member) -> None:
        if member.told:
            member.told = False
            self._awaited.discard(member)
            if self._asked.get(member.key) is member:
                del self._asked[member.key]
                self.session.leave(member.key)

    def _begin_anew(self, *, by_id: bool) -> None:
        """Start a new session: topics are identified by ID instead of by name, or the reverse, as after an upgrade of
        brokers."""
        for member in list(self._asked.values()):
            self._leave(member)
            self._moved.add(member)
        self._by_id = by_id
        self.session = FetchSession()

    # --- replies ------------------------------------------------------------------------------------------------------

    def answered(self, key: Key, now: float) -> Partition | None:
        """Return the partition that a reply names; None if its data is outdated, and is fetched again."""
        member = self._asked.get(key)
        if member is None:
            return None
        if self._awaited:
            self._awaited.discard(member)
        member.news_at = now
        return member.partition if member.generation == member.partition.position.generation else None

    def all_answered(self) -> None:
        """Request again each partition that a complete reply omitted although it had to name it."""
        self._moved |= self._awaited
        self._awaited.clear()
