"""Follow the plans and the maps of many links on one cluster with one consumer.

Everything that may block is on a separate thread. It hands the records over in pieces, so that a link with a large map
delays the plans of other links little.
"""

import queue
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from confluent_kafka import Message

from strait.config import naming
from strait.errors import StraitError
from strait.state.feed_thread import EOF, PIECES, Begin, Piece, Reading
from strait.state.signing import Keys
from strait.state.view import Kind, Place, ReadState, StateView


class _Topic(NamedTuple):
    kind: Kind
    state: "_LinkState"


class _LinkState:
    """The state of one link as read so far."""

    def __init__(self, link: str, keys: Keys) -> None:
        self.link = link
        self._keys = keys
        self.plan_topic, self.map_topic = naming.plan_topic(link), naming.map_topic(link)
        self.followers: list[FollowedLink] = []
        self.begin()
        self.stale = True

    def begin(self) -> None:
        """Forget everything: the topics are read from their start."""
        self.view = StateView(self.link, keys=self._keys)
        self.stale = False  # while True, arriving records are of an earlier reading and are skipped
        self.map_end = 0
        self.unread = {self.plan_topic, self.map_topic}

    def take(self, kind: Kind, message: Message) -> bool:
        """Apply a record; return whether anything changed."""
        if self.stale:
            return False
        topic, offset = message.topic() or "", message.offset() or 0
        if (error := message.error()) is not None:
            if error.code() != EOF:
                return False
            was_unread = topic in self.unread
            self.unread.discard(topic)
            if kind == "map":
                self.map_end = max(self.map_end, offset)
            return was_unread or kind == "map"
        if kind == "map":
            self.map_end = offset + 1
        place = Place(topic, message.partition() or 0, offset)
        return self.view.apply(kind, message.key(), message.value(), place, message.headers() or ())


class FollowedLink(ReadState):
    """The state of one link as one of its slots sees it; see `strait.engine.slot.FollowedState`."""

    def __init__(self, feed: "StateFeed", state: _LinkState, on_change: Callable[[], None]) -> None:
        self._feed = feed
        self._state = state
        self.on_change = on_change
        self.changed = True

    @property
    def view(self) -> StateView:
        return self._state.view

    @property
    def map_end(self) -> int:
        """First offset of the map topic that was not read yet."""
        return self._state.map_end

    @property
    def caught_up(self) -> bool:
        """Whether both topics were read to an end that they had since the link is followed."""
        return not self._state.unread and not self._state.stale

    @property
    def trouble(self) -> StraitError | None:
        """Why the state cannot be read now; the last valid values stay active meanwhile."""
        refused = self._feed.refused(self._state.plan_topic) or self._feed.refused(self._state.map_topic)
        return self._feed.trouble or refused or self._state.view.trouble("plan", "map")

    def poll(self) -> bool:
        """Return whether anything has changed since the last call."""
        changed, self.changed = self.changed, False
        return changed

    def read_plans_again(self) -> None:
        """Read the plan topic from its start: it was recreated, and may have a plan that stops this slot."""
        self._feed.read_again(self._state.plan_topic)

    def read_from_start(self) -> None:
        """Forget the link's state and read it again: its topics were lost and created again."""
        self._feed.read_from_start(self._state)

    def close(self) -> None:
        """Stop following."""
        self._feed.forget(self, self._state)


class StateFeed:
    """Follows links until it is closed. Only `trouble` and `refused` are shared with its thread; everything else belongs to
    the caller's.

    Args:
        name: of the pool.
        wake: called from the thread when `deliver` has work.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str, name: str, wake: Callable[[], None]) -> None:
        self._keys = Keys.of(cluster, properties)
        self._states: dict[str, _LinkState] = {}
        self._topics: dict[str, _Topic] = {}
        self._pieces: queue.Queue[Piece] = queue.Queue(PIECES)
        self._reading = Reading(properties, cluster, name, self._pieces, wake)
        self._thread = threading.Thread(target=self._reading.run, name=f"state-{cluster}", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> StraitError | None:
        """The error that keeps the thread from reading."""
        return self._reading.trouble

    def refused(self, topic: str) -> StraitError | None:
        """Return the error if this principal may not read a topic."""
        return self._reading.refused.get(topic)

    def follow(self, link: str, on_change: Callable[[], None]) -> FollowedLink:
        """Follow a link; `FollowedLink.caught_up` is True once its state was read. ``on_change`` is called by
        `deliver`."""
        state = self._states.get(link)
        if state is None:
            state = self._states[link] = _LinkState(link, self._keys)
            self._topics[state.plan_topic] = _Topic("plan", state)
            self._topics[state.map_topic] = _Topic("map", state)
            self._reading.asked.put(lambda: self._reading.follow(state.plan_topic, state.map_topic))
        followed = FollowedLink(self, state, on_change)
        state.followers.append(followed)
        return followed

    def forget(self, followed: FollowedLink, state: _LinkState) -> None:
        """Stop following for one slot; the topics are dropped with the link's last slot."""
        state.followers.remove(followed)
        if not state.followers:
            del self._states[state.link]
            for topic in (state.plan_topic, state.map_topic):
                del self._topics[topic]
            self._reading.asked.put(lambda: self._reading.forget(state.plan_topic, state.map_topic))

    def read_again(self, topic: str) -> None:
        """Read a plan topic from its start."""
        self._reading.asked.put(lambda: self._reading.begin_again((topic,)))

    def read_from_start(self, state: _LinkState) -> None:
        """Forget the state of a link, after all records that were read before this call are delivered."""
        state.stale = True
        self._reading.asked.put(lambda: self._reading.begin(frozenset((state.plan_topic, state.map_topic))))

    def deliver(self) -> None:
        """Apply one piece of the records that have arrived. Call it until `waits` is False."""
        try:
            piece = self._pieces.get_nowait()
        except queue.Empty:
            return
        if isinstance(piece, Begin):
            for state in self._states.values():
                if state.map_topic in piece.topics:
                    state.begin()
            return
        changed: dict[str, _LinkState] = {}
        for message in piece:
            topic = self._topics.get(message.topic() or "")
            if topic is not None and topic.state.take(topic.kind, message):
                changed[topic.state.link] = topic.state
        for follower in [follower for state in changed.values() for follower in state.followers]:
            follower.changed = True
            follower.on_change()

    @property
    def waits(self) -> bool:
        """Whether `deliver` has work."""
        return not self._pieces.empty()

    def close(self) -> None:
        """Stop reading. Does not wait for the thread, which may be waiting for a cluster that does not respond."""
        self._reading.closed.set()
