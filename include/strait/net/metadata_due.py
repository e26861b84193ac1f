"""Schedules metadata requests: for topics with an error individually, later each time that nothing has changed, and for
all topics rarely.

Metadata takes some microseconds per partition on the loop's thread, so it is requested in pieces.
"""

from collections.abc import Callable, Iterable
from functools import partial

from strait.net.event_loop import Loop

PAUSE_SECONDS = 0.1
"""Time between an error and the refresh that it requests."""
PAUSE_SECONDS_PER_PARTITION = 1.3e-4
"""Shortest time between two refreshes of all topics: this keeps them below a twentieth of a core."""
TOPICS_AT_ONCE = 500
LOOK_AGAIN_SECONDS = (0.5, 30.0)
LEADERLESS_SECONDS = 2.0
"""Longest wait for a partition without a leader: nothing but its metadata shows that it has one again."""


class MetadataDue:
    """For the topics in ``interest``, which the owner changes. ``ask`` is called when a request is due; `take` returns
    its topics."""

    def __init__(self, loop: Loop, interest: set[str], ask: Callable[[], None]) -> None:
        self._loop = loop
        self._interest = interest
        self._ask = ask
        self._due: dict[str, bool] = {}  # in order: topic -> whether it was named, not due with all others
        self._brokers_due = False
        self._topics_timer = False
        self._all_timer = False
        self._all_asked_at = float("-inf")
        self._waits: dict[str, float] = {}  # topic with an error -> seconds until its next request
        self._looking: set[str] = set()

    def topics(self, topics: Iterable[str]) -> None:
        """Request these topics soon; many calls result in one request."""
        self._due.update(dict.fromkeys(topics, True))
        if self._due and not self._topics_timer:
            self._topics_timer = True
            self._loop.call_later(PAUSE_SECONDS, self._topics_are_due)

    def all(self, partitions: int) -> None:
        """Request all topics, which have that many partitions, and the brokers: soon, but not too often."""
        if not self._all_timer:
            self._all_timer = True
            earliest = self._all_asked_at + partitions * PAUSE_SECONDS_PER_PARTITION
            self._loop.call_later(max(PAUSE_SECONDS, earliest - self._loop.now), self._all_are_due)

    def look_again(self, topic: str, *, leaderless: bool = False) -> None:
        """Request this topic alone, because of an error; each time that nothing has changed, the next request is sent
        later. ``leaderless``: the error is that a partition has no leader."""
        if topic not in self._looking:
            self._looking.add(topic)
            shortest, longest = LOOK_AGAIN_SECONDS
            wait = min(self._waits.get(topic, shortest), LEADERLESS_SECONDS if leaderless else longest)
            self._waits[topic] = min(longest, 2 * wait)
            self._loop.call_later(wait, partial(self._look, topic))

    def changed(self, topic: str) -> None:
        """Report that the topic's metadata has changed: its next error is followed by a request soon."""
        self._waits.pop(topic, None)

    def take(self) -> dict[str, bool] | None:
        """Return the next topics to request, each with whether it was named; empty if only the brokers are due. None:
        nothing is due."""
        if not self._due and not self._brokers_due:
            return None
        self._brokers_due = False
        taken = dict(list(self._due.items())[:TOPICS_AT_ONCE]) if len(self._due) > TOPICS_AT_ONCE else self._due
        self._due = {topic: named for topic, named in self._due.items() if topic not in taken}
        return taken

    def put_back(self, taken: dict[str, bool]) -> None:
        """Schedule the topics again, since no answer came."""
        self._due = taken | self._due
        self._brokers_due = True

    def _topics_are_due(self) -> None:
        self._topics_timer = False
        self._ask()

    def _all_are_due(self) -> None:
        self._all_timer = False
        self._all_asked_at = self._loop.now
        self._brokers_due = True
        self._due = dict.fromkeys(sorted(self._interest), False) | self._due
        self._ask()

    def _look(self, topic: str) -> None:
        self._looking.discard(topic)
        if topic in self._interest:
            self.topics((topic,))
        else:
            self._waits.pop(topic, None)
