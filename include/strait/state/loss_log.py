"""The losses of a link as they are read. Pure."""

from collections import Counter, OrderedDict, deque
from hashlib import blake2b

from strait.state.schema import Loss

_COMPARED = 10  # times as many as are kept


class LossLog:
    """Losses in the order of their writing; the same loss told by several slots, or again after a restart, is there once.

    Attributes:
        counts: (cause, action) -> how many there are.

    Args:
        most: so many of the newest are kept, and some more are known again if they are told again; None: all.
    """

    def __init__(self, most: int | None = None) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._newest: deque[Loss] = deque(maxlen=most)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._most = most

    @property
    def newest(self) -> tuple[Loss, ...]:
        return tuple(self._newest)

    def take(self, loss: Loss) -> None:
        """Take in one entry."""
        told = loss.model_copy(update={"at_ms": 0}).model_dump_json()
        digest = blake2b(told.encode(), digest_size=16).digest()
        if digest in self._known:
            self._known.move_to_end(digest)
            return
        self._known[digest] = None
        if self._most is not None and len(self._known) > self._most * _COMPARED:
            self._known.popitem(last=False)
        self.counts[str(loss.cause), loss.action] += 1
        self._newest.append(loss)
