"""The losses of a link, in memory. Pure."""

from collections import Counter, OrderedDict, deque
from hashlib import blake2b

from strait.state.schema import Loss

_COMPARED = 10  # this many times ``most`` digests are remembered, to detect repeated losses


class LossLog:
    """Losses in log order; a loss that several slots, or a restarted one, wrote again is included once.

    Attributes:
        counts: (cause, action) -> number of losses.

    Args:
        most: number of newest losses that are kept; repeats of ten times as many are detected. None: all.
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
        """Add one entry, unless it repeats an earlier one."""
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
