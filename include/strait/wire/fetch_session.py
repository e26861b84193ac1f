"""Fetch sessions (KIP-227): the broker remembers the requested partitions, so that a request names only the changes
since the one before.

A session has one request in flight at a time. Each has the epoch after the last one's, which the broker consumes when
it accepts the request. So after anything but a good reply all partitions are requested again, in a new session: one
large request, and never a lost record. A broker that has no room for another session returns session ID 0; every
request is then a full one.

The session is updated incrementally: the cost of a request does not depend on the number of wanted partitions, unless
it starts a session.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from strait.wire import error_codes
from strait.wire.fetch import FetchPosition
from strait.wire.primitives import Topic

Key = tuple[Topic, int]
Positions = list[tuple[Topic, list[FetchPosition]]]
Numbers = list[tuple[Topic, list[int]]]

_NO_ID = 0
_NEW = 0  # the epoch of a request that starts a session, and closes the one that it names
_LAST_EPOCH = 2**31 - 1
LOST = frozenset(
    {
        error_codes.FETCH_SESSION_ID_NOT_FOUND,
        error_codes.INVALID_FETCH_SESSION_EPOCH,
        error_codes.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""Errors by which a broker has dropped the session; the next request starts another one."""

_T = TypeVar("_T")


class Request(NamedTuple):
    """Content of the next fetch request, as ``fetch.encode_request`` expects it: (id, epoch), topics, forgotten."""

    session: tuple[int, int]
    topics: Positions
    forgotten: Numbers


class FetchSession:
    """State of one session. Call ``want`` and ``leave`` as partitions change, ``next_request``, then ``took`` or
    ``lost`` for that request, and so on."""

    def __init__(self) -> None:
        self._id = _NO_ID
        self._epoch = _NEW
        self._wanted: dict[Key, FetchPosition] = {}
        self._before: dict[Key, FetchPosition | None] = {}  # value at the last request of each key changed since

    @property
    def established(self) -> bool:
        """Whether replies omit partitions without changes: without records, another high watermark or another log
        start."""
        return self._epoch != _NEW

    def knows(self, key: Key) -> bool:
        """Return whether a reply may omit this partition."""
        return self.established and self._before.get(key, self._wanted.get(key)) is not None

    def want(self, key: Key, position: FetchPosition) -> None:
        """Request this partition from this position on."""
        self._before.setdefault(key, self._wanted.get(key))
        self._wanted[key] = position

    def leave(self, key: Key) -> None:
        """Stop requesting this partition."""
        position = self._wanted.pop(key, None)
        if position is not None:
            self._before.setdefault(key, position)

    def next_request(self) -> Request:
        """Return the request after which the broker's session holds exactly the wanted partitions."""
        before, self._before = self._before, {}
        if not self.established:
            topics = _by_topic(self._wanted.items())
            self._turn()
            return Request((self._id, self._epoch), topics, [])
        wanted = self._wanted
        changed = [
            (key, position)
            for key, known in before.items()
            if (position := wanted.get(key)) is not None and position != known
        ]
        gone = [(key, key[1]) for key, known in before.items() if known is not None and key not in wanted]
        return Request((self._id, self._epoch), _by_topic(changed), _by_topic(gone))

    def took(self, session_id: int, error: int) -> None:
        """Process a reply: the session that it names, and the error of the whole request (0: none).

        After any error it is unknown whether the broker consumed the epoch.
        """
        if error == error_codes.FETCH_SESSION_ID_NOT_FOUND or (not error and session_id == _NO_ID):
            self._id, self._epoch = _NO_ID, _NEW
        elif error or (self.established and session_id != self._id):
            self.lost()
        else:
            self._id = session_id
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1

    def lost(self) -> None:
        """Handle a request without a readable reply. The next request closes the session, if the broker still has it,
        and starts a new one."""
        self._epoch = _NEW

    def _turn(self) -> None:
        """Rotate the wanted partitions: a broker fills its reply in the order of a full request, so each must be first
        in turn. In a session the broker rotates them itself."""
        if self._wanted:
            first = next(iter(self._wanted))
            self._wanted[first] = self._wanted.pop(first)


def _by_topic(items: Iterable[tuple[Key, _T]]) -> list[tuple[Topic, list[_T]]]:
    topics: dict[Topic, list[_T]] = {}
    for (topic, _), item in items:
        topics.setdefault(topic, []).append(item)
    return list(topics.items())
