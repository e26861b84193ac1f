"""Fetch sessions (KIP-227): the broker remembers what was asked for, so that a request names only what has changed
since.

A session has one request in flight at a time; each has the epoch after the last one's, which the broker uses up by
taking it. So after anything but a good reply everything is asked for again, under a new session: one large request, and
never a record lost. A broker that has no room for another session answers with session 0, and every request is a full
one then.

The session is kept up to date by change: what a request costs does not depend on how much is wanted, unless it begins a
session.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from strait.wire.error_codes import FETCH_SESSION_ID_NOT_FOUND
from strait.wire.fetch import FetchPosition
from strait.wire.primitives import Topic

Key = tuple[Topic, int]
Positions = list[tuple[Topic, list[FetchPosition]]]
Numbers = list[tuple[Topic, list[int]]]

_NO_ID = 0
_NEW = 0  # the epoch of a request that begins a session, and ends the one that it names
_LAST_EPOCH = 2**31 - 1

_T = TypeVar("_T")


class Request(NamedTuple):
    """What the next fetch request says, in the words of ``fetch.encode_request``: (id, epoch), topics, forgotten."""

    session: tuple[int, int]
    topics: Positions
    forgotten: Numbers


class FetchSession:
    """The bookkeeping of one session: ``want`` and ``leave`` as things change, ``next_request``, then for that request
    ``took`` or ``lost``, and so on."""

    def __init__(self) -> None:
        self._id = _NO_ID
        self._epoch = _NEW
        self._wanted: dict[Key, FetchPosition] = {}
        self._before: dict[Key, FetchPosition | None] = {}  # of each key changed since the last request: as it was then

    @property
    def established(self) -> bool:
        """Whether replies leave out partitions of which there is no news: neither records nor another high watermark or
        start."""
        return self._epoch != _NEW

    def knows(self, key: Key) -> bool:
        """Whether a reply may leave this partition out."""
        return self.established and self._before.get(key, self._wanted.get(key)) is not None

    def want(self, key: Key, position: FetchPosition) -> None:
        """The broker is to look at this partition from this position on."""
        self._before.setdefault(key, self._wanted.get(key))
        self._wanted[key] = position

    def leave(self, key: Key) -> None:
        """The broker is not to look at this partition."""
        position = self._wanted.pop(key, None)
        if position is not None:
            self._before.setdefault(key, position)

    def next_request(self) -> Request:
        """The request that makes the broker look at what is wanted and at nothing else."""
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
        """A reply came: the session that it names, and the error of the whole request (0: none).

        Whatever the error, it is not known whether the epoch was used up.
        """
        if error == FETCH_SESSION_ID_NOT_FOUND or (not error and session_id == _NO_ID):
            self._id, self._epoch = _NO_ID, _NEW
        elif error or (self.established and session_id != self._id):
            self.lost()
        else:
            self._id = session_id
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1

    def lost(self) -> None:
        """No reply came, or none that can be read. The next request ends the session, if the broker still has it, and
        begins anew."""
        self._epoch = _NEW

    def _turn(self) -> None:
        """A broker fills its reply in the order of a full request: each is first in turn. In a session it takes turns
        itself."""
        if self._wanted:
            first = next(iter(self._wanted))
            self._wanted[first] = self._wanted.pop(first)


def _by_topic(items: Iterable[tuple[Key, _T]]) -> list[tuple[Topic, list[_T]]]:
    topics: dict[Topic, list[_T]] = {}
    for (topic, _), item in items:
        topics.setdefault(topic, []).append(item)
    return list(topics.items())
